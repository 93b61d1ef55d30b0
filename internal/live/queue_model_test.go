package live

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/anteroom/anteroom/client"
)

// asked is a call to a queue, and told its answer, in the model's words.
type asked struct {
	what     string // put, take, ack, nack, cancel, update, len or position
	id       string
	priority uint32
}

type told struct {
	id    string // take: which; empty: none
	n     int    // len: ready items; position
	found bool
}

// line is the state of a queue on one node: all items in the order in which
// they go out, the leased ones too.
type line []lined

type lined struct {
	id       string
	priority uint32
	put      int // how many were put before; 0 if no two priorities are the same
	leased   bool
}

func (l line) find(id string) int {
	return slices.IndexFunc(l, func(i lined) bool { return i.id == id })
}

// in puts i where it belongs.
func (l line) in(i lined) line {
	at := slices.IndexFunc(l, func(o lined) bool { return o.priority > i.priority || o.priority == i.priority && o.put > i.put })
	if at < 0 {
		at = len(l)
	}
	return slices.Insert(slices.Clone(l), at, i)
}

func (l line) ready() (n int) {
	for _, i := range l {
		if !i.leased {
			n++
		}
	}
	return n
}

// state is a line, and how many items were ever put: where no two priorities are
// the same nobody can tell, and it stays 0, so that there are fewer states to try.
type state struct {
	line line
	puts int
	ties bool
}

func (s state) with(l line) state {
	s.line = l
	return s
}

// step is the strict model: what one queue on one node answers. An id is put
// once, a lease never lapses.
func (s state) step(a asked, b told) (bool, state) {
	at := s.line.find(a.id)
	switch a.what {
	case "put":
		after := s.with(s.line.in(lined{id: a.id, priority: a.priority, put: s.puts}))
		if s.ties {
			after.puts++
		}
		return true, after
	case "take":
		first := slices.IndexFunc(s.line, func(i lined) bool { return !i.leased })
		if first < 0 || b.id == "" {
			return first < 0 && b.id == "", s
		}
		l := slices.Clone(s.line)
		l[first].leased = true
		return l[first].id == b.id, s.with(l)
	case "ack":
		held := at >= 0 && s.line[at].leased
		if !held {
			return !b.found, s
		}
		return b.found, s.with(slices.Delete(slices.Clone(s.line), at, at+1))
	case "cancel":
		if at < 0 {
			return !b.found, s
		}
		return b.found, s.with(slices.Delete(slices.Clone(s.line), at, at+1))
	case "nack":
		if at < 0 || !s.line[at].leased {
			return !b.found, s
		}
		l := slices.Clone(s.line)
		l[at].leased = false
		return b.found, s.with(l)
	case "update":
		if at < 0 {
			return !b.found, s
		}
		i := s.line[at]
		i.priority = a.priority
		return b.found, s.with(slices.Delete(slices.Clone(s.line), at, at+1).in(i))
	case "len":
		return b.n == s.line.ready(), s
	case "position":
		if at < 0 || s.line[at].leased {
			return b.n == 0, s
		}
		return b.n == s.line[:at+1].ready(), s
	}
	panic("model: " + a.what)
}

func strict(ties bool) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return state{ties: ties} },
		Step: func(s, in, out any) (bool, any) {
			before, _ := s.(state)
			a, _ := in.(asked)
			b, _ := out.(told)
			ok, after := before.step(a, b)
			return ok, after
		},
		Equal: func(a, b any) bool {
			x, _ := a.(state)
			y, _ := b.(state)
			return x.puts == y.puts && slices.Equal(x.line, y.line)
		},
		DescribeOperation: func(in, out any) string { return fmt.Sprintf("%v -> %v", in, out) },
	}
}

// ask carries out a call, and says what was told. An item that is not there is
// an answer like any other.
func ask(ctx context.Context, q *client.Queue, a asked, receipt string) (b told, l *client.Lease, err error) {
	b.found = true
	switch a.what {
	case "put":
		_, err = q.Put(ctx, client.New{ID: a.id, Priority: a.priority})
	case "take":
		var t client.Taken
		if t, err = q.Take(ctx, client.Want{Lease: time.Hour}); len(t.Leases) == 1 {
			l = t.Leases[0]
			b.id = l.ID
		}
	case "ack":
		err = q.Ack(ctx, receipt)
	case "nack":
		_, err = q.Nack(ctx, receipt, 0, "")
	case "cancel":
		_, err = q.Cancel(ctx, a.id)
	case "update":
		_, err = q.Update(ctx, a.id, a.priority)
	case "len":
		var n client.Counts
		n, err = q.Len(ctx)
		b.n = int(n.Ready)
	case "position":
		var p client.Place
		p, err = q.Position(ctx, a.id)
		b.n = int(p.Position)
	}
	// A queue into which nothing was ever put is as good as an empty one.
	if errors.Is(err, client.ErrQueueUnknown) || errors.Is(err, client.ErrLeaseLost) || errors.Is(err, client.ErrItemUnknown) || errors.Is(err, client.ErrItemFinished) {
		b.found, err = false, nil
	}
	return b, l, err
}

// wander makes random calls, as one of several clients of a queue.
func wander(ctx context.Context, q *client.Queue, who, calls, priorities int, seed uint64, began time.Time, ids func(r *rand.Rand) string) (all []porcupine.Operation, err error) {
	r := rand.New(rand.NewPCG(seed, uint64(who)))
	var held []*client.Lease
	for i := range calls {
		a, receipt := asked{priority: uint32(r.IntN(priorities))}, ""
		switch n := r.IntN(20); {
		case n < 7:
			a.what, a.id = "put", fmt.Sprintf("%d-%d", who, i)
		case n < 12 || len(held) == 0 && n < 16:
			a.what = "take"
		case n < 16:
			l := held[0]
			held = held[1:]
			a.what, a.id, receipt = []string{"ack", "nack"}[r.IntN(2)], l.ID, l.Receipt
		default:
			a.what = []string{"cancel", "update", "len", "position"}[n-16]
			if a.id = ids(r); a.what != "len" && a.id == "" {
				a.what = "len"
			}
		}
		call := time.Since(began)
		b, l, err := ask(ctx, q, a, receipt)
		if err != nil {
			return all, fmt.Errorf("%v: %w", a, err)
		}
		if l != nil {
			held = append(held, l)
		}
		all = append(all, porcupine.Operation{ClientId: who, Input: a, Call: int64(call), Output: b, Return: int64(time.Since(began))})
	}
	return all, nil
}

func TestOneNodeIsAStrictPriorityQueue(t *testing.T) {
	const rounds, clientsMax, calls = 150, 8, 12
	c := newCluster(t, 10)
	for round := range rounds {
		c.queues += fmt.Sprintf("  - {name: strict/%d, max_attempts: 0}\n", round) // the model knows no dead letters
	}
	c.run(1)
	conns := make([]*client.Client, clientsMax)
	for i := range conns {
		conns[i] = c.nodes[0].client(t)
	}
	counts := map[string]int{}
	for round := range rounds {
		name := fmt.Sprintf("strict/%d", round)
		// In which order items of one priority were put at the same time shows only
		// when they are taken, and all orders have to be tried: a few clients at most.
		clients, priorities, ties := clientsMax, 1_000_000_000, round%2 == 0
		if ties {
			clients, priorities = 3, 2
		}
		var mu sync.Mutex
		var history []porcupine.Operation
		var errs []error
		var group sync.WaitGroup
		began := time.Now()
		for who := range clients {
			group.Go(func() {
				// Any id that some client may have put by now, or not.
				ids := func(r *rand.Rand) string { return fmt.Sprintf("%d-%d", r.IntN(clients), r.IntN(calls)) }
				all, err := wander(t.Context(), conns[who].Queue(name), who, calls, priorities, uint64(round), began, ids)
				mu.Lock()
				defer mu.Unlock()
				history, errs = append(history, all...), append(errs, err)
			})
		}
		group.Wait()
		if err := errors.Join(errs...); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		for _, o := range history {
			in, _ := o.Input.(asked)
			out, _ := o.Output.(told)
			counts[in.what]++
			if in.what == "take" && out.id == "" {
				counts["empty take"]++
			}
		}
		switch result, info := porcupine.CheckOperationsVerbose(strict(ties), history, 10*time.Second); result {
		case porcupine.Illegal:
			t.Fatalf("round %d: no order of the calls explains the answers:\n%s", round, stuck(history, info, state{ties: ties}))
		case porcupine.Unknown:
			counts["history too long to judge"]++
		default: // it is linearizable
		}
	}
	if n := counts["history too long to judge"]; n > rounds/20 {
		t.Errorf("%d of %d histories could not be judged", n, rounds)
	}
	c.phase("%d histories are linearizable: %v", rounds, counts)
}

// stuck lists the longest order that explains a beginning of a history, the
// state after it, and the calls that none explains.
func stuck(history []porcupine.Operation, info porcupine.LinearizationInfo, s state) (text string) {
	var longest []int
	for _, p := range info.PartialLinearizations()[0] {
		if len(p) > len(longest) {
			longest = p
		}
	}
	say := func(o porcupine.Operation) {
		text += fmt.Sprintf("%d: %v to %v: %+v -> %+v\n", o.ClientId, time.Duration(o.Call), time.Duration(o.Return), o.Input, o.Output)
	}
	for n, i := range longest {
		a, _ := history[i].Input.(asked)
		b, _ := history[i].Output.(told)
		if _, s = s.step(a, b); n >= len(longest)-10 {
			say(history[i])
		}
	}
	text += fmt.Sprintf("leaves %+v, and then none of\n", s.line)
	var rest []porcupine.Operation
	for i, o := range history {
		if !slices.Contains(longest, i) {
			rest = append(rest, o)
		}
	}
	slices.SortFunc(rest, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
	for _, o := range rest[:min(len(rest), 10)] {
		say(o)
	}
	return text
}

func TestTheModelRefusesWrongAnswers(t *testing.T) {
	op := func(from, to int64, a asked, b told) porcupine.Operation {
		return porcupine.Operation{Input: a, Output: b, Call: from, Return: to}
	}
	first := []porcupine.Operation{op(0, 1, asked{"put", "a", 1}, told{}), op(2, 3, asked{"put", "b", 0}, told{})}
	for name, c := range map[string]struct {
		next []porcupine.Operation
		want bool
	}{
		"the lighter first":    {[]porcupine.Operation{op(4, 5, asked{what: "take"}, told{id: "b"}), op(6, 7, asked{"position", "a", 0}, told{n: 1})}, true},
		"the heavier first":    {[]porcupine.Operation{op(4, 5, asked{what: "take"}, told{id: "a"})}, false},
		"none at all":          {[]porcupine.Operation{op(4, 5, asked{what: "take"}, told{})}, false},
		"one of them twice":    {[]porcupine.Operation{op(4, 9, asked{what: "take"}, told{id: "b"}), op(4, 9, asked{what: "take"}, told{id: "b"})}, false},
		"both, at a time":      {[]porcupine.Operation{op(4, 9, asked{what: "take"}, told{id: "b"}), op(4, 9, asked{what: "take"}, told{id: "a"})}, true},
		"given back":           {[]porcupine.Operation{op(4, 5, asked{what: "take"}, told{id: "b"}), op(6, 7, asked{"nack", "b", 0}, told{found: true}), op(8, 9, asked{what: "take"}, told{id: "b"})}, true},
		"done, and not gone":   {[]porcupine.Operation{op(4, 5, asked{what: "take"}, told{id: "b"}), op(6, 7, asked{"ack", "b", 0}, told{found: true}), op(8, 9, asked{"len", "", 0}, told{n: 2})}, false},
		"ahead by an update":   {[]porcupine.Operation{op(4, 5, asked{"update", "a", 0}, told{found: true}), op(8, 9, asked{what: "take"}, told{id: "a"})}, true},
		"cancelled, and taken": {[]porcupine.Operation{op(4, 5, asked{"cancel", "b", 0}, told{found: true}), op(8, 9, asked{what: "take"}, told{id: "b"})}, false},
	} {
		if got := porcupine.CheckOperations(strict(true), append(slices.Clone(first), c.next...)); got != c.want {
			t.Errorf("%s: linearizable is %v", name, got)
		}
	}
}
