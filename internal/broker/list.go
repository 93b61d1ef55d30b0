package broker

import (
	"slices"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/pqueue"
	"github.com/anteroom/anteroom/qpid"
)

// listing is an OpPeek or an OpDead under way, which shows the first items of all
// nodes. Each node shows its own first ones, a page at a time.
//
// What a node has not shown yet is heavier than the last that it has. So of all
// that was shown, what is no heavier than the last of any node with more belongs
// to the answer, and the rest may not: before it there may be another one. The
// nodes are asked for further pages until enough belongs to it.
type listing struct {
	b       *Broker
	c       pqueue.Command
	then    func(Answer)
	pages   []page
	missing []qpid.NodeID // could not be asked, or did not answer
	code    pqueue.Code
}

// page is what one node has shown.
type page struct {
	node  eviction.Member
	last  qpid.Weight // the heaviest that it has shown; Invariant: it grows with each page
	more  bool        // it has more behind that
	bytes int
	shown []shown // lightest first
}

// shown is an item and its place.
type shown struct {
	weight qpid.Weight
	part   Part
}

func (b *Broker) callList(c pqueue.Command, then func(Answer)) {
	l := &listing{b: b, c: c, then: then, missing: b.absent(c.Queue), code: pqueue.Unavailable}
	for _, m := range b.keepers(c.Queue) {
		l.pages = append(l.pages, page{node: m, last: c.Weight, more: true})
	}
	l.ask(l.c.Max, qpid.Weight{})
}

// ask has the nodes show more that may have some of the first most items; upTo
// is the last of those that were shown, if so many were.
func (l *listing) ask(most int, upTo qpid.Weight) {
	var asked []*page
	for i := range l.pages {
		p := &l.pages[i]
		if p.more && p.bytes < takeBytesMax && (upTo == (qpid.Weight{}) || p.last.Less(upTo)) {
			asked = append(asked, p)
		}
	}
	left := len(asked)
	if left == 0 {
		l.end()
		return
	}
	for _, p := range asked {
		c := l.c
		c.Max, c.Weight = most, p.last
		l.b.ask(p.node, c, func(r pqueue.Result) {
			l.take(p, r)
			left--
			if left == 0 {
				l.next()
			}
		})
	}
}

// take takes in what a node has shown.
func (l *listing) take(p *page, r pqueue.Result) {
	p.more = false
	if r.Code != pqueue.OK {
		if r.Code != pqueue.QueueUnknown {
			l.missing = append(l.missing, p.node.Name)
		}
		if r.Code != pqueue.Unavailable && (l.code == pqueue.Unavailable || l.code == pqueue.QueueUnknown) {
			l.code = r.Code
		}
		return
	}
	l.code = pqueue.OK
	kind := l.b.kindOf(l.c.Queue)
	for _, i := range r.Items {
		w := pqueue.WeightOf(i.Priority, i.Stamp, salt(p.node.Name, kind), i.Number)
		if l.c.Op == pqueue.OpDead {
			w = pqueue.GraveOf(i.Lease, i.Number)
		}
		if !p.last.Less(w) {
			return // a node that goes back has lost its place, and would do so for ever
		}
		p.last, p.more = w, r.N > 0
		p.bytes += len(i.Payload)
		p.shown = append(p.shown, shown{w, Part{p.node.Name, kind, pqueue.Result{Number: i.Number, State: i.State, Items: []pqueue.Item{i}}}})
	}
}

// next asks for more, or ends.
func (l *listing) next() {
	all, sure := l.merged()
	bytes := 0
	for _, s := range all[:sure] {
		bytes += len(s.part.Result.Items[0].Payload)
	}
	switch {
	case sure >= l.c.Max || bytes >= takeBytesMax:
		l.end()
	case len(all) >= l.c.Max:
		l.ask(l.c.Max, all[l.c.Max-1].weight)
	default:
		l.ask(l.c.Max, qpid.Weight{})
	}
}

// merged is all that was shown in its order, and how many of them belong to the
// answer.
func (l *listing) merged() (all []shown, sure int) {
	var until qpid.Weight // of the nodes with more, the lightest last; zero: there is none
	for i := range l.pages {
		p := &l.pages[i]
		all = append(all, p.shown...)
		if p.more && (until == (qpid.Weight{}) || p.last.Less(until)) {
			until = p.last
		}
	}
	slices.SortFunc(all, func(s, o shown) int { return s.weight.Compare(o.weight) })
	if until == (qpid.Weight{}) {
		return all, len(all)
	}
	sure, _ = slices.BinarySearchFunc(all, until, func(s shown, w qpid.Weight) int { return s.weight.Compare(w) })
	return all, min(sure+1, len(all)) // until itself was shown
}

// end answers with what belongs to the answer, as much as it holds.
func (l *listing) end() {
	a := Answer{Result: pqueue.Result{Code: l.code}, Missing: lacking(l.missing, nil)}
	all, sure := l.merged()
	bytes := 0
	for _, s := range all[:min(sure, max(1, l.c.Max))] {
		bytes += len(s.part.Result.Items[0].Payload)
		if bytes > takeBytesMax && len(a.Parts) > 0 {
			break
		}
		a.Parts = append(a.Parts, s.part)
	}
	if n := len(a.Parts); n > 0 && (n < len(all) || slices.ContainsFunc(l.pages, func(p page) bool { return p.more })) {
		a.More = all[n-1].weight
	}
	l.then(a)
}
