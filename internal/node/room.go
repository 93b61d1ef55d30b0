package node

import (
	"container/heap"
	"fmt"
	"slices"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/qpid"
)

// visitor is one ticket at its home node. There may be millions: it takes 80
// bytes, and has no pointers for the garbage collector to follow.
type visitor struct {
	id      qpid.ItemID
	stamp   uint64
	wave    uint64 // number of the wave that made its turn certain
	seen    int64  // boot time of the last check-in; on the site: pass time at which the visit began
	due     int64  // boot time at which something is due
	expires int64  // pass time: of the pass; of the parked: boot time until which it has to listen, see claim
	gen     uint32
	shown   uint32 // last position shown; 0: none
	refresh uint32 // ms until the next check-in, as told
	slot    uint32 // of the wheel; 0: none
	number  uint32 // of this record, see visitors
	stage   stage
	marks   marks
	missed  uint8 // calls that its browser was told of and let pass
	slept   uint8 // calls that passed while it did not ask
}

// past is what there is to say of the few who came from a lost node, or go on to
// another browser.
type past struct {
	adopted eviction.Account   // whose session it was; zero: ours
	earlier []eviction.Account // before that: the pass may be of one of them
	homes   Homes              // of a place taken over; zero: it began here
	next    qpid.ItemID        // of a place that was stamped anew: what it is now
	link    qpid.ItemID        // by which another browser may take the place over; it may be no good any more
	hand    uint8              // how often that has happened
}

func (v *visitor) weight() qpid.Weight { return qpid.Weight{Stamp: v.stamp, ID: v.id} }

// silence is for how long it may not check in before it is parked, in µs.
func (v *visitor) silence() int64 { return 3 * int64(v.refresh) * 1000 }

// stage is where a visitor is.
type stage uint8

const (
	queued   stage = iota // in the queue
	drawn                 // entitled by a draw or a deleteMin, not yet called
	called                // has a slot, has not come yet
	parked                // silent: out of the queue until it checks in
	onSite                // has a pass
	spent                 // the session is over; remembered so that copies of the ticket are refused
	dropped               // given up; remembered likewise
	replaced              // stamped anew as another place; its ticket stands for that one
)

// room is one waiting room at one node.
type room struct {
	node *Node
	name string
	gate *eviction.Gate
	q    *qpid.Node   // owns the gate's queue: everyone enters and leaves it here
	cut  eviction.Cut // up to which entitlements have been logged

	roll
	uses
	elsewhere
	copied
	onDisk
	waits waits

	attention
	unseen bool             // something was installed, and nobody has looked whether all is as it must be
	broken *eviction.Broken // given up; nil: it is not
}

// roll is who is here, and who was and is not forgotten.
//
// Invariant, but in a broken room: everybody queued is in the gate's queue, and everybody
// drawn in due. parked is how many are, and spent how many are only remembered: they are
// over, or stand for another place.
type roll struct {
	visitors      visitors
	pasts         map[qpid.ItemID]past // of the few who have one
	due           line                 // drawn, in the order of their turn
	wheel         wheel
	parked, spent int
	forgettable   []qpid.ItemID // spent and dropped, oldest first
}

// uses are what the slots in use are for.
//
// Invariant: there is a slot in use for each of called, onSite, held, the deleteMins
// under way and the lines that are being struck (onDisk), and for nothing else.
type uses struct {
	called, onSite int     // visitors
	held           []int64 // pass times until which slots are used by passes that nobody here has: see takeIn
	deletes        deletes
	wanting        []Pass // of lost nodes, that wait for a slot here: first come, first served
}

// elsewhere is who is, or was, at another node too.
type elsewhere struct {
	taken  []takenTicket // taken over from other nodes, by epoch
	moved  moved
	links  links
	giving giving
}

func newRoom(n *Node, g *eviction.Gate, now eviction.Time) *room {
	q, err := qpid.New(qpid.Config{Self: n.c.Self.Name, Queue: g.Queue})
	if err != nil {
		panic(fmt.Sprintf("node: room %q: %v", g.Room().Name, err))
	}
	r := &room{node: n, name: g.Room().Name, gate: g, q: q, cut: g.Cut(), roll: roll{pasts: make(map[qpid.ItemID]past)}, attention: attention{wakes: ever}}
	r.wheel = newWheel(now.Boot, &r.visitors)
	g.Prepare = r.prepare
	g.Keep = r.keepFirst
	g.Copies = func(list []eviction.Member) *eviction.Keeping {
		return &eviction.Keeping{Bare: r.barest(list), Keeps: r.firstKept(list), Covered: r.coveredBy(list), Visits: r.countVisits(list)}
	}
	if n.writes() {
		r.takeUpLines()
		g.Earlier = r.earlier
	}
	heap.Push(&n.dues.agenda, r)
	r.stir()
	return r
}

// prepare makes the room ready for a wave's snapshot: re-keyed if an event has
// begun, and frozen.
func (r *room) prepare(t uint64) {
	switch rekeyed := r.gate.Rekey(t); {
	case r.broken != nil:
		r.q.Freeze() // it is empty
		return
	case rekeyed:
		r.cut = r.gate.Cut()
		line := make([]qpid.Weight, 0, r.gate.Queue.Len())
		r.visitors.all(func(v *visitor) {
			if v.stage == queued {
				line = append(line, r.gate.Key(v.weight()))
			}
			if v.stamp < r.gate.Keying() {
				v.shown = 0 // the draw may have put it further back
			}
		})
		r.q.Refill(line)
		r.rekeyCopies()
	}
	r.q.Freeze()
	r.stir()
	r.gate.Called = r.called
}

// enqueue puts v in line at its own place.
func (r *room) enqueue(v *visitor) {
	r.stir()
	if v.has(entitled) && !r.byCut() {
		v.stage = drawn
		r.due.push(v.id)
		r.gate.Due++
		r.copy(v)
		return
	}
	v.stage = queued
	r.waits.visits.Join(int64(v.stamp), r.node.ev.LastNow())
	if !r.q.Insert(r.gate.Key(v.weight())) {
		panic(r.breach(fmt.Sprintf("nobody is in line twice, as %v is", v.weight())))
	}
	r.copy(v)
}

// dequeue takes v out of line, wherever it stands.
func (r *room) dequeue(v *visitor) {
	if v.stage == queued {
		r.waits.visits.Leave(int64(v.stamp), r.node.ev.LastNow())
	}
	r.takeOut(v)
}

// givesUp takes v out of line, who does not wait any longer or is silent.
func (r *room) givesUp(v *visitor) {
	if v.stage == queued {
		r.waits.visits.GaveUp(int64(v.stamp), r.node.ev.LastNow())
	}
	r.takeOut(v)
}

func (r *room) takeOut(v *visitor) {
	r.stir()
	switch v.stage {
	case queued:
		if !r.q.Remove(r.gate.Key(v.weight())) {
			panic(r.breach(fmt.Sprintf("who waits is in line, as %v is not", v.weight())))
		}
		if r.bare != nil {
			r.uncovered(v)
		}
	case drawn:
		r.gate.Due-- // its entry in r.due is skipped when its turn comes
	default:
	}
}

// install takes in what a commit changed.
func (r *room) install(now eviction.Time, in eviction.Installed) {
	r.stir()
	r.unseen, r.node.copies.look = true, true
	if r.broken != nil {
		r.installBroken(now, &in)
		return
	}
	if in.Reset {
		r.reset(now)
	}
	for i := range in.Visits {
		r.takeIn(now, in.From, &in.Visits[i])
	}
	if in.Resume && r.node.writes() {
		r.resume(now)
	}
	for i, w := range in.Entitled {
		if v := r.visitors.get(w.ID); v != nil && v.stage == queued {
			r.entitle(v, in.Epoch.Num, qpid.Weight{Stamp: uint64(i), ID: w.ID})
		}
	}
	for _, w := range in.Twins {
		if v := r.visitors.get(w.ID); v != nil && v.stage == queued {
			r.dequeue(v)
			r.park(v, now)
		}
	}
	if in.QPID != nil {
		if err := r.q.Install(*in.QPID); err != nil {
			r.gate.Touch() // the queue stays frozen until the next wave
		}
	}
	if in.Delete > 0 {
		r.deletes.left = in.Delete
	}
}

// reset answers for a ledger that is gone: the called wait again at their old
// place, sessions run out by themselves.
func (r *room) reset(now eviction.Time) {
	r.closeLines()
	r.guarded = guarded{} // heirs keep their visits as they are: no pass was called back
	for _, v := range r.sortedVisitors() {
		switch v.stage {
		case called:
			r.takeBack(v, now)
		case onSite: // not spent: its pass is good until it expires, and may be taken over
			r.onSite--
			r.waits.visits.Forget(v.seen, r.node.ev.LastNow())
			if !r.mayNotBeIn(v) {
				r.node.noteUsed(v.id, now) // nobody here would tell of that when this node takes its leave
			}
			r.remove(v)
		default:
		}
	}
	for _, o := range r.deletes.active {
		if o.told { // its slot is gone, its caller still waits
			r.node.taken = append(r.node.taken, qpid.Answer{Op: o.id, Outcome: qpid.Refused})
		}
	}
	r.deletes, r.held = deletes{}, nil
	r.node.tellUsed(now) // once: it takes a look at all members
}

// sortedVisitors returns everyone by weight.
func (r *room) sortedVisitors() []*visitor {
	all := make([]*visitor, 0, r.visitors.len())
	r.visitors.all(func(v *visitor) { all = append(all, v) })
	slices.SortFunc(all, func(a, b *visitor) int { return a.weight().Compare(b.weight()) })
	return all
}

// advance runs deleteMins, gives slots to the sessions of lost nodes, which come before
// anybody from the queue, entitles whom a raised cut reaches, and calls.
func (r *room) advance(now eviction.Time) {
	r.drainQPID(now)
	if len(r.wanting) > 0 {
		r.adoptWanting(now)
	}
	r.entitleByCut()
	r.call(now)
	r.rest()
}

// tick looks at whoever is due.
func (r *room) tick(now eviction.Time) {
	if r.broken != nil {
		r.releaseHeld(now)
		r.advance(now)
		return
	}
	r.wheel.expire(now.Boot, func(v *visitor) { r.lookAt(v, now) })
	r.deletes.expire(r, now)
	r.moved.expire(now.Boot)
	r.releaseHeld(now)
	r.advance(now)
}

// lookAt does what is due for v: park the silent, free what has run out,
// forget what may be forgotten.
func (r *room) lookAt(v *visitor, now eviction.Time) {
	c := r.gate.Room()
	switch v.stage {
	case queued, drawn:
		if until := r.waitsFor(v); now.Boot < until {
			v.due = until
			r.schedule(v)
			return
		}
		r.givesUp(v)
		r.park(v, now)
	case called:
		r.called--
		r.waits.visits.NoShow()
		r.release(v, now)
		r.unguard(v.id)
		v.pass()
		r.park(v, now)
		r.recorded().NoShow = true
	case parked:
		if now.Boot-v.seen < c.TicketTTL.Microseconds() {
			r.watch(v, now)
			return
		}
		r.parked--
		r.record(Dropped, v.weight(), 0, qpid.Weight{})
		v.marks |= unheard
		r.retire(v, dropped, now)
	case onSite:
		if left := v.expires + 2*r.skew() - r.node.ev.Now(now); left > 0 {
			v.due = now.Boot + left
			r.schedule(v)
			return
		}
		r.leaveSite(v, now)
	case spent, dropped, replaced:
		r.forget(v)
	}
}

// waitsFor is the boot time up to which v may be silent. Whoever asked a node that has
// stood still since, or listens there, hears nothing for as long as their browser waits:
// they have as long as anybody has from when that node was lost.
func (r *room) waitsFor(v *visitor) int64 {
	return max(v.seen+v.silence(), r.node.ev.LostAt()+3*r.longestRefresh().Microseconds())
}

// longestRefresh is how long somebody may have been told to wait before they ask again,
// with the tenth by which refreshAfter spreads them.
func (r *room) longestRefresh() time.Duration { return r.gate.Room().Refresh * 11 / 10 }

func (r *room) skew() int64 { return r.node.c.Cluster.WithDefaults().MaxSkew.Microseconds() }

// watch sets when to look at a waiting or parked visitor next.
func (r *room) watch(v *visitor, now eviction.Time) {
	after := v.silence()
	if v.stage == parked {
		after = r.gate.Room().TicketTTL.Microseconds()
	}
	v.due = max(v.seen+after, now.Boot)
	r.schedule(v)
}

func (r *room) park(v *visitor, now eviction.Time) {
	v.stage = parked
	r.parked++
	r.copy(v)
	r.record(Parked, v.weight(), 0, qpid.Weight{})
	r.watch(v, now)
}

func (r *room) release(v *visitor, now eviction.Time) {
	if v != nil && r.strike(v.id) {
		return // the slot is free when that is durable
	}
	r.stir()
	r.gate.Ledger().Release()
	r.gate.Touch()
}

// leaveSite ends a session: its slot is free.
func (r *room) leaveSite(v *visitor, now eviction.Time) {
	r.onSite--
	r.waits.visits.End(v.seen, r.node.ev.LastNow())
	r.release(v, now)
	r.unguard(v.id)
	r.ours(v)
	r.record(Ended, v.weight(), 0, qpid.Weight{})
	clock := r.node.ev.Now(now)
	e := r.recorded()
	e.Early, e.Visit, e.Terms = clock < v.expires, max(0, min(clock, v.expires)-v.seen), r.visitTerms()
	r.retire(v, spent, now)
}

// retire keeps v for a while only to refuse copies of its ticket and pass.
// With too many of them the oldest are forgotten.
func (r *room) retire(v *visitor, s stage, now eviction.Time) {
	v.stage = s
	r.uncopy(v)
	if !v.has(unheard) {
		delete(r.pasts, v.id)
	}
	r.spent++
	life := r.gate.Room().TicketTTL.Microseconds()
	switch {
	case s == replaced:
		life = max(life, unreachedFor)
	case s == spent:
		life = max(life, v.expires-r.node.ev.Now(now))
	case v.has(unheard):
		life = max(life, unreachedFor)
	}
	v.due = now.Boot + life + 2*r.skew()
	r.schedule(v)
	r.forgettable = append(r.forgettable, v.id)
	for r.spent > r.node.c.SpentMax && len(r.forgettable) > 1 {
		if old := r.visitors.get(r.forgettable[0]); old != nil && old != v && old.stage >= spent {
			r.forget(old)
		}
		r.forgettable = r.forgettable[1:]
	}
	for len(r.forgettable) > 0 {
		if old := r.visitors.get(r.forgettable[0]); old != nil && old.stage >= spent {
			break
		}
		r.forgettable = r.forgettable[1:]
	}
}

func (r *room) forget(v *visitor) {
	r.spent--
	r.remove(v)
}

func (r *room) remove(v *visitor) {
	r.uncopy(v)
	r.unguard(v.id)
	delete(r.pasts, v.id)
	r.visitors.remove(v)
}
