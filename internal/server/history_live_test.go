package server_test

import (
	"encoding/json"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/anteroom/anteroom/gateway/admin"
)

// figures asks m for the history of the shop's room.
func (m *member) figures(query string) (f admin.Figures) {
	m.r.t.Helper()
	a, err := http.Get("http://" + m.Addresses().Admin + "/v1/rooms/shop/history?" + query)
	if err != nil {
		m.r.t.Fatal(err)
	}
	defer func() { _ = a.Body.Close() }()
	b, err := io.ReadAll(a.Body)
	if err == nil && a.StatusCode == http.StatusOK {
		err = json.Unmarshal(b, &f)
	}
	if err != nil || a.StatusCode != http.StatusOK {
		m.r.t.Fatalf("history?%s: %s, %v: %s", query, a.Status, err, b)
	}
	return f
}

// crowd is what a test counts by itself of the visitors that it sends.
type crowd struct {
	mu                sync.Mutex
	joins, in, walked int
	now, most         int
	estimated         int       // were told how long they would wait
	waits             []float64 // seconds, of those who waited
	visits            []float64
	way               float64 // seconds, the longest that a visitor's first request and last one took together: nodes do not count it
}

func (c *crowd) count(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
}

// visitor goes through the shop by way of m.
func (c *crowd) visitor(m *member, stay time.Duration) {
	began := time.Now()
	a := m.prefer("respond-async", "join", "", "") // else a moment in line is in the answer, and looks like none
	c.count(func() { c.joins++ })
	there, way := time.Since(began), time.Duration(0)
	walked := a.State == "admitted"
	ask := time.NewTicker(20 * time.Millisecond)
	defer ask.Stop()
	estimated := false
	for a.State != "admitted" {
		estimated = estimated || a.State == "waiting" && a.Wait != nil
		<-ask.C
		asked := time.Now()
		next := m.visit("checkin", "ticket", a.Ticket)
		if next.State == "called" {
			next = m.visit("leave", "ticket", next.Ticket)
		}
		if next.Ticket == "" && next.Pass == "" {
			continue // it has too much to do
		}
		a, way = next, time.Since(asked)
	}
	in := time.Now()
	c.count(func() {
		c.in++
		c.way = max(c.way, (there + way).Seconds())
		if walked {
			c.walked++
		} else {
			if estimated {
				c.estimated++
			}
			c.waits = append(c.waits, in.Sub(began).Seconds())
		}
		c.now++
		c.most = max(c.most, c.now)
	})
	<-time.After(stay)
	c.count(func() { c.now-- })
	m.visit("end", "pass", a.Pass)
	c.count(func() { c.visits = append(c.visits, time.Since(in).Seconds()) })
}

// at is the value that a share of all are no larger than.
func at(all []float64, share float64) float64 {
	slices.Sort(all)
	return all[int(math.Ceil(share*float64(len(all))))-1]
}

// A crowd goes through three nodes, and the test counts for itself: any node tells
// the same of it.
func TestHistoryAgreesWithACountOfItsOwn(t *testing.T) {
	const limit, people = 12, 84
	r := newRig(t, limit)
	r.three()
	var c crowd
	var all sync.WaitGroup
	began := time.Now()
	for i := range people {
		rng := rand.New(rand.NewPCG(uint64(i), 0))
		all.Go(func() { c.visitor(r.nodes[i%3], time.Second+time.Duration(rng.IntN(500))*time.Millisecond) })
	}
	all.Wait()
	for _, m := range r.nodes {
		got := m.waits()
		if late := time.Since(began) > 50*time.Second; late { // the first of them do not count any more
			t.Logf("%s tells of the waits of late, on a machine too busy to compare them: %+v", m.id, got)
		} else if len(got.Rooms) != 1 || got.Rooms[0].Count != int64(len(c.waits)) || len(got.Missing) > 0 || math.Abs(*got.Rooms[0].P50-at(c.waits, 0.5)) > 0.01*at(c.waits, 0.5)+c.way {
			t.Errorf("%s tells of the waits of late: %+v; counted %d, p50 %v s", m.id, got, len(c.waits), at(c.waits, 0.5))
		}
	}
	defer func() {
		got := r.nodes[1].report("from=-10m")
		p := got.People
		if p.Came != people || p.GotIn != c.in || p.WalkedIn != c.walked || got.Limit.MostAtOnce != c.most || got.Limit.Over == nil || *got.Limit.Over != 0 || len(got.Nodes) != 3 {
			t.Errorf("the report says %+v, %+v, nodes %+v; counted %+v", p, got.Limit, got.Nodes, &c)
		}
	}()
	for _, m := range r.nodes {
		for _, step := range []string{"1s", "10s", "1m"} {
			query := "from=-10m&step=" + step
			r.until("figures of everybody at "+m.id+" in steps of "+step, 5*time.Second, func() bool {
				f := m.figures(query)
				return f.Total.EndsLeft == people
			})
			f := m.figures(query)
			got := []float64{f.Total.Joins, f.Total.Admissions, f.Total.WalkedIn, f.Total.OnSiteMax, float64(f.Total.Wait.Count), float64(f.Total.Visit.Count)}
			want := []float64{people, float64(c.in), float64(c.walked), float64(c.most), float64(len(c.waits)), people}
			if !slices.Equal(got, want) || c.most != limit {
				t.Errorf("%s, %s: joins, admissions, walked in, most at once, waits and visits are %v, counted %v", m.id, step, got, want)
			}
			e := &f.Total
			t.Logf("%s, %s: of %v estimates, %d of whom told, %v, %v and %v were under p25, p50, p75", m.id, step, e.Estimates, c.estimated, e.UnderP25, e.UnderP50, e.UnderP75)
			if c.estimated == 0 || e.Estimates < float64(c.estimated) || e.Estimates > e.Calls || e.UnderP25 > e.UnderP50 || e.UnderP50 > e.UnderP75 || e.UnderP75 > e.Estimates {
				t.Errorf("%s, %s: the truth is known of %v estimates, counted %d", m.id, step, e.Estimates, c.estimated)
			}
			if len(f.Missing) > 0 || !slices.Equal(f.Nodes, []string{"node-1", "node-2", "node-3"}) {
				t.Errorf("%s: figures of %v, missing %v", m.id, f.Nodes, f.Missing)
			}
			for _, x := range []struct {
				what      string
				got, want float64
			}{
				{"wait p50", *f.Total.Wait.P50, at(c.waits, 0.5)},
				{"wait p95", *f.Total.Wait.P95, at(c.waits, 0.95)},
				{"visit p50", *f.Total.Visit.P50, at(c.visits, 0.5)},
			} {
				t.Logf("%s, %s: %s is %.3f s, counted %.3f s", m.id, step, x.what, x.got, x.want)
				if math.Abs(x.got-x.want) > 0.01*x.want+c.way {
					t.Errorf("%s, %s: %s is %v s, counted %v s", m.id, step, x.what, x.got, x.want)
				}
			}
		}
	}
}

// waits asks m how long those had waited who got in within the last minute.
func (m *member) waits() (list admin.WaitsList) {
	m.r.t.Helper()
	a, err := http.Get("http://" + m.Addresses().Admin + "/v1/waits")
	if err != nil {
		m.r.t.Fatal(err)
	}
	defer func() { _ = a.Body.Close() }()
	if err := json.NewDecoder(a.Body).Decode(&list); err != nil || a.StatusCode != http.StatusOK {
		m.r.t.Fatalf("waits: %s, %v", a.Status, err)
	}
	return list
}

// report asks m for a report on the shop's room.
func (m *member) report(query string) (r admin.Report) {
	m.r.t.Helper()
	a, err := http.Get("http://" + m.Addresses().Admin + "/v1/rooms/shop/report?" + query)
	if err != nil {
		m.r.t.Fatal(err)
	}
	defer func() { _ = a.Body.Close() }()
	if err := json.NewDecoder(a.Body).Decode(&r); err != nil || a.StatusCode != http.StatusOK {
		m.r.t.Fatalf("report: %s, %v", a.Status, err)
	}
	return r
}

// What a lost node had seen is told by another one, which names it, and once it is
// back nothing is counted twice.
func TestLostNodeTakesNothingAlong(t *testing.T) {
	r := newRig(t, 10)
	a, b, c := r.three()
	for _, m := range []*member{a, b, c, c, c} {
		m.visit("end", "pass", m.enter(""))
	}
	const query = "from=-10m&step=1m"
	r.until("figures of everybody", 5*time.Second, func() bool { return a.figures(query).Total.EndsLeft == 5 })
	before, of := a.figures(query), c.figures("from=-10m&step=1m&node=node-3")
	if of.Total.Admissions != 3 || !slices.Equal(of.Nodes, []string{"node-3"}) {
		t.Errorf("of node-3 alone: %v, %+v", of.Nodes, of.Total)
	}
	c.EndMinute()
	kept := func(m *member) bool { return m.figures(query).Total.Admissions == 5 && m.KeepsFor("node-3") }
	r.until("minutes of node-3 at node-1", 5*time.Second, func() bool { return kept(a) })

	c.cut.Store(true)
	for _, m := range []*member{a, b} {
		f := m.figures(query)
		if len(f.Missing) != 1 || f.Missing[0].Node != "node-3" || f.Missing[0].Until == nil {
			t.Errorf("%s: missing %+v; want node-3, and until when there is something of it", m.id, f.Missing)
		}
		if diff := cmp.Diff(before.Total, f.Total); diff != "" {
			t.Errorf("%s, without node-3 (-before +after):\n%s", m.id, diff)
		}
		if f = m.figures("from=-5m&step=10s"); len(f.Missing) != 1 || f.Missing[0].Until != nil || f.Total.Admissions != 2 {
			t.Errorf("%s: in steps of 10 s %v are missing and %v were let in; want nothing of node-3", m.id, f.Missing, f.Total.Admissions)
		}
		if f = m.figures(query + "&node=node-3"); f.Total.Admissions != 3 || len(f.Missing) != 1 {
			t.Errorf("%s: of node-3 alone: %+v, missing %v", m.id, f.Total, f.Missing)
		}
	}
	c.mend()
	r.until("node-3 again", 10*time.Second, func() bool { return len(b.figures(query).Missing) == 0 })
	if diff := cmp.Diff(before.Total, b.figures(query).Total); diff != "" {
		t.Errorf("with node-3 again (-before +after):\n%s", diff)
	}

	c.end() // it leaves by itself, and the others are told of its last minute
	r.until("node-3 gone", 10*time.Second, func() bool { return len(a.cluster().Members) == 2 })
	for _, m := range []*member{a, b} {
		f := m.figures(query)
		if len(f.Missing) > 0 || f.Total.Admissions != 5 {
			t.Errorf("%s, after node-3 has left: missing %v, %v let in", m.id, f.Missing, f.Total.Admissions)
		}
	}
}
