package eviction

import (
	"maps"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/anteroom/anteroom/qpid"
)

// S13 where each wave has a quorum, whoever leads: coordinators take over from one another and
// back, or stand still and go on, with a wave under way meanwhile or not; some of their waves
// deal nothing, commits do not reach a node, and nodes are restarted with their disks, some of them
// of a version before that knows of no bucket.
func TestPacersOfQuorumsHoldTheRate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newQuorumWorld(rapid.IntRange(1, 5).Draw(t, "nodes"), rapid.SampledFrom([]int{6, 60, 61, 1200}).Draw(t, "rate"))
		for range 2 {
			for range rapid.IntRange(0, 3).Draw(t, "before") {
				w.happens(t)
			}
			w.run(t, 60*second, 0)
			for range rapid.IntRange(1, 6).Draw(t, "while") {
				w.run(t, rapid.SampledFrom([]int64{0, 1, 2, 4, 6, 9, 15, 50, 310}).Draw(t, "later")*200_000, rapid.SampledFrom([]int{0, 1, 1 << 20, 1 << 20}).Draw(t, "come"))
				w.happens(t)
			}
			w.run(t, 62*second, 1<<20)
		}
	})
}

// quorumWorld is nodes of which one or another leads, always with a quorum.
type quorumWorld struct {
	*paceWorld
	nodes  []*pacedNode
	lead   *pacedNode
	listed []int        // what the lead lists beside itself
	idle   bool         // its waves deal nothing
	slow   bool         // its waves reach some nodes later
	begun  *pacedWave   // one that has not reached all
	open   []*pacedWave // asked and not decided
}

type pacedNode struct {
	Member
	pacer    pacer
	led      bool // in this life
	old      bool // it neither leaves a bucket nor tells of one
	restored bool // it knows from its disk alone
	wave     uint64
	met      map[Member]int64
}

// pacedWave is one that was asked.
type pacedWave struct {
	num     uint64
	by      *pacedNode
	as      Member
	at      int64
	idle    bool
	list    []*pacedNode
	members []Member
	met     map[Member]int64

	replies  []RoomNode
	asked    []int64
	restored []bool
	knew     []map[Member]int64
}

const paceDeadline = 400_000

func newQuorumWorld(nodes, perMinute int) *quorumWorld {
	w := &quorumWorld{paceWorld: newPaceWorld(nodes, perMinute)}
	w.q.deadline = paceDeadline
	for i, m := range w.list {
		w.nodes = append(w.nodes, &pacedNode{Member: m, met: map[Member]int64{}, pacer: pacer{dueTo: never, away: never, dealt: never}})
		w.listed = append(w.listed, i)
	}
	w.leads(w.nodes[0], w.listed)
	return w
}

// leads has a node lead with these, which are a quorum with it, that did not until now.
func (w *quorumWorld) leads(n *pacedNode, with []int) {
	n.pacer.lead(w.now, paceDeadline, w.waves)
	n.led = true
	w.goesOn(n, with)
}

func (w *quorumWorld) goesOn(n *pacedNode, with []int) { w.lead, w.listed, w.idle = n, with, false }

// quorum draws who is listed.
func (w *quorumWorld) quorum(t *rapid.T) []int {
	all := make([]int, len(w.nodes))
	for i := range all {
		all[i] = i
	}
	return rapid.Permutation(all).Draw(t, "order")[:rapid.IntRange(len(all)/2+1, len(all)).Draw(t, "listed")]
}

func (w *quorumWorld) happens(t *rapid.T) {
	n := rapid.SampledFrom(w.nodes).Draw(t, "node")
	switch rapid.SampledFrom([]string{"lead", "lead", "stood", "list", "idle", "restart", "restart all", "restart listed", "deaf", "hears", "under way", "under way", "closed", "slow"}).Draw(t, "what") {
	case "lead":
		w.leads(n, w.quorum(t))
	case "stood":
		if n.led {
			w.goesOn(n, w.quorum(t))
		}
	case "list":
		w.listed = w.quorum(t)
	case "idle":
		w.idle = !w.idle
	case "restart":
		w.restart(t, n)
	case "restart all":
		for _, n := range w.nodes {
			w.restart(t, n)
		}
	case "restart listed": // and go on with who was not: most of those who led are lost
		for _, i := range w.listed {
			w.restart(t, w.nodes[i])
		}
		w.listed = w.quorum(t)
	case "deaf":
		w.deaf = n.Member
	case "hears":
		w.deaf = Member{}
	case "closed": // total_active_users: 0, and open again
		w.q.share, w.q.all = 1-w.q.share, 1-w.q.all
	case "slow": // to reach
		w.slow = !w.slow
	case "under way":
		w.open = append(w.open, w.ask(rapid.IntRange(0, 4).Draw(t, "asked")))
	}
}

// restart begins a life of a node that has forgotten who dealt.
func (w *quorumWorld) restart(t *rapid.T, n *pacedNode) {
	for m := range n.met {
		n.met[m] = w.now
	}
	n.met[n.Member] = w.now
	n.Boot++
	n.old = rapid.Bool().Draw(t, "old")
	n.pacer, n.restored, n.wave = pacer{from: never, dueTo: never, away: never, dealt: never}, true, 0
	n.led = false
	w.have[n.Member] = &purse{}
	w.have[n.Member].forgets(w.now)
	w.open = slices.DeleteFunc(w.open, func(v *pacedWave) bool { return v.by == n })
	if w.lead == n {
		if rapid.Bool().Draw(t, "it leads again") {
			w.leads(n, w.listed)
		} else {
			w.leads(rapid.SampledFrom(w.nodes).Draw(t, "leads"), w.listed)
		}
	}
}

// ask has the lead ask who is listed: itself and so many others now.
func (w *quorumWorld) ask(now int) *pacedWave {
	w.waves++
	v := &pacedWave{num: w.waves, by: w.lead, as: w.lead.Member, at: w.now, idle: w.idle, met: map[Member]int64{}}
	v.list = append(v.list, w.lead)
	for _, i := range w.listed {
		if w.nodes[i] != w.lead {
			v.list = append(v.list, w.nodes[i])
		}
	}
	for _, n := range v.list {
		v.members = append(v.members, n.Member)
	}
	w.askMore(v, min(1+now, len(v.list)))
	return v
}

// askMore asks of those who are listed as many as that in all: who has been in a later wave, or
// begun another life, does not reply.
func (w *quorumWorld) askMore(v *pacedWave, upTo int) {
	for i := len(v.replies); i < upTo; i++ {
		n := v.list[i]
		if n.wave >= v.num || n.Member != v.members[i] {
			return
		}
		h := w.have[n.Member]
		gather := &wave{epoch: v.epoch(), index: i, at: w.now}
		h.asks(gather, w.now)
		r := RoomNode{Index: i, Born: 1, Spent: h.spent, Dealt: h.dealtBy(), DealtAge: h.dealtAge(w.now), Left: h.left(gather, w.now)}
		h.spentThen = h.spent
		if w.now < h.tokenTo {
			r.Tokens = h.tokens
		}
		if n.old || v.by.old {
			r.Left = nil
		}
		n.wave = v.num
		v.replies, v.asked = append(v.replies, r), append(v.asked, w.now)
		v.restored = append(v.restored, n.restored)
		v.knew = append(v.knew, maps.Clone(n.met))
		for _, m := range v.members {
			n.met[m] = w.now
		}
	}
}

// meet is when who replied has met others, of those who are to be believed.
func (w *quorumWorld) meet(v *pacedWave) {
	remember := 0
	for _, restored := range v.restored {
		if !restored {
			remember++
		}
	}
	for i, met := range v.knew {
		for m, at := range met {
			if !v.restored[i] || 2*remember <= len(w.nodes) {
				v.met[m] = max(v.met[m], at)
			}
		}
	}
}

func (v *pacedWave) epoch() qpid.Epoch {
	return qpid.Epoch{Num: v.num, Coordinator: v.as.Name + "#" + qpid.NodeID(strconv.FormatUint(v.as.Boot, 10))}
}

// decide has a wave's coordinator deal, if it has not replied to another since, and carries out
// the commit at those who have not.
func (w *quorumWorld) decide(v *pacedWave, needs int) {
	if v.by.Member != v.as || v.by.wave != v.num || len(v.replies) < len(v.list) {
		return
	}
	w.meet(v)
	q := w.q
	q.wave, q.alone = v.num, true
	q.by, q.nodes, q.lately = v.epoch().Coordinator, len(v.list), len(v.list)
	for m, at := range v.met {
		if slices.Contains(v.members, m) {
			continue
		}
		age := w.now - at
		q.underWay = max(q.underWay, drifted(paceDeadline)-age)
		if age < drifted(minute) {
			q.lately++
		}
		if !slices.ContainsFunc(w.nodes, func(n *pacedNode) bool { return n.Name == m.Name && n.Boot > m.Boot }) {
			q.late = max(q.late, drifted(tokenLife)-age)
		}
	}
	p := &v.by.pacer
	names := make([]qpid.NodeID, len(w.nodes))
	for i, n := range w.nodes {
		names[i] = n.Name
	}
	q.known = (&decision{list: v.members, voters: Voters{Version: 1, Names: names}}).remember(v.replies)
	left := p.hear(w.now, q, v.members, v.replies)
	need := make([]int, len(v.list))
	for i := range need {
		need[i] = needs
	}
	c := &RoomCommit{Pace: Pace{Paced: true, Idle: v.idle}}
	tokens := p.fill(w.now, q)
	if v.idle {
		clear(need)
	}
	c.Tokens = p.deal(w.now, q, tokens, need, left, 0)
	c.Stay, c.Bucket = !v.idle && !p.known, p.leave(w.now, q)
	if v.by.old {
		c.Bucket = nil
	}
	for i, n := range v.list {
		if n.wave == v.num && n.Member == v.members[i] && n.Member != w.deaf {
			w.have[n.Member].refill(c, &wave{epoch: v.epoch(), index: i, at: v.asked[i]})
			n.restored = false
		}
	}
}

// run has the lead make waves, after each of which up to come people are let in at each node
// that has heard of one, and at the others as late as they may.
func (w *quorumWorld) run(t interface{ Fatalf(string, ...any) }, long int64, come int) {
	for end := w.now + long; w.now < end; {
		w.now += 200_000
		for _, v := range w.open {
			w.askMore(v, len(v.list))
		}
		switch v := w.begun; {
		case v != nil && v.by == w.lead && v.as == w.lead.Member && v.by.wave == v.num:
			w.askMore(v, len(v.list))
			w.decide(v, max(1, come))
			w.begun = nil
		case w.slow:
			w.begun = w.ask(len(w.listed) / 2)
		default:
			w.decide(w.ask(len(w.nodes)), max(1, come))
		}
		for _, v := range w.open {
			if w.now-v.at >= paceDeadline {
				w.decide(v, max(1, come))
			}
		}
		w.open = slices.DeleteFunc(w.open, func(v *pacedWave) bool { return w.now-v.at >= paceDeadline })
		for m, h := range w.have {
			listed := slices.ContainsFunc(w.nodes, func(n *pacedNode) bool { return n.Member == m && n.wave == w.waves })
			alive := slices.ContainsFunc(w.nodes, func(n *pacedNode) bool { return n.Member == m })
			if alive && (listed || w.now+200_000 >= h.tokenTo) {
				w.spend(m, come)
			}
		}
		if b := w.have[w.lead.Member].bucket; !b.valid() {
			t.Fatalf("a bucket that nobody would take in was left: %+v", b)
		}
		if n := w.most(); n > w.q.perMinute {
			t.Fatalf("%d let in within a minute at a rate of %d", n, w.q.perMinute)
		}
		for len(w.calls) > 0 && w.now-w.calls[0] >= minute {
			w.calls = w.calls[1:]
		}
	}
}
