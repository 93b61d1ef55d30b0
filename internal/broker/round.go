package broker

import (
	"slices"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/pqueue"
	"github.com/anteroom/anteroom/qpid"
)

const (
	fanout       = 8              // children of a node in the tree
	roundWithin  = 500_000        // µs until a round that is not over is given up
	roundEvery   = 20_000         // µs between the beginnings of two rounds at least
	complainAt   = 500_000        // µs between two complaints of a frozen node
	strikesMax   = 3              // rounds that a member may miss before it is left out
	pendingMax   = 4096           // deleteMins that wait for the end of a round, here
	epochLeapMax = 86_400_000_000 // µs by which a number may be ahead of this node's clock
)

// round is this node's part in the rounds, and what the last one made.
type round struct {
	epoch  qpid.Epoch // highest seen. Invariant: never falls
	made   qpid.Epoch // installed; zero: none yet
	madeAt int64      // boot time of its install
	list   []eviction.Member
	fronts []Front // of the snapshot that is installed: by queue, then by weight
	frozen bool
	by     eviction.Member // coordinator of the round for which this node is frozen
	asked  []eviction.Member
	late   Message // a gather that came before the wave that explains it
	need   bool    // something was lost: another round, please
	toldAt int64
	vouch  vouch
	inAt   int64 // boot time at which this node was in the last round for sure, with authority
	// stale: the waves went on without this node for a while, or had no quorum, and
	// so may the rounds have. It has no authority until another round.
	stale bool

	// Of a coordinator:
	open    bool
	began   int64
	waiting []eviction.Member
	states  []State
	heard   []Front
	whole   bool // everyone who may know of a grant has reported
	known   bool // somebody was in a round before
	strikes map[eviction.Member]int
	reports []slotReport

	shares []Slots   // what the coordinator has said of the round to come
	early  []Message // with slots, of that round

	hearings map[eviction.Member]*hearing // of the others in it, if there are exclusive keys
}

// vouch is a coordinator's word that the installed round is still the last one.
type vouch struct {
	asked int64 // boot time at which this node last asked
	until int64 // boot time until which an answer holds
}

func (r *round) installed() bool { return r.made != qpid.Epoch{} }

// coordinator is the most senior member of the view.
func (b *Broker) coordinator() eviction.Member {
	if len(b.view.List) == 0 {
		return eviction.Member{}
	}
	return b.view.List[0]
}

// steer does what has become due with an input: rounds, and takes that were woken.
func (b *Broker) steer() {
	b.askAgain()
	b.steerRound()
}

// steerRound begins a round if one is due, or asks for one.
func (b *Broker) steerRound() {
	r := &b.round
	lead := b.coordinator()
	if lead == (eviction.Member{}) {
		return
	}
	if lead != b.self {
		r.open = false
		if (r.need || r.frozen || r.made.Coordinator != lead.Name) && b.now.Boot >= r.toldAt+complainAt {
			r.toldAt = b.now.Boot
			b.send(Message{Kind: MsgBroken, To: lead, Epoch: r.epoch})
		}
		return
	}
	if r.open && b.now.Boot >= r.began+roundWithin {
		b.giveUp()
	}
	if r.open || r.installed() && b.now.Boot < r.began+roundEvery {
		return
	}
	if want := b.wanted(); r.need || r.frozen || !slices.Equal(want, r.list) {
		b.begin(want)
	}
}

// wanted are the members to have in a round: all but those that missed the last ones.
func (b *Broker) wanted() []eviction.Member {
	return slices.DeleteFunc(slices.Clone(b.view.List), func(m eviction.Member) bool { return b.round.strikes[m] >= strikesMax })
}

// giveUp ends a round that somebody did not answer.
func (b *Broker) giveUp() {
	r := &b.round
	r.open = false
	for _, m := range r.waiting {
		r.strikes[m]++
	}
}

func (b *Broker) begin(list []eviction.Member) {
	r := &b.round
	r.open, r.need, r.began, r.whole, r.known = true, false, b.now.Boot, true, false
	r.states, r.heard, r.reports = nil, nil, nil
	// Numbers go by the clock, so that a later life of this node, which has
	// forgotten all of them, does not use one again.
	r.epoch = qpid.Epoch{Num: max(r.epoch.Num+1, uint64(max(0, b.now.Clock))), Coordinator: b.self.Name}
	kept := make(map[eviction.Member]int, len(r.strikes))
	for _, m := range b.view.List {
		if n := r.strikes[m]; n > 0 {
			kept[m] = n
		}
	}
	r.strikes = kept
	r.waiting = nil
	for _, m := range list {
		if m != b.self {
			r.waiting = append(r.waiting, m)
			b.send(Message{Kind: MsgGather, To: m, Epoch: r.epoch, List: list})
		}
	}
	b.freeze(b.self, list)
	b.addSlots(b.self, r.made, b.reportSlots())
	b.add(b.self, b.report(), r.installed())
	b.decide()
}

// freeze stops all queues until the round's commit.
func (b *Broker) freeze(by eviction.Member, list []eviction.Member) {
	r := &b.round
	r.frozen, r.by, r.asked, r.toldAt = true, by, slices.Clone(list), b.now.Boot
	r.need = false // this round makes good what was lost before it
	r.vouch, r.shares, r.early = vouch{}, nil, nil
	b.recount()
	for _, q := range b.queues {
		q.q.Freeze()
	}
}

// report is what this node knows and others should: modes and paces. It is
// whole if all who were in this node's last round are in this one too.
func (b *Broker) report() reported {
	r := &b.round
	var states []State
	for _, q := range b.queues {
		s := State{Queue: q.c.Name, Mode: q.mode}
		if q.c.Interval > 0 {
			s.Pace = q.pacer.pace(b.now.Boot)
		}
		if s.Mode != (pqueue.ModeSetting{}) || s.Pace.Blocked > 0 || len(s.Pace.Grants) > 0 {
			states = append(states, s)
		}
	}
	whole := true
	for _, m := range r.list {
		whole = whole && slices.Contains(r.asked, m)
	}
	return reported{states, b.fronts(), whole}
}

type reported struct {
	states []State
	fronts []Front
	whole  bool
}

// farAhead reports whether no clock that is nearly right makes such a number.
func (b *Broker) farAhead(e qpid.Epoch) bool { return e.Num > uint64(max(0, b.now.Clock))+epochLeapMax }

func (b *Broker) onGather(m Message) {
	r := &b.round
	switch {
	case m.Epoch.Compare(r.epoch) <= 0:
		b.send(Message{Kind: MsgBroken, To: m.From, Epoch: r.epoch})
		return
	case m.From != b.coordinator() || !slices.Contains(m.List, b.self) || !slices.Contains(m.List, m.From) || b.farAhead(m.Epoch):
		r.late = m // one of the two does not know yet what the last wave said
		return
	}
	r.epoch, r.late = m.Epoch, Message{}
	b.freeze(m.From, m.List)
	is := b.report()
	b.tellSettings(m.From)
	b.sendSlots(MsgReport, m.From, r.made, b.reportSlots())
	b.send(Message{Kind: MsgFrozen, To: m.From, Epoch: m.Epoch, States: is.states, Fronts: is.fronts, Whole: is.whole, Known: r.installed()})
}

// add takes in what a member reported. A member that was in no round yet has
// nothing to report, and is no reason to wait; if nobody was in any, nobody
// knows what went before.
func (b *Broker) add(from eviction.Member, is reported, known bool) {
	r := &b.round
	r.whole, r.known = r.whole && is.whole, r.known || known
	r.states = append(r.states, is.states...)
	at := slices.Index(r.asked, from)
	for _, f := range is.fronts[:min(len(is.fronts), frontsMax/len(r.asked))] {
		f.At = at
		r.heard = append(r.heard, f)
	}
}

func (b *Broker) onFrozen(m Message) {
	r := &b.round
	i := slices.Index(r.waiting, m.From)
	if !r.open || m.Epoch != r.epoch || i < 0 {
		return
	}
	delete(r.strikes, m.From)
	r.waiting = slices.Delete(r.waiting, i, i+1)
	b.add(m.From, reported{m.States, m.Fronts, m.Whole}, m.Known)
	b.decide()
}

// decide ends a round that everybody answered.
func (b *Broker) decide() {
	r := &b.round
	if !r.open || len(r.waiting) > 0 {
		return
	}
	r.open = false
	list, states, fronts, whole := r.asked, r.states, merge(r.heard), r.whole && r.known
	r.states, r.heard = nil, nil
	r.shares = b.share()
	for _, m := range list {
		if m != b.self {
			b.tellSettings(m)
			b.sendSlots(MsgShares, m, qpid.Epoch{}, r.shares)
			b.send(Message{Kind: MsgCommit, To: m, Epoch: r.epoch, States: states, Fronts: fronts, Whole: whole})
		}
	}
	b.carryOut(states, fronts, whole)
}

func (b *Broker) onCommit(m Message) {
	r := &b.round
	if r.frozen && m.Epoch == r.epoch && m.From == r.by {
		b.carryOut(m.States, m.Fronts, m.Whole)
	}
}

// carryOut installs the round: a network of the queues' fronts.
func (b *Broker) carryOut(states []State, fronts []Front, whole bool) {
	r := &b.round
	r.fronts = fronts
	r.made, r.list, r.frozen, r.stale = r.epoch, r.asked, false, false
	r.toldAt, r.madeAt = b.now.Boot, b.now.Boot
	b.stats.Rounds++
	b.recount()
	for _, s := range states {
		q, code := b.use(s.Queue)
		if code != pqueue.OK {
			continue
		}
		b.adoptMode(q, s.Mode)
		q.pacer.merge(b.now.Boot, s.Pace)
	}
	b.dealOut()
	b.rekey()
	for _, q := range b.queues {
		if !whole && q.c.Interval > 0 {
			q.pacer.block(b.now.Boot, q.c.Interval+3*b.c.Fresh)
		}
		q.touched = false
		b.install(q)
	}
	b.dealtOut()
	for _, q := range b.queues {
		b.goOn(q)
	}
}

// install gives q the tables of the last round. What has changed at this node
// since it was frozen follows.
func (b *Broker) install(q *queue) {
	r := &b.round
	if err := q.q.Install(r.snapshot(q.c.Name, slices.Index(r.list, b.self))); err != nil {
		r.need = true
	}
	if r.frozen {
		q.q.Freeze()
	}
	q.since = b.now.Boot
	b.pump(q)
}

func (b *Broker) onBroken(m Message) {
	r := &b.round
	if m.Epoch.Num > r.epoch.Num && !b.farAhead(m.Epoch) {
		r.epoch = qpid.Epoch{Num: m.Epoch.Num, Coordinator: r.epoch.Coordinator}
		r.open = false // its number is spent
	}
	delete(r.strikes, m.From)
	if early := r.open && slices.Contains(r.asked, m.From) && m.Epoch.Compare(r.epoch) < 0; !early {
		r.need = true // else it had not heard of this round yet
	}
}

// authority reports whether this node, as a root, may let out items of a queue
// with an interval, or of one whose slots the nodes share: nobody else can be the root
// of a later round, nor will be until it has waited for longer than this holds.
func (b *Broker) authority() bool {
	r := &b.round
	lead := b.coordinator()
	switch {
	case r.frozen || r.stale || !r.installed():
		return false
	case lead == b.self:
		if !b.primary() || r.made.Coordinator != b.self.Name || !slices.Contains(r.list, b.self) {
			return false
		}
		r.inAt = max(r.inAt, b.view.At)
		return true
	}
	if b.now.Boot >= r.vouch.asked+b.c.Fresh/4 {
		r.vouch.asked = b.now.Boot
		b.send(Message{Kind: MsgVouch, To: lead, Epoch: r.made, Seq: uint64(b.now.Boot)})
	}
	return b.now.Boot < r.vouch.until
}

// primary reports whether the last wave had a quorum, and is not long ago.
func (b *Broker) primary() bool { return b.view.Primary && b.now.Boot < b.view.At+b.c.Fresh }

func (b *Broker) onVouch(m Message) {
	r := &b.round
	if b.coordinator() == b.self && b.primary() && !r.stale && r.made == m.Epoch && r.epoch == r.made {
		b.send(Message{Kind: MsgVouched, To: m.From, Epoch: m.Epoch, Seq: m.Seq})
	}
}

func (b *Broker) onVouched(m Message) {
	r := &b.round
	asked := int64(m.Seq)
	if m.From == b.coordinator() && m.Epoch == r.made && !r.frozen && asked <= b.now.Boot {
		r.vouch.until, r.inAt = max(r.vouch.until, asked+b.c.Fresh), max(r.inAt, asked)
		for _, q := range slices.Clone(b.active) {
			if q.c.Interval > 0 || q.shares() {
				b.goOn(q)
			}
		}
	}
}
