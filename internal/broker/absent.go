package broker

import (
	"cmp"
	"math"
	"slices"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/pqueue"
	"github.com/anteroom/anteroom/qpid"
)

// absentMax bounds the names that are remembered of nodes which are gone.
const absentMax = 1000

// recall notes who has been in a view, and is not now.
func (b *Broker) recall(v View) {
	for _, m := range b.view.List {
		if !slices.Contains(b.gone, m.Name) {
			b.gone = append(b.gone, m.Name)
		}
	}
	here := func(name qpid.NodeID) bool { return contains(v, name) }
	b.gone = slices.DeleteFunc(b.gone, here)
	b.gone = b.gone[max(0, len(b.gone)-absentMax):]
}

func contains(v View, name qpid.NodeID) bool {
	for _, m := range v.List {
		if m.Name == name {
			return true
		}
	}
	return false
}

// absent are the nodes that may have items of a queue, or of any if name is
// empty, and cannot be asked, because they are not in the view: those that still
// have a vote, and for a durable queue all that were ever seen here, since their
// disks keep what they had.
func (b *Broker) absent(name string) []qpid.NodeID {
	if name == "" && slices.ContainsFunc(b.queues, durable) {
		return b.absentOf(Durable)
	}
	return b.absentOf(b.kindOf(name))
}

func (b *Broker) absentOf(kind Kind) []qpid.NodeID {
	if kind == Replicated {
		return nil
	}
	var names []qpid.NodeID
	for _, v := range b.view.Voters {
		if !contains(b.view, v) {
			names = append(names, v)
		}
	}
	if kind == Durable {
		names = append(names, b.gone...)
	}
	return lacking(names, nil)
}

// unopened are the members of the view that have not said yet that their durable log
// is open, as when there is no room for it: they may have items that no take finds. A
// log that is open stays so.
type unopened struct {
	members []eviction.Member
	askAt   int64 // boot time, µs
}

// unopenedEvery is how often they are asked, in µs.
const unopenedEvery = 500_000

// meet takes in the members of a new view; before are those of the last one.
func (b *Broker) meet(before []eviction.Member) {
	u := &b.unopened
	if !slices.ContainsFunc(b.queues, durable) {
		return
	}
	u.members = slices.DeleteFunc(u.members, func(m eviction.Member) bool { return !slices.Contains(b.view.List, m) })
	for _, m := range b.view.List {
		if m != b.self && !slices.Contains(before, m) {
			u.members = append(u.members, m)
			u.askAt = b.now.Boot
		}
	}
	b.askUnopened()
}

// askUnopened asks them for anything that is in the log.
func (b *Broker) askUnopened() {
	u := &b.unopened
	if len(u.members) == 0 || b.now.Boot < u.askAt {
		return
	}
	u.askAt = b.now.Boot + unopenedEvery
	q := b.queues[slices.IndexFunc(b.queues, durable)]
	for _, m := range slices.Clone(u.members) {
		b.ask(m, pqueue.Command{Op: pqueue.OpStats, Queue: q.c.Name}, func(r pqueue.Result) {
			if i := slices.Index(u.members, m); i >= 0 && r.Code == pqueue.OK {
				u.members = slices.Delete(u.members, i, i+1)
				b.recount()
			}
		})
	}
}

func durable(q *queue) bool { return q.c.Kind == Durable }

// unseen are the nodes that may have items of a queue of that kind which no take finds.
func (b *Broker) unseen(kind Kind) []qpid.NodeID {
	names := b.absentOf(kind)
	if kind == Durable {
		for _, m := range b.unopened.members {
			names = append(names, m.Name)
		}
	}
	return lacking(names, nil)
}

// outside are those of some members that are not in the round that is installed here, or
// in the one to come: it goes on without who is silent for long.
func (b *Broker) outside(members []eviction.Member) []qpid.NodeID {
	var names []qpid.NodeID
	r := &b.round
	for _, m := range members {
		if r.installed() && (!slices.Contains(r.list, m) || r.frozen && !slices.Contains(r.asked, m)) {
			names = append(names, m.Name)
		}
	}
	return names
}

// missed are the nodes that were unseen or outside lately, of queues in memory and of
// durable ones. A take whose items were let out without them says so, also if they are
// back by then.
type missed [Replicated][]departed

type departed struct {
	name  qpid.NodeID
	until int64 // boot time; math.MaxInt64: it still is
}

// missedFor is how long they are remembered, in µs: longer than any deleteMin is under way.
const missedFor = 600_000_000

// recount notes who is unseen or outside after a change of the view, of the round or of
// the logs.
func (b *Broker) recount() {
	for kind := range b.missed {
		names := lacking(b.unseen(Kind(kind)), b.outside(b.view.List))
		all := slices.DeleteFunc(b.missed[kind], func(d departed) bool { return d.until < b.now.Boot-missedFor })
		for i := range all {
			if all[i].until == math.MaxInt64 {
				all[i].until = b.now.Boot
			}
		}
		for _, name := range names {
			i, known := slices.BinarySearchFunc(all, name, func(d departed, name qpid.NodeID) int { return cmp.Compare(d.name, name) })
			if !known {
				all = slices.Insert(all, i, departed{name: name})
			}
			all[i].until = math.MaxInt64
		}
		b.missed[kind] = all
	}
}

// missedSince are those that were unseen or outside at that boot time or since. Of a
// replicated queue nobody is: who leads its log has all items.
func (b *Broker) missedSince(kind Kind, at int64) []qpid.NodeID {
	if kind == Replicated {
		return nil
	}
	var names []qpid.NodeID
	for _, d := range b.missed[kind] {
		if d.until >= at {
			names = append(names, d.name)
		}
	}
	return names
}

// inRound reports whether the installed round has a member of that name.
func (b *Broker) inRound(name qpid.NodeID) bool {
	return slices.ContainsFunc(b.round.list, func(m eviction.Member) bool { return m.Name == name })
}

// lacking are those that could not be asked, and those that did not answer.
func lacking(absent, missing []qpid.NodeID) []qpid.NodeID {
	all := slices.Concat(absent, missing)
	slices.Sort(all)
	return slices.Compact(all)
}
