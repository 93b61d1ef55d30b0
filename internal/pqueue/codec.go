package pqueue

import (
	"errors"
	"math"
	"slices"

	"github.com/anteroom/anteroom/qpid"
)

func (e *Encoder) mode(m ModeSetting) {
	e.Uint(uint64(m.Mode))
	e.Uint(m.Stamp)
	e.String(m.By)
}

func (d *Decoder) mode() ModeSetting {
	m := ModeSetting{Mode: Mode(d.small(uint64(Draining)))}
	m.Stamp, m.By = d.Uint(), d.String()
	return m
}

// small reads a number that is at most most.
func (d *Decoder) small(most uint64) uint64 {
	v := d.Uint()
	if v > most {
		d.fail()
		return 0
	}
	return v
}

func (e *Encoder) limits(l Limits) {
	for _, v := range []int64{int64(l.ItemsMax), l.BytesMax, int64(l.AttemptsMax), int64(l.DeadMax), int64(l.RememberMax), l.Remember, l.LeaseMax} {
		e.Int(v)
	}
}

func (d *Decoder) limits() Limits {
	return Limits{
		ItemsMax: int(d.Int()), BytesMax: d.Int(), AttemptsMax: int(d.Int()), DeadMax: int(d.Int()), RememberMax: int(d.Int()),
		Remember: d.Int(), LeaseMax: d.Int(),
	}
}

// policies are what Limits have besides. They are written only where there are some,
// since what is older knows nothing of them.
func (e *Encoder) policies(l Limits) {
	for _, v := range []int64{l.Backoff.Base, l.Backoff.Factor, l.Backoff.Max} {
		e.Int(v)
	}
	e.String(l.DeadTo)
}

func (d *Decoder) policies(l *Limits) {
	l.Backoff = Backoff{Base: d.Int(), Factor: d.Int(), Max: d.Int()}
	l.DeadTo = d.String()
}

func (e *Encoder) settings(s Settings) {
	e.Uint(s.Stamp)
	e.String(s.By)
	for _, v := range []int64{s.Lease, int64(s.PayloadMax), s.Interval, int64(s.PerInterval)} {
		e.Int(v)
	}
}

func (d *Decoder) settings() Settings {
	return Settings{
		Stamp: d.Uint(), By: d.String(), Lease: d.Int(), PayloadMax: int(d.Int()), Interval: d.Int(), PerInterval: int(d.Int()),
	}
}

// hasPolicies reports whether l is more than what older versions know.
func (l Limits) hasPolicies() bool { return l.Backoff != Backoff{} || l.DeadTo != "" }

// hasFlow reports whether l bounds what is leased at once, of which versions that know
// policies may know nothing.
func (l Limits) hasFlow() bool { return l.InFlightMax != 0 }

// Which parts of a command follow: most have few.
const (
	hasInsert = 1 << iota // ID, Priority, Payload, NotBefore, Expires
	hasLease              // Lease, For, Taker, Text
	hasMode
	hasLimits
	hasWeight
	hasFields // this and what follows: not in logs of before
	hasPolicies
	hasSettings
	hasFlow
	hasKey
	hasExclusive
	hasFair
	partsEnd
)

// parts are those that c has.
func (c Command) parts() uint64 {
	parts := uint64(0)
	if c.ID != "" || c.Priority != 0 || c.Payload != nil || c.NotBefore != 0 || c.Expires != 0 {
		parts |= hasInsert
	}
	if c.Lease != 0 || c.For != 0 || c.Taker != (Taker{}) || c.Text != "" {
		parts |= hasLease
	}
	if c.Mode != (ModeSetting{}) {
		parts |= hasMode
	}
	if c.Limits != (Limits{}) {
		parts |= hasLimits
	}
	if c.Weight != (qpid.Weight{}) {
		parts |= hasWeight
	}
	if c.Fields != 0 {
		parts |= hasFields
	}
	if c.Limits.hasPolicies() {
		parts |= hasPolicies
	}
	if c.Settings != (Settings{}) {
		parts |= hasSettings
	}
	if c.Limits.hasFlow() {
		parts |= hasFlow
	}
	if c.Key != "" {
		parts |= hasKey
	}
	if c.Limits.Exclusive {
		parts |= hasExclusive
	}
	if c.Settings.FairKeys {
		parts |= hasFair
	}
	return parts
}

// Encode appends c to b.
func (c Command) Encode(b []byte) []byte {
	e := Encoder{b}
	parts := c.parts()
	e.Uint(uint64(c.Op))
	e.Uint(parts)
	e.String(c.Queue)
	e.Int(c.Now)
	e.Uint(c.Number)
	e.Int(int64(c.Max))
	if parts&hasInsert != 0 {
		e.String(c.ID)
		e.Uint(uint64(c.Priority))
		e.Bytes(c.Payload)
		e.Int(c.NotBefore)
		e.Int(c.Expires)
	}
	if parts&hasLease != 0 {
		e.Uint(c.Lease)
		e.Int(c.For)
		e.String(c.Taker.Node)
		e.Uint(c.Taker.Seq)
		e.String(c.Text)
	}
	if parts&hasMode != 0 {
		e.mode(c.Mode)
	}
	if parts&hasLimits != 0 {
		e.limits(c.Limits)
	}
	if parts&hasWeight != 0 {
		e.Weight(c.Weight)
	}
	if parts&hasFields != 0 {
		e.Uint(uint64(c.Fields))
	}
	if parts&hasPolicies != 0 {
		e.policies(c.Limits)
	}
	if parts&hasSettings != 0 {
		e.settings(c.Settings)
	}
	if parts&hasFlow != 0 {
		e.Int(int64(c.Limits.InFlightMax))
	}
	if parts&hasKey != 0 {
		e.String(c.Key)
	}
	return e.B
}

// DecodeCommand reads what Encode wrote. The payload is part of b.
func DecodeCommand(b []byte) (Command, error) {
	d := NewDecoder(b)
	c := Command{Op: Op(d.small(uint64(opEnd) - 1))}
	parts := d.small(partsEnd - 1)
	c.Queue, c.Now, c.Number, c.Max = d.String(), d.Int(), d.Uint(), int(d.Int())
	if parts&hasInsert != 0 {
		c.ID, c.Priority, c.Payload = d.String(), uint32(d.small(1<<32-1)), d.Bytes()
		c.NotBefore, c.Expires = d.Int(), d.Int()
	}
	if parts&hasLease != 0 {
		c.Lease, c.For = d.Uint(), d.Int()
		c.Taker = Taker{d.String(), d.Uint()}
		c.Text = d.String()
	}
	if parts&hasMode != 0 {
		c.Mode = d.mode()
	}
	if parts&hasLimits != 0 {
		c.Limits = d.limits()
	}
	if parts&hasWeight != 0 {
		c.Weight = d.Weight()
	}
	if parts&hasFields != 0 {
		c.Fields = Fields(d.small(uint64(fieldsEnd) - 1))
	}
	if parts&hasPolicies != 0 {
		d.policies(&c.Limits)
	}
	if parts&hasSettings != 0 {
		c.Settings = d.settings()
	}
	if parts&hasFlow != 0 {
		c.Limits.InFlightMax = int(d.Int())
	}
	if parts&hasKey != 0 {
		c.Key = d.String()
	}
	c.Limits.Exclusive, c.Settings.FairKeys = parts&hasExclusive != 0, parts&hasFair != 0
	if c.Op == 0 && d.err == nil {
		return Command{}, errors.New("pqueue: a command without an operation")
	}
	return c, d.Err()
}

func (e *Encoder) item(i Item) {
	e.Uint(i.Number)
	e.String(i.ID)
	e.Uint(uint64(i.Priority))
	for _, v := range []int64{i.Stamp, i.Inserted, i.NotBefore, i.Expires, i.Until} {
		e.Int(v)
	}
	e.Uint(uint64(i.State))
	e.Uint(uint64(i.Attempts))
	e.Uint(i.Lease)
	e.String(i.Reason)
	e.Bytes(i.Payload)
}

func (d *Decoder) item() Item {
	i := Item{Number: d.Uint(), ID: d.String(), Priority: uint32(d.small(1<<32 - 1))}
	for _, v := range []*int64{&i.Stamp, &i.Inserted, &i.NotBefore, &i.Expires, &i.Until} {
		*v = d.Int()
	}
	i.State, i.Attempts, i.Lease = State(d.small(uint64(Finished))), uint32(d.small(1<<32-1)), d.Uint()
	i.Reason, i.Payload = d.String(), d.Bytes()
	return i
}

// itemMin is the least that an encoded item takes, in bytes.
const itemMin = 13

// What an item may have besides, in bits that say which of it follows. It is written
// only where there is some, since what is older knows nothing of it.
const (
	moreOrigin = 1 << iota
	moreKey
	moresEnd
)

// hasMore reports whether i is more than what older versions know.
func (i Item) hasMore() bool { return i.Origin != "" || i.Key != "" }

func (e *Encoder) more(i Item) {
	parts := uint64(0)
	if i.Origin != "" {
		parts |= moreOrigin
	}
	if i.Key != "" {
		parts |= moreKey
	}
	e.Uint(parts)
	if parts&moreOrigin != 0 {
		e.String(i.Origin)
	}
	if parts&moreKey != 0 {
		e.String(i.Key)
	}
}

func (d *Decoder) more(i *Item) {
	parts := d.small(moresEnd - 1)
	if parts&moreOrigin != 0 {
		i.Origin = d.String()
	}
	if parts&moreKey != 0 {
		i.Key = d.String()
	}
}

// Encode appends r to b.
func (r Result) Encode(b []byte) []byte {
	e := Encoder{b}
	e.Uint(uint64(r.Code))
	e.Uint(r.Number)
	e.Uint(uint64(r.State))
	e.Uint(r.Lease)
	e.Int(r.Until)
	e.Uint(r.N)
	e.Bool(r.Exists)
	e.Uint(uint64(len(r.Items)))
	for _, i := range r.Items {
		e.item(i)
	}
	e.Uint(uint64(len(r.Stats)))
	for _, s := range r.Stats {
		e.stats(s)
	}
	blocked := slices.ContainsFunc(r.Stats, func(s Stats) bool { return s.Blocked != 0 })
	if blocked || slices.ContainsFunc(r.Items, Item.hasMore) {
		for _, i := range r.Items {
			e.more(i)
		}
	}
	if blocked {
		for _, s := range r.Stats {
			e.Uint(uint64(s.Blocked))
		}
	}
	return e.B
}

// DecodeResult reads what Encode wrote. Payloads are part of b.
func DecodeResult(b []byte) (Result, error) {
	d := NewDecoder(b)
	r := Result{Code: Code(d.small(uint64(codes) - 1)), Number: d.Uint(), State: State(d.small(uint64(Finished)))}
	r.Lease, r.Until, r.N, r.Exists = d.Uint(), d.Int(), d.Uint(), d.Bool()
	for range d.Count(itemMin) {
		r.Items = append(r.Items, d.item())
	}
	for range d.Count(statsMin) {
		r.Stats = append(r.Stats, d.stats())
	}
	if d.Left() > 0 {
		for i := range r.Items {
			d.more(&r.Items[i])
		}
	}
	if d.Left() > 0 {
		for i := range r.Stats {
			r.Stats[i].Blocked = int(d.small(math.MaxInt32))
		}
	}
	return r, d.Err()
}

// statsMin is the least that encoded Stats take, in bytes.
const statsMin = 22

func (e *Encoder) stats(s Stats) {
	e.String(s.Queue)
	e.mode(s.Mode)
	for _, v := range []int64{int64(s.Ready), int64(s.Delayed), int64(s.Leased), int64(s.Dead), s.Bytes, s.Oldest} {
		e.Int(v)
	}
	e.counters(s.Counters)
	e.Bool(s.Root)
	e.Int(int64(s.Waiters))
	e.String(s.Kind)
}

func (d *Decoder) stats() Stats {
	s := Stats{Queue: d.String(), Mode: d.mode()}
	s.Ready, s.Delayed, s.Leased, s.Dead = int(d.Int()), int(d.Int()), int(d.Int()), int(d.Int())
	s.Bytes, s.Oldest, s.Counters = d.Int(), d.Int(), d.counters()
	s.Root, s.Waiters, s.Kind = d.Bool(), int(d.Int()), d.String()
	return s
}

func (c *Counters) all() []*uint64 {
	return []*uint64{&c.Inserted, &c.Leased, &c.Acked, &c.Nacked, &c.Lapsed, &c.Cancelled, &c.Expired, &c.Died, &c.Repeated}
}

func (e *Encoder) counters(c Counters) {
	for _, v := range c.all() {
		e.Uint(*v)
	}
}

func (d *Decoder) counters() Counters {
	var c Counters
	for _, v := range c.all() {
		*v = d.Uint()
	}
	return c
}
