package broker

import (
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
	kind := b.kindOf(name)
	if kind == Replicated {
		return nil
	}
	var names []qpid.NodeID
	for _, v := range b.view.Voters {
		if !contains(b.view, v) {
			names = append(names, v)
		}
	}
	anyDurable := name == "" && slices.ContainsFunc(b.queues, durable)
	if kind == Durable || anyDurable {
		for _, g := range b.gone {
			if !slices.Contains(names, g) {
				names = append(names, g)
			}
		}
	}
	slices.Sort(names)
	return names
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
			}
		})
	}
}

func durable(q *queue) bool { return q.c.Kind == Durable }

// unseen are the nodes that may have items of a queue which no take finds.
func (b *Broker) unseen(name string) []qpid.NodeID {
	names := b.absent(name)
	if b.kindOf(name) == Durable {
		for _, m := range b.unopened.members {
			names = append(names, m.Name)
		}
	}
	return lacking(names, nil)
}

// outside are the members of the view that may have items of a queue, and are not in
// the round that is installed here: it goes on without who is silent for long.
func (b *Broker) outside(name string) []qpid.NodeID {
	var names []qpid.NodeID
	for _, m := range b.keepers(name) {
		if b.round.installed() && !slices.Contains(b.round.list, m) {
			names = append(names, m.Name)
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
