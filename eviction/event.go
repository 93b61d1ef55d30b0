package eviction

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"time"
)

// EventsMax is how many events a room may have.
const EventsMax = 5

// Event opens a room at a set time to people who gathered before it.
type Event struct {
	Name     string
	Prequeue int64    // Unix microseconds: from here to Start everybody waits; 0: ever since
	Start    int64    // Unix microseconds; 0: no event
	End      int64    // Unix microseconds: from here on the room is as it was; 0: never
	Shuffle  bool     // who gathered before the start is drawn in random order
	Seed     [32]byte // of the draw; its hash is published before, itself after the start
	Set      Set      // which of the following count instead of the room's own, from Prequeue on

	Target       int
	NewPerMinute int
	Session      time.Duration
	NoRenewal    bool
	Method       Method
}

// Set says what an event has otherwise than its room.
type Set uint8

// The settings that an event may have of its own.
const (
	SetTarget Set = 1 << iota
	SetNewPerMinute
	SetSession
	SetNoRenewal
	SetMethod
	setAll = 1<<iota - 1
)

// holds reports whether the event has anything to say at time t.
func (e *Event) holds(t uint64) bool {
	return t >= uint64(e.Prequeue) && (e.End == 0 || t < uint64(e.End))
}

// waits reports whether the event keeps everybody waiting at time t.
func (e *Event) waits(t uint64) bool { return e.holds(t) && t < uint64(e.Start) }

// Commitment is what is published of the seed before the start: its SHA-256.
func (e *Event) Commitment() [32]byte { return sha256.Sum256(e.Seed[:]) }

// draw returns the last event with a shuffle that has begun by t, nil if there
// was none. Its start is the room's keying.
func (r *Room) draw(t uint64) *Event {
	var last *Event
	for i := range r.events() {
		if e := r.event(i); e.Shuffle && e.Start > 0 && t >= uint64(e.Start) && (last == nil || e.Start > last.Start) {
			last = e
		}
	}
	return last
}

// events is how many there are: those of the list, or the one without a list.
func (r *Room) events() int { return max(1, len(r.Events)) }

func (r *Room) event(i int) *Event {
	if len(r.Events) == 0 {
		return &r.Event
	}
	return &r.Events[i]
}

// DrawComes returns the start of the draw that the ticket of that stamp takes
// part in and that is still to come, at clock t of this node; 0: there is none.
// Until then nobody knows where it stands, whatever place it has now.
func (g *Gate) DrawComes(stamp uint64, t int64) (start int64) {
	for i := range g.cfg.events() {
		e := g.cfg.event(i)
		if e.Shuffle && stamp < uint64(e.Start) && uint64(e.Start) > g.keying && max(t, int64(g.at)) >= e.Prequeue {
			return e.Start
		}
	}
	return 0
}

// DrawnBetween reports whether the ticket of that stamp took part in a draw after from, at
// clock t of this node: what was known before of where it stands is not so any more.
func (g *Gate) DrawnBetween(stamp uint64, from, t int64) bool {
	k, _ := g.cfg.keyingAt(uint64(t))
	k = max(k, g.keying)
	return stamp < k && from < int64(k)
}

// keyingAt returns the keying that holds at time t, and the seed of its draw.
func (r *Room) keyingAt(t uint64) (keying uint64, seed [32]byte) {
	if e := r.draw(t); e != nil {
		return uint64(e.Start), e.Seed
	}
	return 0, seed
}

// Seeded returns the room with a seed for every shuffle that has none, made of
// secret, which only this node knows: nobody chooses a seed.
func (r Room) Seeded(secret []byte) Room {
	return r.seeds(func(e *Event) [32]byte { return seedOf(secret, r.Name, e) })
}

// KeepSeeds returns the room with the seeds that old has for the same events, by
// name and start: their hashes may be public.
func (r Room) KeepSeeds(old *Room) Room {
	return r.seeds(func(e *Event) [32]byte {
		for i := range old.Events {
			if o := &old.Events[i]; o.Shuffle && o.Name == e.Name && o.Start == e.Start {
				return o.Seed
			}
		}
		return e.Seed
	})
}

func (r Room) seeds(of func(e *Event) [32]byte) Room {
	events := r.Events
	r.Events = nil
	for _, e := range events {
		if e.Shuffle && e.Seed == [32]byte{} {
			e.Seed = of(&e)
		}
		r.Events = append(r.Events, e)
	}
	return r
}

func seedOf(secret []byte, room string, e *Event) (seed [32]byte) {
	h := hmac.New(sha256.New, secret)
	_, _ = fmt.Fprintf(h, "%s\n%s\n%d", room, e.Name, e.Start) // names of rooms have no line breaks
	h.Sum(seed[:0])
	return seed
}

// Draw is what everybody may know of the draw of an event.
type Draw struct {
	Event      string
	Start      int64 // Unix microseconds; 0: there is no draw
	Commitment [32]byte
	Seed       [32]byte // zero until the draw is over
}

// Over reports whether the order is drawn and the seed public.
func (d *Draw) Over() bool { return d.Seed != [32]byte{} }

// Draw tells of the draw that comes, while people gather for it, and else of the
// last one that was. The seed is told once this node's queue is in the order of
// the draw: then, by its promise, no ticket that takes part is stamped any more.
func (g *Gate) Draw() Draw {
	e := &g.now.Event
	if !e.Shuffle || e.Start == 0 || g.keying >= uint64(e.Start) {
		e = g.cfg.draw(g.keying)
		if e == nil || e.Seed != g.seed {
			return Draw{}
		}
	}
	d := Draw{Event: e.Name, Start: e.Start, Commitment: e.Commitment()}
	if g.keying >= uint64(e.Start) {
		d.Seed = g.seed
	}
	return d
}

// KeepDraw returns the room with the seed of the draw that made the order of the
// queue, if it has that draw.
func (g *Gate) KeepDraw(r Room) Room {
	return r.seeds(func(e *Event) [32]byte {
		if g.keying != 0 && uint64(e.Start) == g.keying {
			return g.seed
		}
		return e.Seed
	})
}

// Redraws reports whether r gives another seed to the draw that made the order of
// the queue.
func (g *Gate) Redraws(r *Room) bool {
	k, seed := r.keyingAt(g.keying)
	return g.keying != 0 && k == g.keying && seed != g.seed
}

// Shuffled is the place of a ticket in a draw, by which those who gathered before
// start (Unix microseconds) stand in line, the smallest first:
//
//	⌊ first 8 bytes of HMAC-SHA-256(seed, id), big endian × start / 2⁶⁴ ⌋
//
// It is below start, so that whoever comes later stands behind all of them. Of
// equal places the smaller id is first.
func Shuffled(seed [32]byte, start uint64, id [16]byte) uint64 {
	return new(places).of(seed, start, id)
}

// places is Shuffled with a hash that is kept: a draw asks for all places at
// once. Not safe for concurrent use.
type places struct {
	seed [32]byte
	mac  hash.Hash
	id   [16]byte
	sum  [32]byte
}

func (p *places) of(seed [32]byte, start uint64, id [16]byte) uint64 {
	if p.mac == nil || p.seed != seed {
		p.mac, p.seed = hmac.New(sha256.New, seed[:]), seed
	}
	p.id = id
	p.mac.Reset()
	p.mac.Write(p.id[:])
	return scaled(binary.BigEndian.Uint64(p.mac.Sum(p.sum[:0])), start)
}

// checkEvents returns what is wrong with the events, each saying what would be
// right.
func (r *Room) checkEvents(bad func(format string, args ...any)) {
	if len(r.Events) > EventsMax {
		bad("events: %d; give at most %d", len(r.Events), EventsMax)
	}
	if len(r.Events) > 0 && r.Algorithm != ByCut {
		bad("events: they need algorithm cut")
	}
	if len(r.Events) > 0 && r.Event != (Event{}) {
		bad("events: the one that holds follows from the list; leave it out")
	}
	for i := range r.Events {
		e := &r.Events[i]
		if e.Prequeue <= 0 || e.Start < e.Prequeue || e.End <= e.Start {
			bad("events[%d]: pre-queue %d, start %d and end %d; give them in this order", i, e.Prequeue, e.Start, e.End)
		}
		if i > 0 && e.Prequeue < r.Events[i-1].End {
			bad("events[%d]: it begins before events[%d] ends; give them by time, one after the other", i, i-1)
		}
		if e.Target < 0 || e.Target > visitorsMax || e.NewPerMinute < 0 || e.NewPerMinute > visitorsMax || e.Session < 0 || e.Method > Reject || e.Set > setAll {
			bad("events[%d]: a setting is out of its range", i)
		}
	}
}
