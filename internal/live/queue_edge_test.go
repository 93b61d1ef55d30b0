package live

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/anteroom/anteroom/client"
)

var queuesAtRest = flag.Int("queues", 2000, "queues in TestQueuesAtRestCostNothing")

// An answer with several items has the first ones there are, in their order, and no
// fewer than were asked for; a look at the first ones has no hole, and says when there
// are more. The queue is at rest, and its items are at all three nodes.
func TestAnswersOfSeveralItemsAreWhole(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 10)
	c.data = true
	for _, kind := range kinds {
		c.queues += fmt.Sprintf("  - {name: several/%s, %s}\n", kind.name, kind.key)
	}
	c.run(3)
	ctx, draw := t.Context(), rand.New(rand.NewPCG(1, 4))
	for _, kind := range kinds {
		q := c.clients(1, client.WithPatience(20*time.Second))[0].Queue("several/" + kind.name)
		var want []client.New
		for i := range 1500 {
			want = append(want, client.New{ID: fmt.Sprintf("item-%04d", i), Priority: uint32(draw.IntN(1500)), Payload: make([]byte, 100)})
		}
		for i, at := range c.nodes { // one after the other, so that it is known who came first
			if _, err := at.client(t).Queue(q.Name()).PutAll(ctx, want[500*i:500*(i+1)]); err != nil {
				t.Fatalf("%s: %v", q.Name(), err)
			}
		}
		rest(ctx, time.Second) // news of the last ones is under way
		seen, err := q.Peek(ctx, 1000)
		if err != nil || len(seen.Items) != 1000 || !seen.More || len(seen.Missing) > 0 {
			t.Errorf("%s: a look at 1,000 of 1,500 has %d, more %t, missing %v (%v)", q.Name(), len(seen.Items), seen.More, seen.Missing, err)
		}
		if !slices.IsSortedFunc(seen.Items, func(a, b client.Item) int { return int(a.Priority) - int(b.Priority) }) {
			t.Errorf("%s: a look at the first ones is out of order", q.Name())
		}
		slices.SortStableFunc(want, func(a, b client.New) int { return int(a.Priority) - int(b.Priority) })
		for most := 1000; len(want) > 0; {
			taken, err := q.Take(ctx, client.Want{Items: most, Lease: time.Minute, Wait: 5 * time.Second})
			if err != nil || len(taken.Leases) != min(most, len(want)) {
				t.Fatalf("%s: %d asked for of %d, %d came (%v)", q.Name(), most, len(want), len(taken.Leases), err)
			}
			discordances := 0
			for i, l := range taken.Leases {
				if l.Priority != want[i].Priority {
					discordances++
				}
			}
			if discordances > 0 {
				t.Errorf("%s: %d of %d are not where they should be", q.Name(), discordances, len(taken.Leases))
			}
			want, most = want[len(taken.Leases):], 279
		}
		c.phase("%s: 1,000 of 1,500 are seen, and 1,000, 279 and 221 come in order", q.Name())
	}
}

// Whatever a program calls its items, and whatever receipts it has: the answer is about
// that item, or says what is wrong.
func TestOddNamesAndReceiptsAreAnswered(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 10)
	c.run(3)
	ctx, cl := t.Context(), c.clients(1, client.WithTry(5*time.Second), client.WithPatience(10*time.Second))[0]
	q := cl.Queue("odd")
	first, err := q.Put(ctx, client.New{ID: "first"})
	if err != nil {
		t.Fatal(err)
	}
	is := func(what string, err error, code codes.Code, reason client.Reason) {
		t.Helper()
		var e *client.Error
		if !errors.As(err, &e) || e.Code != code && e.Code != codes.OK || e.Reason != reason || len(e.Text) > 1000 {
			t.Errorf("%s: %v; want %v, %s", what, err, code, reason)
		}
	}
	_, err = q.Put(ctx, client.New{ID: first.Handle})
	is("an id that is another item's handle", err, codes.InvalidArgument, client.ErrInvalid)
	if _, err := q.Cancel(ctx, first.Handle); err != nil {
		t.Errorf("cancel by handle: %v", err)
	}
	long := strings.Repeat("q", 10_000)
	_, err = q.Put(ctx, client.New{ID: long})
	is("an id of 10,000 characters", err, codes.InvalidArgument, client.ErrInvalid)
	_, err = cl.Queue(long).Put(ctx, client.New{ID: "x"})
	is("a queue of 10,000 characters", err, codes.InvalidArgument, client.ErrInvalid)
	is("a receipt of a node that never was", q.Ack(ctx, "1.m.1.elsewhere"), codes.NotFound, client.ErrItemUnknown)
	is("no receipt", q.Ack(ctx, "nonsense"), codes.InvalidArgument, client.ErrInvalid)
	if _, err := q.Put(ctx, client.New{ID: "second"}); err != nil {
		t.Fatal(err)
	}
	taken, err := q.Take(ctx, client.Want{Wait: 5 * time.Second})
	if err != nil || len(taken.Leases) != 1 {
		t.Fatalf("%+v, %v", taken, err)
	}
	if _, err := q.Cancel(ctx, "second"); err != nil {
		t.Fatal(err)
	}
	is("an acknowledgement of what was cancelled", taken.Leases[0].Ack(ctx), codes.FailedPrecondition, client.ErrItemFinished)
}

// Queues in which nothing happens cost a node next to no time, and its metrics do not
// grow with them.
func TestQueuesAtRestCostNothing(t *testing.T) {
	c := newCluster(t, 10)
	c.top = fmt.Sprintf("queueing: {queues_max: %d}\n", *queuesAtRest+10)
	c.run(3)
	spent := func() (share float64) {
		const during = 10 * time.Second
		before := c.nodes[0].processorTime()
		rest(t.Context(), during)
		return float64(c.nodes[0].processorTime()-before) / float64(during)
	}
	none := spent()
	var group sync.WaitGroup
	for who, cl := range c.clients(8, client.WithPatience(30*time.Second)) {
		group.Go(func() {
			for i := who; i < *queuesAtRest; i += 8 {
				if _, err := cl.Queue(fmt.Sprintf("tenant-%d", i)).Put(t.Context(), client.New{ID: "x"}); err != nil {
					t.Errorf("queue %d: %v", i, err)
					return
				}
			}
		})
	}
	group.Wait()
	rest(t.Context(), 10*time.Second) // until what was put is at rest
	all := spent()
	page, err := c.nodes[0].look("/metrics", 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	size, err := io.Copy(io.Discard, page.Body)
	_ = page.Body.Close()
	if err != nil {
		t.Fatal(err)
	}
	c.phase("a node at rest takes %.1f %% of a core without queues and %.1f %% with %d; its metrics have %d bytes", 100*none, 100*all, *queuesAtRest, size)
	if size > 1<<20 {
		t.Errorf("the metrics have %d bytes", size)
	}
	if all > none+0.05 {
		t.Errorf("%d queues at rest cost %.1f %% of a core; without any it was %.1f %%", *queuesAtRest, 100*all, 100*none)
	}
}

// processorTime is how long the process has had a processor.
func (p *process) processorTime() time.Duration {
	p.c.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		p.c.t.Skipf("NOT RUN: a test that asks Linux for the time that a process has had: %v", err)
	}
	_, rest, _ := strings.Cut(string(text), ") ") // a name may have spaces
	const user, system, ticks = 11, 12, 100
	var sum time.Duration
	for _, i := range []int{user, system} {
		n, err := strconv.Atoi(strings.Fields(rest)[i])
		if err != nil {
			p.c.t.Fatal(err)
		}
		sum += time.Duration(n) * time.Second / ticks
	}
	return sum
}
