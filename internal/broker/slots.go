package broker

import (
	"cmp"
	"slices"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/pqueue"
	"github.com/anteroom/anteroom/qpid"
)

// Slots is what travels of the slots of a queue with a bound on what is leased at
// once. See package comment, In flight.
type Slots struct {
	Queue string
	Have  int           // slots; less than none: so many must come back before one is free
	Lost  int           // that nodes may use which cannot be asked
	Left  int64         // µs until those are free all the same
	Of    []qpid.NodeID // these nodes
	// Of a report, and of what is made of all:
	Most    int   // the bound
	Longest int64 // µs that a lease lasts at most, or did since the node knows
	// Of a report:
	Taken int  // leases
	Sure  bool // Taken is known: the log of the queue is open
	Dealt int  // the bound in the last round
}

// slots is this node's part of the slots of a queue.
//
// Invariant: over all nodes, have and lost are at most the bound together. While none
// of a node's leases is in doubt, they are at most its have.
type slots struct {
	have     int
	leasing  int     // of them, for leases on their way through the log
	doubts   []int64 // boot times until which one is kept for a lease that may be given yet
	lost     int
	until    int64 // boot time at which those that are lost are free
	of       []qpid.NodeID
	reported int   // leases here when the round began: as many slots are had after it
	dealt    int   // the bound by which the slots were counted last
	longest  int64 // µs that a lease may last here: so long do the others wait
}

// slotReport is what a member has of a queue's slots when a round begins.
type slotReport struct {
	from eviction.Member
	made qpid.Epoch // the last round that it knows the outcome of
	is   Slots
}

func (p slotReport) compare(o slotReport) int {
	return cmp.Or(cmp.Compare(p.is.Queue, o.is.Queue), cmp.Compare(p.from.Name, o.from.Name))
}

const (
	slotsEvery  = 50_000  // µs between two looks at what time brings to slots
	fullEvery   = 100_000 // µs until a take asks again that found all slots in use, if it hears of none
	slotsAtOnce = 100     // Slots in a message
	earlyMax    = 1024    // messages of the round to come
	slotsMax    = 1 << 40 // bounds any number of them in a message
)

// bounded reports whether so many items of q may be leased at once, and no more.
func (q *queue) bounded() bool { return q.most() > 0 }

// most is how many slots q has; none: it needs none.
func (q *queue) most() int {
	if q.c.Limits.InFlightMax == 0 && q.gates() {
		return allSlots
	}
	return q.c.Limits.InFlightMax
}

// shares reports whether the nodes share the slots of q. Leases of a replicated queue
// are all in one log, which counts them.
func (q *queue) shares() bool { return q.bounded() && q.c.Kind != Replicated }

// reshare has the slots of q counted with the next round, if they are to be others than
// they were.
func (b *Broker) reshare(q *queue, was pqueue.Limits) {
	if q.keys.on != q.gates() {
		b.regate(q)
	}
	i, in := slices.BinarySearchFunc(b.shared, q.c.Name, func(q *queue, name string) int { return cmp.Compare(q.c.Name, name) })
	switch {
	case q.shares() && !in:
		b.shared = slices.Insert(b.shared, i, q)
	case !q.shares() && in:
		b.shared = slices.Delete(b.shared, i, i+1)
		q.slots = slots{leasing: q.slots.leasing}
	case !in || was.InFlightMax == q.c.Limits.InFlightMax && was.LeaseMax == q.c.Limits.LeaseMax && was.Exclusive == q.c.Limits.Exclusive:
		return
	}
	b.round.need = b.round.need || b.round.installed() || b.round.frozen // its first round may be under way, and count by others
}

// inUse is how many of q's slots here are in use, or may be.
func (b *Broker) inUse(q *queue) int {
	n := q.slots.leasing + len(q.slots.doubts)
	if s := &b.shards[q.c.Kind]; s.state != nil {
		n += s.state.Leased(q.c.Name)
	}
	return n
}

// free is how many items more may be leased here.
func (b *Broker) free(q *queue) int {
	have := q.slots.have
	if !q.shares() {
		have = q.c.Limits.InFlightMax
	}
	return have - b.inUse(q)
}

// freed passes on the slots that are free here: to who waits if this is the root,
// and else towards it.
func (b *Broker) freed(q *queue) {
	n := 0
	if q.bounded() && !q.q.Frozen() {
		n = b.free(q)
	}
	switch {
	case n <= 0:
	case !q.shares() || q.q.IsRoot():
		b.tellAskers(q)
	default:
		if to, ok := b.member(q.q.Parent()); ok {
			q.slots.have -= n
			b.seq++
			b.send(Message{Kind: MsgFreed, To: to, Epoch: b.round.made, Seq: b.seq, Slots: []Slots{{Queue: q.c.Name, Have: n}}})
		}
	}
}

// handOver gives the root's slots to the next one, before the office.
func (b *Broker) handOver(q *queue, to eviction.Member) {
	s := &q.slots
	out := Slots{Queue: q.c.Name, Have: b.free(q), Lost: s.lost, Left: max(0, s.until-b.now.Boot), Of: s.of}
	if out.Lost == 0 {
		out.Left, out.Of = 0, nil
	}
	s.have, s.lost, s.of = s.have-out.Have, 0, nil
	b.seq++
	b.send(Message{Kind: MsgOffice, To: to, Epoch: b.round.made, Seq: b.seq, Slots: []Slots{out}})
}

// onFreed takes in slots. Those of an older round were counted in the one since. Of
// the round to come some may have heard before this node.
func (b *Broker) onFreed(m Message) {
	r := &b.round
	early := r.frozen && m.Epoch == r.epoch
	if b.heard[m.From] >= m.Seq || m.Epoch != r.made && !early {
		return
	}
	if b.heard == nil {
		b.heard = make(map[eviction.Member]uint64)
	}
	b.heard[m.From] = m.Seq
	switch {
	case !early:
		b.takeSlots(m)
	case len(r.early) < earlyMax:
		r.early = append(r.early, m)
	default:
		r.need = true // what is lost is counted anew
	}
}

func (b *Broker) takeSlots(m Message) {
	for _, in := range m.Slots {
		q := b.queue(in.Queue)
		if q == nil || !q.shares() {
			continue
		}
		q.slots.take(in, b.now.Boot)
		if m.Kind == MsgFreed {
			b.freed(q)
		}
	}
}

func (s *slots) take(in Slots, now int64) {
	s.have += in.Have
	if in.Lost > 0 {
		s.lost += in.Lost
		s.until = max(s.until, now+in.Left)
		for _, n := range in.Of {
			if !slices.Contains(s.of, n) {
				s.of = append(s.of, n)
			}
		}
	}
}

// reportSlots is what this node has, for the round that has frozen it.
func (b *Broker) reportSlots() []Slots {
	var all []Slots
	for _, q := range b.shared {
		s := &q.slots
		is := Slots{
			Queue: q.c.Name, Have: s.have, Taken: b.inUse(q), Sure: b.shards[q.c.Kind].leads, Most: q.most(),
			Longest: max(s.longest, q.c.Limits.LeaseMax), Dealt: s.dealt,
		}
		if s.lost > 0 {
			is.Lost, is.Left, is.Of = s.lost, max(0, s.until-b.now.Boot), s.of
		}
		if s.reported = is.Taken; !is.Sure {
			s.reported = 0
		}
		all = append(all, is)
	}
	return all
}

// sendSlots tells a member, some in a message.
func (b *Broker) sendSlots(k MsgKind, to eviction.Member, made qpid.Epoch, all []Slots) {
	for some := range slices.Chunk(all, slotsAtOnce) {
		b.send(Message{Kind: k, To: to, Epoch: b.round.epoch, Made: made, Slots: some})
	}
}

func (b *Broker) onReport(m Message) {
	if r := &b.round; r.open && m.Epoch == r.epoch && slices.Contains(r.waiting, m.From) {
		b.addSlots(m.From, m.Made, m.Slots)
	}
}

func (b *Broker) addSlots(from eviction.Member, made qpid.Epoch, all []Slots) {
	r := &b.round
	for _, is := range all {
		if len(r.reports) < 2*len(r.asked)*b.c.QueuesMax {
			r.reports = append(r.reports, slotReport{from, made, is})
		}
	}
}

// onShares keeps what the coordinator has made of the reports, for the commit that
// follows.
func (b *Broker) onShares(m Message) {
	if r := &b.round; r.frozen && m.Epoch == r.epoch && m.From == r.by && len(r.shares) < b.c.QueuesMax {
		r.shares = append(r.shares, m.Slots...)
	}
}

// share makes of all reports what the root of each queue begins with.
func (b *Broker) share() []Slots {
	r := &b.round
	slices.SortFunc(r.reports, slotReport.compare)
	r.reports = slices.CompactFunc(r.reports, func(a, o slotReport) bool { return a.compare(o) == 0 }) // messages that came twice
	var all []Slots
	for i := 0; i < len(r.reports); {
		end := i + 1
		for end < len(r.reports) && r.reports[end].is.Queue == r.reports[i].is.Queue {
			end++
		}
		all = append(all, b.shareOf(r.reports[i:end]))
		i = end
	}
	r.reports = nil
	return all
}

// shareOf is what the root of a queue begins with. If all nodes that may have leases
// are there, that is what their leases leave. If not, those that are there keep what
// they have, and all else may be in use where nobody can ask: until the longest lease
// has ended that a node may give or extend which does not know yet that it is left out.
func (b *Broker) shareOf(reports []slotReport) Slots {
	out := Slots{Queue: reports[0].is.Queue, Most: reports[0].is.Most}
	made, one := lineage(reports)
	taken, dealt, was := 0, 0, slots{}
	var sure []qpid.NodeID
	for _, p := range reports {
		out.Most, out.Longest = min(out.Most, p.is.Most), max(out.Longest, p.is.Longest)
		free := Slots{Lost: p.is.Lost, Left: p.is.Left, Of: p.is.Of}
		if p.is.Sure {
			sure = append(sure, p.from.Name)
			taken += p.is.Taken
			free.Have = p.is.Have - p.is.Taken
		}
		if one && p.made == made {
			dealt = max(dealt, p.is.Dealt)
		} else {
			free.Have = 0 // what it has comes from elsewhere, or from nowhere
		}
		was.take(free, 0)
	}
	lacking := slices.DeleteFunc(b.expected(was.of), func(n qpid.NodeID) bool { return slices.Contains(sure, n) })
	if len(lacking) == 0 {
		out.Have = out.Most - taken
		return out
	}
	dealt = cmp.Or(dealt, out.Most)
	out.Lost = max(0, dealt-taken-was.have)
	out.Have = out.Most - taken - out.Lost
	if out.Lost == 0 {
		return out
	}
	out.Of, out.Left = lacking, was.until
	fresh := func(n qpid.NodeID) bool { return !slices.Contains(was.of, n) }
	if !one || out.Lost > was.lost || slices.ContainsFunc(lacking, fresh) {
		out.Left = out.Longest + 3*b.c.Fresh
	}
	return out
}

// lineage is the last round whose outcome the members know, and whether it is the same
// for all that know of any.
func lineage(reports []slotReport) (made qpid.Epoch, one bool) {
	one = true
	for _, p := range reports {
		switch {
		case p.made == qpid.Epoch{}:
		case made == qpid.Epoch{}:
			made = p.made
		case p.made != made:
			one = false
		}
	}
	return made, one
}

// expected are the nodes that may have leases, and those besides.
func (b *Broker) expected(besides []qpid.NodeID) []qpid.NodeID {
	all := slices.Concat(b.view.Voters, besides)
	for _, m := range slices.Concat(b.view.List, b.round.list) {
		all = append(all, m.Name)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// dealOut gives every queue of the round that is installed its slots: each node keeps
// what its leases had when it was frozen, and the first root has all else.
func (b *Broker) dealOut() {
	r := &b.round
	byQueue := func(is Slots, name string) int { return cmp.Compare(is.Queue, name) }
	slices.SortFunc(r.shares, func(a, o Slots) int { return byQueue(a, o.Queue) })
	for _, q := range b.shared {
		s := &q.slots
		s.have, s.lost, s.of, s.until, s.dealt = s.reported, 0, nil, 0, 0
		i, ok := slices.BinarySearchFunc(r.shares, q.c.Name, byQueue)
		if !ok {
			continue
		}
		s.dealt, s.longest = r.shares[i].Most, r.shares[i].Longest
		if r.list[r.rootOf(q.c.Name)] == b.self {
			s.take(r.shares[i], b.now.Boot)
		}
	}
	r.shares = nil
}

// dealtOut takes in what came before the round was installed here, and passes on what
// has become free meanwhile.
func (b *Broker) dealtOut() {
	early := b.round.early
	b.round.early = nil
	for _, m := range early {
		b.takeSlots(m)
	}
	for _, q := range b.shared {
		b.freed(q)
	}
}

// rootOf is the position at which a queue's root is when the round is installed.
func (r *round) rootOf(queue string) int {
	if all := r.frontsOf(queue); len(all) > 0 && all[0].At < len(r.list) {
		return all[0].At
	}
	return 0
}

// tickSlots does what time brings to slots. A node with leases also asks now and then
// whether it is in the last round still: else it could not extend them.
func (b *Broker) tickSlots() {
	if b.now.Boot < b.slotsAt {
		return
	}
	b.slotsAt = b.now.Boot + slotsEvery
	leases := false
	for _, q := range b.shared {
		s, n := &q.slots, b.free(q)
		s.doubts = slices.DeleteFunc(s.doubts, func(until int64) bool { return until <= b.now.Boot })
		if s.lost > 0 && b.now.Boot >= s.until {
			s.have, s.lost, s.of = s.have+s.lost, 0, nil
		}
		if !q.q.IsRoot() || b.free(q) > n {
			b.freed(q)
		}
		leases = leases || b.inUse(q) > 0
	}
	if leases {
		b.authority()
	}
}

// extendMax is for how long a lease of q can be extended at most. The others take it
// that those of a node which is left out of a round have ended after the longest lease.
func (b *Broker) extendMax(q *queue) int64 {
	if !q.shares() {
		return q.c.Limits.LeaseMax
	}
	return min(q.c.Limits.LeaseMax, q.slots.longest) - (b.now.Boot - b.round.inAt)
}

func (s Slots) encode(e *pqueue.Encoder) {
	e.String(s.Queue)
	for _, v := range []int64{int64(s.Have), int64(s.Lost), s.Left, int64(s.Taken), int64(s.Most), s.Longest, int64(s.Dealt)} {
		e.Int(v)
	}
	e.Bool(s.Sure)
	e.Uint(uint64(len(s.Of)))
	for _, n := range s.Of {
		e.String(string(n))
	}
}

func toSlots(d *pqueue.Decoder) (s Slots, ok bool) {
	s.Queue = d.String()
	have, lost, left, taken, most, longest, dealt := d.Int(), d.Int(), d.Int(), d.Int(), d.Int(), d.Int(), d.Int()
	s.Sure = d.Bool()
	for range d.Count(1) {
		s.Of = append(s.Of, qpid.NodeID(d.String()))
	}
	s.Have, s.Lost, s.Left, s.Taken, s.Most, s.Longest, s.Dealt = int(have), int(lost), left, int(taken), int(most), longest, int(dealt)
	ok = have >= -slotsMax && max(have, lost, taken, most, dealt) <= slotsMax && min(lost, left, taken, most, longest, dealt) >= 0 && max(left, longest) <= 1<<60
	return s, ok
}
