package pqueue

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"
)

// One of these begins every snapshot: the first that has room for what there is, so
// that an older version can read whatever it understands.
const (
	version     = "anteroom-shard-1\n"
	version2    = "anteroom-shard-2\n" // queues have policies
	version3    = "anteroom-shard-3\n" // and were set at run time or have a bound on what is leased at once, and items may have more
	version4    = "anteroom-shard-4\n" // and some are to have one item of a key leased at a time
	version5    = "anteroom-shard-5\n" // and of some, the keys take turns
	versionSize = len(version)
)

// header is the one for s.
func (s *Shard) header() string {
	header := version
	for _, q := range s.queues {
		if q.limits.hasPolicies() {
			header = version2
		}
	}
	for _, q := range s.queues {
		if q.set.FairKeys {
			return version5
		}
	}
	for _, q := range s.queues {
		if q.limits.Exclusive {
			return version4
		}
	}
	for _, q := range s.queues {
		if q.set != (Settings{}) || q.limits.hasFlow() {
			return version3
		}
		for _, i := range q.items { //puretest:sorted one of them is enough, whichever
			if i.copied().hasMore() {
				return version3
			}
		}
	}
	return header
}

// Encode is the whole shard as bytes, the same for equal shards. Whoever
// followed it is not part of it.
func (s *Shard) Encode() []byte {
	header := s.header()
	e := Encoder{append(make([]byte, 0, versionSize+int(s.bytes)), header...)}
	e.Uint(uint64(s.salt))
	e.Int(s.now)
	e.Uint(s.next)
	e.Uint(s.lease)
	e.Uint(uint64(len(s.queues)))
	for _, q := range s.queues {
		e.String(q.name)
		if header != version {
			e.policies(q.limits)
		}
		if header >= version3 {
			e.settings(q.set)
			e.Int(int64(q.limits.InFlightMax))
		}
		if header >= version4 {
			e.Bool(q.limits.Exclusive)
		}
		if header >= version5 {
			e.Bool(q.set.FairKeys)
		}
		e.queue(q, header)
	}
	return binary.BigEndian.AppendUint32(e.B, crc32.ChecksumIEEE(e.B))
}

func (e *Encoder) queue(q *queue, header string) {
	e.limits(q.limits)
	e.mode(q.mode)
	e.counters(q.counters)
	e.Uint(uint64(len(q.items)))
	for _, n := range slices.Sorted(maps.Keys(q.items)) {
		i := q.items[n]
		e.item(i.copied())
		e.String(i.taker.Node)
		e.Uint(i.taker.Seq)
		if header >= version3 {
			e.more(i.copied())
		}
	}
	e.Uint(uint64(q.finished.len()))
	for _, f := range q.finished.order[q.finished.head:] {
		e.Uint(f.number)
		e.Uint(f.lease)
		e.String(f.id)
		e.Int(f.at)
		e.Bool(f.acked)
	}
}

// Restore makes a shard of what Encode wrote. It copies what it keeps.
func Restore(b []byte) (*Shard, error) {
	header := ""
	if len(b) >= versionSize+4 {
		header = string(b[:versionSize])
	}
	if !slices.Contains([]string{version, version2, version3, version4, version5}, header) {
		return nil, errors.New("pqueue: not a snapshot of this version")
	}
	body, sum := b[:len(b)-4], binary.BigEndian.Uint32(b[len(b)-4:])
	if crc32.ChecksumIEEE(body) != sum {
		return nil, errors.New("pqueue: the snapshot is damaged")
	}
	return restore(slices.Clone(body[versionSize:]), header)
}

func restore(body []byte, header string) (*Shard, error) {
	d := NewDecoder(body)
	s := New(uint32(d.small(1<<32 - 1)))
	s.now, s.next, s.lease = d.Int(), d.Uint(), d.Uint()
	for range d.Count(queueMin) {
		q := newQueue(s, d.String())
		if n := len(s.queues); q.name == "" || n > 0 && s.queues[n-1].name >= q.name {
			d.fail()
			break
		}
		s.queues = append(s.queues, q)
		s.byName[q.name] = q
		var with Limits
		if header != version {
			d.policies(&with)
		}
		if header >= version3 {
			q.set = d.settings()
			with.InFlightMax = int(d.Int())
		}
		if header >= version4 {
			with.Exclusive = d.Bool()
		}
		if header >= version5 {
			q.set.FairKeys = d.Bool()
		}
		d.queue(q, with, header)
	}
	if err := d.Err(); err != nil {
		return nil, fmt.Errorf("snapshot: %w", err)
	}
	return s, nil
}

// queueMin and finishedMin are the least that one takes, in bytes.
const (
	queueMin    = 22
	finishedMin = 5
)

func (d *Decoder) queue(q *queue, with Limits, header string) {
	q.limits, q.mode, q.counters = d.limits(), d.mode(), d.counters()
	q.limits.Backoff, q.limits.DeadTo, q.limits.InFlightMax = with.Backoff, with.DeadTo, with.InFlightMax
	q.limits.Exclusive = with.Exclusive
	if !q.limits.Valid() || with.DeadTo == q.name || !q.set.Valid() {
		d.fail()
		return
	}
	s := q.shard
	for range d.Count(itemMin + 2) {
		in := d.item()
		taker := Taker{d.String(), d.Uint()}
		if header >= version3 {
			d.more(&in)
		}
		_, twice := q.items[in.Number]
		_, named := q.ids[in.ID]
		alive := in.State >= Ready && in.State <= Dead
		if twice || named || !alive || in.ID == "" || in.Number == 0 || in.Number > s.next || in.Lease > s.lease || len(in.Key) > KeyMax {
			d.fail()
			return
		}
		i := &item{
			queue: q, number: in.Number, id: in.ID, priority: in.Priority, attempts: in.Attempts, stamp: in.Stamp, inserted: in.Inserted,
			notBefore: in.NotBefore, expires: in.Expires, lease: in.Lease, until: in.Until, taker: taker, reason: in.Reason, origin: in.Origin, key: in.Key, payload: in.Payload,
			deadline: deadline{place: -1},
		}
		q.items[i.number], q.ids[i.id] = i, i.number
		q.weigh(i.cost())
		q.move(i, in.State)
	}
	for range d.Count(finishedMin) {
		f := finishedItem{number: d.Uint(), lease: d.Uint(), id: d.String(), at: d.Int(), acked: d.Bool()}
		_, twice := q.finished.byNumber[f.number]
		if _, alive := q.items[f.number]; alive || twice {
			d.fail()
			return
		}
		q.finished.add(f)
		if _, named := q.ids[f.id]; !named {
			q.ids[f.id] = f.number
		}
	}
	q.remind()
}
