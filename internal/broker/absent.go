package broker

import (
	"slices"

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
	anyDurable := name == "" && slices.ContainsFunc(b.queues, func(q *queue) bool { return q.c.Kind == Durable })
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

// lacking are those that could not be asked, and those that did not answer.
func lacking(absent, missing []qpid.NodeID) []qpid.NodeID {
	all := slices.Concat(absent, missing)
	slices.Sort(all)
	return slices.Compact(all)
}
