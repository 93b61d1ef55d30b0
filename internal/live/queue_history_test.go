package live

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anteroom/anteroom/client"
)

// done is something that a client did to a queue, as it saw it.
type done struct {
	what      string // put, take, ack, nack or extend
	call, end time.Time
	id        string // of the item; empty: the take brought none
	priority  uint32
	receipt   string
	attempts  uint32
	granted   time.Time // take: by the clock of the node that leased the item
	until     time.Time // take, extend: of the lease
	stamp     time.Time // take: when the item was put, by the clock of the node that keeps it
	at        string    // take: that node; empty: all that have the log
	missing   []string  // take: nodes that are not there, as the answer says
	err       error
}

// came is a take that brought l, leased for lease.
func came(l *client.Lease, lease time.Duration, missing []string) done {
	return done{
		what: "take", id: l.ID, priority: l.Priority, receipt: l.Receipt, attempts: l.Attempts, until: l.Until, granted: l.Until.Add(-lease),
		stamp: l.InsertedAt, at: l.Handle[strings.LastIndexByte(l.Handle, '.')+1:], missing: missing,
	}
}

// unknown reports whether it may have been carried out all the same.
func (d done) unknown() bool { return errors.Is(d.err, client.ErrUnavailable) }

// history is what clients did to one queue.
type history struct {
	mu    sync.Mutex
	all   []done
	wrong []string // seen at once
}

func (h *history) isWrong(what string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wrong = append(h.wrong, what)
}

func (h *history) add(d done) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, d)
}

// story is what became of one item.
type story struct {
	id    string
	put   done // call is zero if nobody knows of it
	takes []done
	acks  []done
	nacks []done
	more  []done // extended
}

// stories sorts what was done by item.
func (h *history) stories() []*story {
	h.mu.Lock()
	defer h.mu.Unlock()
	by := map[string]*story{}
	var all []*story
	for _, d := range h.all {
		if d.id == "" {
			continue
		}
		s := by[d.id]
		if s == nil {
			s = &story{id: d.id}
			by[d.id] = s
			all = append(all, s)
		}
		switch d.what {
		case "put":
			s.put = d
		case "take":
			s.takes = append(s.takes, d)
		case "ack":
			s.acks = append(s.acks, d)
		case "nack":
			s.nacks = append(s.nacks, d)
		case "extend":
			s.more = append(s.more, d)
		}
	}
	for _, s := range all {
		slices.SortFunc(s.takes, func(a, b done) int { return a.end.Compare(b.end) })
	}
	return all
}

// lost lists items that were acknowledged to whoever put them, and that nobody
// has done in the end. It wants a queue that was drained.
func lost(all []*story) (wrong []string) {
	for _, s := range all {
		if s.put.call.IsZero() || s.put.err != nil {
			continue
		}
		if !slices.ContainsFunc(s.acks, func(d done) bool { return d.err == nil || d.unknown() }) {
			wrong = append(wrong, fmt.Sprintf("%s was put at %s, and is lost after %d deliveries", s.id, clock(s.put.end), len(s.takes)))
		}
	}
	return wrong
}

// ended is the earliest moment at which a lease may be over: it has lapsed, or
// its holder may have given it back.
func (s *story) ended(take done) time.Time {
	until := take.until
	for _, d := range s.more {
		if d.receipt == take.receipt && d.err == nil && d.until.After(until) {
			until = d.until
		}
	}
	for _, d := range s.nacks {
		if d.receipt == take.receipt && (d.err == nil || d.unknown()) && d.call.Before(until) {
			until = d.call
		}
	}
	return until
}

// twice lists deliveries of items that somebody still had, or that were done.
func twice(all []*story) (wrong []string) {
	for _, s := range all {
		for i, d := range s.takes {
			for _, before := range s.takes[:i] {
				if over := s.ended(before); d.end.Before(over) {
					wrong = append(wrong, fmt.Sprintf("%s was delivered by %s, %v before the lease of its attempt %d was over", s.id, clock(d.end), over.Sub(d.end), before.attempts))
				}
				if d.receipt == before.receipt {
					wrong = append(wrong, fmt.Sprintf("%s was delivered twice with one receipt, at %s and %s", s.id, clock(before.end), clock(d.end)))
				}
			}
			for _, a := range s.acks {
				if a.err == nil && a.end.Before(d.call) {
					wrong = append(wrong, fmt.Sprintf("%s was delivered at %s, and had been acknowledged at %s", s.id, clock(d.end), clock(a.end)))
				}
			}
		}
	}
	return wrong
}

// overtakings are items that were delivered before others that belong before them.
type overtakings struct {
	count   int
	age     time.Duration // longest that an item had been in its queue when another one passed it
	away    time.Duration // longest from the first lease that passed an item to the last; one alone: 0
	which   string        // that of age
	excused int           // by a take which said that the node that keeps the item is not there
	clocks  time.Duration // longest from a put to one after it of the same priority, which is in line before it
}

// overtaking looks for overtakings. Only first deliveries count, and only what
// is certain: the item was put before the take began, and was not taken before
// it had ended. Items of one priority are in line by when they were put, as the clocks
// of the nodes say that keep them.
func overtaking(all []*story) (o overtakings) {
	var first []*story
	for _, s := range all {
		// One that was leased before anybody saw it was not ready all the time.
		if s.put.err == nil && !s.put.call.IsZero() && len(s.takes) > 0 && s.takes[0].attempts == 1 {
			first = append(first, s)
		}
	}
	slices.SortFunc(first, func(a, b *story) int { return a.put.end.Compare(b.put.end) })
	type span struct{ from, to time.Time }
	passed := map[*story]span{}
	for _, b := range first {
		take := b.takes[0]
		for _, a := range first {
			if !a.put.end.Before(take.call) {
				break
			}
			before := a.put.priority < b.put.priority
			if a.put.priority == b.put.priority && a.put.end.Before(b.put.call) {
				before = !a.takes[0].stamp.After(take.stamp)
				if !before {
					o.clocks = max(o.clocks, b.put.call.Sub(a.put.end))
				}
			}
			switch {
			case !before || !a.takes[0].call.After(take.end):
				continue
			case slices.Contains(take.missing, a.takes[0].at):
				o.excused++
				continue
			}
			o.count++
			if d := take.call.Sub(a.put.end); d > o.age {
				o.age, o.which = d, fmt.Sprintf("%s (priority %d) was overtaken by %s (priority %d) at %s", a.id, a.put.priority, b.id, b.put.priority, clock(take.end))
			}
			p, again := passed[a]
			if !again || take.granted.Before(p.from) {
				p.from = take.granted
			}
			if take.granted.After(p.to) {
				p.to = take.granted
			}
			passed[a] = p
			o.away = max(o.away, p.to.Sub(p.from))
		}
	}
	return o
}

func clock(t time.Time) string { return t.UTC().Format("15:04:05.000") }

// tale makes a history from lines of "from to what item more", in milliseconds.
// more is the priority of a put, the end of the lease of a take or an extend,
// and unknown or gone for what failed. A take after another one is of the next
// attempt; a number after the end of its lease is when it was leased, else as it ended.
// Then come when its item was put, by the clock of which node, and who is missing.
func tale(t *testing.T, text string) *history {
	t.Helper()
	h, attempts := &history{}, map[string]uint32{}
	ms := func(n int) time.Time { return time.UnixMilli(int64(n)) }
	for line := range strings.Lines(text) {
		var from, to, granted int
		var d done
		var more string
		var stamp int
		var missing string
		n, _ := fmt.Sscan(line, &from, &to, &d.what, &d.id, &more, &granted, &stamp, &d.at, &missing)
		if n < 4 {
			t.Fatalf("line %q", line)
		}
		d.call, d.end = ms(from), ms(to)
		if d.granted = d.end; n >= 6 {
			d.granted = ms(granted)
		}
		if n >= 7 {
			d.stamp, d.missing = ms(stamp), strings.Fields(missing)
		}
		if d.what == "take" {
			attempts[d.id]++
		}
		d.attempts = attempts[d.id]
		d.receipt = fmt.Sprintf("%s/%d", d.id, d.attempts)
		n = 0
		switch {
		case more == "unknown":
			d.err = client.ErrUnavailable
		case more == "gone":
			d.err = client.ErrLeaseLost
		default:
			_, _ = fmt.Sscan(more, &n)
		}
		if d.priority = uint32(n); d.what != "put" {
			d.priority, d.until = 0, ms(n)
		}
		h.add(d)
	}
	return h
}

func TestHistoriesAreJudged(t *testing.T) {
	for name, c := range map[string]struct {
		text                   string
		lost, twice, overtaken int
	}{
		"all is well":                    {"0 1 put a 5\n2 3 put b 5\n4 5 take a 100\n6 7 take b 100\n8 9 ack a\n8 9 ack b\n", 0, 0, 0},
		"never seen again":               {"0 1 put a 5\n", 1, 0, 0},
		"nobody was told it was put":     {"0 1 put a unknown\n", 0, 0, 0},
		"a lease that nobody took over":  {"0 1 put a 5\n4 5 take a 100\n200 201 ack a gone\n", 1, 0, 0},
		"an answer that was lost":        {"0 1 put a 5\n4 5 take a 100\n8 9 ack a unknown\n", 0, 0, 0},
		"a lapsed lease":                 {"0 1 put a 5\n4 5 take a 100\n101 102 take a 300\n103 104 ack a\n", 0, 0, 0},
		"two holders":                    {"0 1 put a 5\n4 5 take a 100\n90 95 take a 300\n103 104 ack a\n", 0, 1, 0},
		"two holders after an extension": {"0 1 put a 5\n4 5 take a 100\n50 51 extend a 200\n101 102 take a 300\n103 104 ack a\n", 0, 1, 0},
		"given back":                     {"0 1 put a 5\n4 5 take a 100\n50 51 nack a\n52 53 take a 300\n103 104 ack a\n", 0, 0, 0},
		"given back, perhaps":            {"0 1 put a 5\n4 5 take a 100\n50 51 nack a unknown\n52 53 take a 300\n103 104 ack a\n", 0, 0, 0},
		"delivered when done":            {"0 1 put a 5\n4 5 take a 20\n10 11 ack a\n30 31 take a 300\n", 0, 1, 0},
		"priority":                       {"0 1 put a 5\n2 3 put b 1\n4 5 take a 100\n6 7 take b 100\n8 9 ack a\n8 9 ack b\n", 0, 0, 1},
		"put at the same time":           {"0 3 put a 5\n2 3 put b 5\n4 5 take b 100\n6 7 take a 100\n8 9 ack a\n8 9 ack b\n", 0, 0, 0},
		"put one after the other":        {"0 1 put a 5\n2 3 put b 5\n4 5 take b 100\n6 7 take a 100\n8 9 ack a\n8 9 ack b\n", 0, 0, 1},
		"taken at the same time":         {"0 1 put a 5\n2 3 put b 5\n4 7 take b 100\n6 7 take a 100\n8 9 ack a\n8 9 ack b\n", 0, 0, 0},
		"leased before, unseen":          {"0 1 put a 5\n2 3 put b 5\n4 5 take b 100\n1 2 take a unknown\n6 7 take a 100\n8 9 ack a\n8 9 ack b\n", 0, 0, 0},
	} {
		h := tale(t, c.text)
		h.all = slices.DeleteFunc(h.all, func(d done) bool { return d.what == "take" && d.err != nil }) // its answer was lost
		all := h.stories()
		overtaken := overtaking(all).count
		if l, w := lost(all), twice(all); len(l) != c.lost || len(w) != c.twice || overtaken != c.overtaken {
			t.Errorf("%s: lost %q, want %d; twice %q, want %d; overtaken %d, want %d", name, l, c.lost, w, c.twice, overtaken, c.overtaken)
		}
	}
}

// percentile of durations that it sorts; 0 of none.
func percentile(all []time.Duration, p float64) time.Duration {
	if len(all) == 0 {
		return 0
	}
	slices.SortFunc(all, func(a, b time.Duration) int { return cmp.Compare(a, b) })
	return all[min(len(all)-1, int(p*float64(len(all))))]
}

// A take that says that a node is missing may overtake what that one keeps, and nothing
// else. Where clocks differ, items of one priority are in line by them.
func TestOvertakingsAreExcusedByWhatTheTakeSaid(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want overtakings
	}{
		"of the node that is missing": {"0 1 put a 5\n2 3 put b 7\n4 5 take b 100 5 2 n1 n3\n6 7 take a 100 7 0 n3\n", overtakings{excused: 1}},
		"of another one":              {"0 1 put a 5\n2 3 put b 7\n4 5 take b 100 5 2 n1 n3\n6 7 take a 100 7 0 n2\n", overtakings{count: 1, age: 3 * time.Millisecond}},
		"by a take that misses none":  {"0 1 put a 5\n2 3 put b 7\n4 5 take b 100 5 2 n1\n6 7 take a 100 7 0 n3 n3\n", overtakings{count: 1, age: 3 * time.Millisecond}},
		"by a clock that is behind":   {"0 1 put a 5\n3 4 put b 5\n5 6 take b 100 6 0 n1\n7 8 take a 100 8 1 n2\n", overtakings{clocks: 2 * time.Millisecond}},
		"by no clock":                 {"0 1 put a 5\n3 4 put b 5\n5 6 take b 100 6 3 n1\n7 8 take a 100 8 1 n2\n", overtakings{count: 1, age: 4 * time.Millisecond}},
	} {
		o := overtaking(tale(t, c.text).stories())
		if o.which = ""; o != c.want {
			t.Errorf("%s: %+v, want %+v", name, o, c.want)
		}
	}
}

func TestOvertakingsAreMeasured(t *testing.T) {
	// The take of b waits for a leader: it is under way for long, and its lease is
	// as late as what follows.
	o := overtaking(tale(t, "0 1 put a 5\n0 1 put b 7\n0 1 put c 7\n2 3 put d 6\n4 45 take b 100 43\n50 52 take c 100 51\n60 61 take a 100\n62 63 take d 100\n").stories())
	if want := (overtakings{count: 4, age: 49 * time.Millisecond, away: 8 * time.Millisecond, which: o.which}); o != want || !strings.Contains(o.which, "a (priority 5) was overtaken by c") {
		t.Errorf("%+v, want %+v", o, want)
	}
}

// A take without the time at which it was called has overtaken nothing, whatever it brought.
func TestATakeIsRecordedWithWhenItWasCalled(t *testing.T) {
	w := &toil{h: &history{}}
	before := time.Now()
	d := w.record(done{what: "take"}, func(d *done) error {
		*d = came(&client.Lease{Item: client.Item{ID: "a"}}, time.Second, nil)
		return nil
	})
	if d.id != "a" || d.call.Before(before) || d.end.Before(d.call) {
		t.Errorf("called at %v and ended at %v, want after %v: %+v", d.call, d.end, before, d)
	}
}
