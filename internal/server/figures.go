package server

import (
	"context"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/anteroom/anteroom/gateway/admin"
	"github.com/anteroom/anteroom/internal/series"
)

// part is what one node tells of a room.
type part struct {
	rows  []series.Row
	since int64 // its first figure; of a node that keeps minutes for another: of no use
	known bool  // it has heard of the room
	kept  []keptSpan
}

// keptSpan is of which time the minutes of another node are kept.
type keptSpan struct {
	node        string
	from, until int64
	left        bool // it left by itself: nothing is missing
}

// local is what this node has: of itself, or with a name what it keeps of another.
func (h *past) local(room, node string, span series.Span, before int64) part {
	self := string(h.s.self.Name)
	if before == 0 {
		before = math.MaxInt64
	}
	p := part{known: h.live.Known(room) || h.kept.Known(room)}
	if node != "" && node != self {
		p.rows = series.Read(nil, h.kept, node, room, span, before)
		return p
	}
	p.rows = series.Read(h.live, h.kept, self, room, span, before)
	p.since = h.live.Since()
	if from, _, _, ok := h.kept.Since(self, span.To); ok {
		p.since = min(p.since, from)
	}
	for _, other := range h.kept.Nodes() {
		if from, until, left, ok := h.kept.Since(other, span.To); ok && other != self && until > span.From && from < span.To {
			p.kept = append(p.kept, keptSpan{other, from, until, left})
		}
	}
	return p
}

// historian answers for the cluster.
type historian struct{ h *past }

var _ admin.Historian = historian{}

// Figures asks all nodes, and puts together what they tell. The waves and the rooms
// have no part in it.
func (o historian) Figures(ctx context.Context, room string, q admin.Span) (admin.Figures, error) {
	h := o.h
	span, err := spanOf(q, time.Unix(h.now(), 0))
	if err != nil {
		return admin.Figures{}, refuse(http.StatusBadRequest, "request_invalid", "%s.", err)
	}
	g := h.gather(ctx, room, span, q.Node)
	if running, _ := (operator{h.s}).running(room); running == nil && !g.known {
		return admin.Figures{}, refuse(http.StatusNotFound, "room_unknown", "There is no such room, and there was none lately.")
	}
	if q.Node != "" && len(g.nodes)+len(g.missing) == 0 {
		return admin.Figures{}, refuse(http.StatusNotFound, "node_unknown", "No node of that name is in the cluster, or was in this span.")
	}
	return g.figures(room), nil
}

// spanOf is what is asked for, in whole steps.
func spanOf(q admin.Span, now time.Time) (series.Span, error) {
	if q.To.IsZero() {
		q.To = now
	}
	if q.From.IsZero() {
		q.From = q.To.Add(-time.Hour)
	}
	if !q.From.Before(q.To) {
		return series.Span{}, fmt.Errorf("from %s is not before to %s", q.From.UTC().Format(time.RFC3339), q.To.UTC().Format(time.RFC3339))
	}
	return series.Fit(q.From.Unix(), q.To.Unix(), int64(q.Step/time.Second), now.Unix())
}

// gathered is what all nodes tell of a room.
type gathered struct {
	series.Span
	rows    []series.Row
	have    []bool
	known   bool
	nodes   []string
	missing []admin.MissingNode
	ran     map[string][]bool // by node and step
}

// gather asks whoever has a part of it. only is the name of the one node that is
// asked about; empty: all.
func (h *past) gather(ctx context.Context, room string, span series.Span, only string) *gathered {
	g := &gathered{Span: span, rows: make([]series.Row, span.Steps()), have: make([]bool, span.Steps()), ran: map[string][]bool{}}
	self := string(h.s.self.Name)
	own := h.local(room, "", span, 0)
	others := h.others()
	parts, errs := make([]part, len(others)), make([]error, len(others))
	var all sync.WaitGroup
	for i, m := range others {
		all.Go(func() { parts[i], errs[i] = h.askHistory(ctx, m, room, "", span, 0) })
	}
	all.Wait()
	since := map[string]int64{} // of those that answered
	mine := func(name string, p *part) {
		g.known = g.known || p.known
		since[name] = p.since
		if only == "" || only == name {
			g.nodes = append(g.nodes, name)
			g.beside(name, p.rows)
		}
	}
	mine(self, &own)
	keepers := map[string][]keeper{} // by whose minutes they have
	note := func(at int, p *part) {
		for _, k := range p.kept {
			if only == "" || only == k.node {
				keepers[k.node] = append(keepers[k.node], keeper{at, k})
			}
		}
	}
	note(-1, &own)
	for i, m := range others {
		if errs[i] == nil {
			mine(string(m.Name), &parts[i])
			note(i, &parts[i])
		} else if only == "" || only == string(m.Name) {
			g.missing = append(g.missing, admin.MissingNode{Node: string(m.Name)})
			h.s.log.Debug("history: a node does not answer", "peer", string(m.Name), "err", errs[i])
		}
	}
	for name, of := range keepers {
		began, answers := since[name]
		g.lost(name, of, answers)
		if span.Step%60 != 0 || answers && !slices.ContainsFunc(of, func(k keeper) bool { return k.from < began }) {
			continue
		}
		var pieces []part
		for _, k := range of {
			var p part
			if k.at < 0 {
				p = h.local(room, name, span, began)
			} else {
				p, _ = h.askHistory(ctx, others[k.at], room, name, span, began) // it has just answered
			}
			pieces = append(pieces, p)
		}
		g.beside(name, g.together(pieces))
	}
	slices.Sort(g.nodes)
	g.nodes = slices.Compact(g.nodes)
	return g
}

// keeper is a node that keeps minutes of another: a number among those asked, -1
// for the one that asks.
type keeper struct {
	at int
	keptSpan
}

// lost notes a node that does not answer, but left minutes with others.
func (g *gathered) lost(name string, of []keeper, answers bool) {
	last := slices.MaxFunc(of, func(a, b keeper) int { return int(a.until - b.until) })
	if answers || last.left && g.Step%60 == 0 {
		return
	}
	i := slices.IndexFunc(g.missing, func(m admin.MissingNode) bool { return m.Node == name })
	if i < 0 {
		g.missing = append(g.missing, admin.MissingNode{Node: name})
		i = len(g.missing) - 1
	}
	if g.Step%60 == 0 {
		at := time.Unix(last.until, 0).UTC()
		g.missing[i].Until = &at
	}
}

// beside adds rows of one node.
func (g *gathered) beside(name string, rows []series.Row) {
	if g.ran[name] == nil {
		g.ran[name] = make([]bool, len(g.rows))
	}
	for i := range rows {
		at := int((rows[i].At - g.From) / g.Step)
		switch {
		case rows[i].At < g.From || at >= len(g.rows):
			continue
		case g.have[at]:
			g.rows[at].Beside(&rows[i])
		default:
			g.have[at], g.rows[at] = true, rows[i]
		}
		g.ran[name][at] = true
	}
}

// spans are when each node ran, in whole steps.
func (g *gathered) spans() []admin.NodeRan {
	all := []admin.NodeRan{}
	for _, name := range slices.Sorted(maps.Keys(g.ran)) {
		r := admin.NodeRan{Node: name, Spans: [][2]int64{}}
		for i, ran := range g.ran[name] {
			at := g.From + int64(i)*g.Step
			switch n := len(r.Spans); {
			case !ran:
			case n > 0 && r.Spans[n-1][1] == at:
				r.Spans[n-1][1] += g.Step
			default:
				r.Spans = append(r.Spans, [2]int64{at, at + g.Step})
			}
		}
		all = append(all, r)
	}
	return all
}

// together puts together what several keep of one node. Each minute is with one of
// them; if two had the same, as after an answer that was lost, the step would be
// longer than it can be, and one of them is left out.
func (g *gathered) together(pieces []part) []series.Row {
	byStep := map[int64]*series.Row{}
	var rows []series.Row
	for _, p := range pieces {
		for i := range p.rows {
			r := p.rows[i]
			switch have := byStep[r.At]; {
			case have == nil:
				byStep[r.At] = &r
			case int64(have.Up+r.Up) <= g.Step:
				have.Then(&r)
			}
		}
	}
	for _, r := range byStep {
		rows = append(rows, *r)
	}
	return rows
}

// figures are the rows as an answer.
func (g *gathered) figures(room string) admin.Figures {
	f := admin.Figures{
		Room: room, From: time.Unix(g.From, 0).UTC(), To: time.Unix(g.To, 0).UTC(), Step: g.Step,
		Nodes: append([]string{}, g.nodes...), Missing: append([]admin.MissingNode{}, g.missing...), Ran: g.spans(),
		Time: make([]int64, len(g.rows)), State: make([]string, len(g.rows)),
	}
	for i := range g.rows {
		f.Time[i], f.State[i] = g.From+int64(i)*g.Step, g.rows[i].State.String()
	}
	of := g.column
	mean := func(sum func(r *series.Row) uint64) admin.Column {
		return of(func(r *series.Row) float64 { return float64(sum(r)) / float64(max(1, r.Up)) })
	}
	f.OnSite = mean(func(r *series.Row) uint64 { return r.OnSite })
	f.Queued = mean(func(r *series.Row) uint64 { return r.InLine })
	f.Called = mean(func(r *series.Row) uint64 { return r.Called })
	f.OnSiteMax = of(func(r *series.Row) float64 { return float64(r.OnSiteMost) })
	f.QueuedMax = of(func(r *series.Row) float64 { return float64(r.InLineMost) })
	setting := func(value func(r *series.Row) uint32) admin.Column {
		return of(func(r *series.Row) float64 {
			if r.State == series.Unknown { // the room was not there yet
				return math.NaN()
			}
			return float64(value(r))
		})
	}
	f.Limit = setting(func(r *series.Row) uint32 { return r.Limit })
	f.Rate = setting(func(r *series.Row) uint32 { return r.Rate })

	var sum series.Row
	for i := range g.rows {
		sum.Merge(&g.rows[i])
	}
	f.Total.OnSiteMax, f.Total.QueuedMax = float64(sum.OnSiteMost), float64(sum.InLineMost)
	g.counts(&f, &sum)
	f.Wait, f.Total.Wait = g.durations(&sum, func(r *series.Row) series.Hist { return r.Waits })
	f.Visit, f.Total.Visit = g.durations(&sum, func(r *series.Row) series.Hist { return r.Visits })
	return f
}

// column is one figure of each step.
func (g *gathered) column(value func(r *series.Row) float64) admin.Column {
	c := make(admin.Column, len(g.rows))
	for i := range c {
		if c[i] = math.NaN(); g.have[i] {
			c[i] = value(&g.rows[i])
		}
	}
	return c
}

func (g *gathered) counts(f *admin.Figures, sum *series.Row) {
	for c, to := range []struct {
		column *admin.Column
		total  *float64
	}{
		series.Joins: {&f.Joins, &f.Total.Joins}, series.Calls: {&f.Calls, &f.Total.Calls},
		series.Admissions: {&f.Admissions, &f.Total.Admissions}, series.WalkedIn: {&f.WalkedIn, &f.Total.WalkedIn},
		series.EndsLeft: {&f.EndsLeft, &f.Total.EndsLeft}, series.EndsExpired: {&f.EndsExpired, &f.Total.EndsExpired},
		series.NoShows: {&f.NoShows, &f.Total.NoShows}, series.DropOuts: {&f.DropOuts, &f.Total.DropOuts},
		series.RefusedFull: {&f.RefusedFull, &f.Total.RefusedFull}, series.RefusedClosed: {&f.RefusedClosed, &f.Total.RefusedClosed},
		series.RefusedNode: {&f.RefusedNode, &f.Total.RefusedNode}, series.RefusedAddress: {&f.RefusedAddress, &f.Total.RefusedAddress},
		series.Estimates: {&f.Estimates, &f.Total.Estimates}, series.UnderP25: {&f.UnderP25, &f.Total.UnderP25},
		series.UnderP50: {&f.UnderP50, &f.Total.UnderP50}, series.UnderP75: {&f.UnderP75, &f.Total.UnderP75},
	} {
		*to.column, *to.total = g.column(func(r *series.Row) float64 { return float64(r.Counts[c]) }), float64(sum.Counts[c])
	}
}

// durations are the percentiles of each step, and of the whole span.
func (g *gathered) durations(sum *series.Row, of func(r *series.Row) series.Hist) (admin.Durations, admin.Shares) {
	share := func(p float64) admin.Column {
		return g.column(func(r *series.Row) float64 { return of(r).Seconds(p) })
	}
	d := admin.Durations{
		Count: g.column(func(r *series.Row) float64 { return float64(of(r).Count()) }), P50: share(0.5), P75: share(0.75), P95: share(0.95),
	}
	return d, sharesOf(of(sum))
}

func sharesOf(h series.Hist) admin.Shares {
	share := func(p float64) *float64 {
		v := math.Round(h.Seconds(p)*1000) / 1000
		if math.IsNaN(v) {
			return nil
		}
		return &v
	}
	return admin.Shares{Count: int64(h.Count()), P50: share(0.5), P75: share(0.75), P95: share(0.95)}
}
