package broker_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/broker"
	"github.com/anteroom/anteroom/internal/pqueue"
	"github.com/anteroom/anteroom/qpid"
)

// crowd is a node by itself, with many queues.
type crowd struct {
	t     testing.TB
	b     *broker.Broker
	now   broker.Time
	calls uint64
}

// newCrowd has n queues that were made on use, each with an item, and room for
// more others.
func newCrowd(t testing.TB, n, more int) *crowd {
	t.Helper()
	m := eviction.Member{Name: "n1", Boot: 1}
	conf := config(m)
	conf.QueuesMax, conf.Logs = n+more+1, []broker.Kind{broker.Durable}
	c := &crowd{t: t, now: broker.Time{Boot: 1_000_000, Clock: 1_700_000_000_000_000}}
	b, err := broker.New(conf, c.now)
	if err != nil {
		t.Fatal(err)
	}
	c.b = b
	b.SetView(c.now, broker.View{List: []eviction.Member{m}, Primary: true, At: c.now.Boot})
	for i := range n {
		c.insert(crowdName(i))
	}
	return c
}

func crowdName(i int) string { return fmt.Sprintf("q%05d", i) }

func (c *crowd) do(command pqueue.Command) broker.Answer {
	c.calls++
	c.b.Do(c.now, broker.Call{ID: c.calls, Command: command})
	return c.answer()
}

func (c *crowd) answer() broker.Answer {
	c.t.Helper()
	all := c.b.Ready().Answers
	if len(all) != 1 {
		c.t.Fatalf("answers: %+v", all)
	}
	return all[0]
}

func (c *crowd) insert(queue string) {
	c.t.Helper()
	if a := c.do(pqueue.Command{Op: pqueue.OpInsert, Queue: queue, ID: fmt.Sprint("i", c.calls)}); a.Result.Code != pqueue.OK {
		c.t.Fatalf("insert into %s: %+v", queue, a)
	}
}

// work takes an item and acknowledges it.
func (c *crowd) work(queue string) {
	c.t.Helper()
	c.calls++
	c.b.Take(c.now, broker.Take{ID: c.calls, Queue: queue, Max: 1, Within: 1_000_000})
	a := c.answer()
	if len(a.Parts) != 1 {
		c.t.Fatalf("take from %s: %+v", queue, a)
	}
	r := a.Parts[0].Result
	c.b.Do(c.now, broker.Call{
		ID: c.calls, Handle: broker.HandleOf(broker.Memory, "n1", r.Number), Command: pqueue.Command{Op: pqueue.OpAck, Queue: queue, Lease: r.Lease},
	})
	if a = c.answer(); a.Result.Code != pqueue.OK {
		c.t.Fatalf("ack in %s: %+v", queue, a)
	}
}

func (c *crowd) tick() {
	c.now.Boot += broker.TickEvery
	c.now.Clock += broker.TickEvery
	c.b.Tick(c.now)
	c.b.Ready()
}

// idle lets so much time go by at once, and then as many ticks as look at every
// queue.
func (c *crowd) idle(d int64) {
	c.now.Boot += d
	c.now.Clock += d
	for range 1001 {
		c.tick()
	}
}

// rest sums up a few queues at a time.
func (c *crowd) rest(between func()) broker.Rest {
	var r broker.Rest
	for c.b.SumUp(&r, 7) {
		between()
	}
	return r
}

// least is the least time that f has taken, of many times, for one of n.
func least(n int, f func()) time.Duration {
	best := time.Duration(math.MaxInt64)
	for range 30 {
		began := time.Now()
		for range n {
			f()
		}
		best = min(best, time.Since(began))
	}
	return best / time.Duration(n)
}

// Whatever is done all the time, or by whoever asks, costs as much among thousands
// of queues as among ten.
func TestQueuesThatDoNothingCostNothing(t *testing.T) {
	const few, many, atMost = 110, 10_000, 20
	a, b := newCrowd(t, few, 0), newCrowd(t, many, 0)
	a.idle(60_000_000)
	b.idle(60_000_000)
	took := map[string]time.Duration{}
	for name, of := range map[string]func(*crowd) func(){
		"a tick":        func(c *crowd) func() { return c.tick },
		"length of one": func(c *crowd) func() { return func() { c.do(pqueue.Command{Op: pqueue.OpStats, Queue: "q00003"}) } },
		"one too many": func(c *crowd) func() {
			return func() { c.do(pqueue.Command{Op: pqueue.OpInsert, Queue: "another", ID: "x"}) }
		},
		"part of a sum": func(c *crowd) func() {
			var r broker.Rest
			c.b.SumUp(&r, 103)
			return func() {
				part := r
				c.b.SumUp(&part, 5)
			}
		},
	} {
		x, y := least(50, of(a)), least(50, of(b))
		t.Logf("%s: %v among %d queues, %v among %d", name, x, few, y, many)
		if y > atMost*max(x, 300*time.Nanosecond) {
			t.Errorf("%s takes %v among %d queues, and %v among %d", name, x, few, y, many)
		}
		took[name] = y
	}
	if x, y := took["length of one"], took["one too many"]; y > 10*x {
		t.Errorf("a refusal takes %v, and an answer %v", y, x)
	}
	for name, c := range map[string]*crowd{"few": a, "many": b} {
		if code := c.do(pqueue.Command{Op: pqueue.OpInsert, Queue: "another", ID: "x"}).Result.Code; code != pqueue.QueuesFull {
			t.Errorf("%s: there was room for another one: %v", name, code)
		}
	}
}

func BenchmarkTickOfManyQueues(b *testing.B) {
	for _, n := range []int{10, 45_000} {
		b.Run(fmt.Sprintf("queues=%d", n), func(b *testing.B) {
			c := newCrowd(b, n, 10)
			b.ReportAllocs()
			for b.Loop() {
				c.tick()
			}
		})
	}
}

// The metrics tell of some queues each, and of the others together. Nothing is
// told twice, or not at all.
func TestQueuesAreToldOfEachOrTogether(t *testing.T) {
	const n = 160
	c := newCrowd(t, n, 0)
	for i := range n {
		switch i % 4 {
		case 0:
			c.work(crowdName(i))
		case 1:
			c.do(pqueue.Command{Op: pqueue.OpInsert, Queue: crowdName(i), ID: "later", NotBefore: c.now.Clock + 1e9})
		case 2:
			c.do(pqueue.Command{Op: pqueue.OpMode, Queue: crowdName(i), Mode: pqueue.ModeSetting{Mode: pqueue.Paused}})
		default:
			c.do(pqueue.Command{Op: pqueue.OpMode, Queue: crowdName(i), Mode: pqueue.ModeSetting{Mode: pqueue.Draining}})
		}
		c.now.Clock++
	}
	each, pages := c.b.Each(), 1
	rest := c.rest(func() { pages++ })
	if len(each) != 101 || rest.Queues != n-100 || c.b.Known() != n+1 || each[100].Queue != "slow" || pages != (n+1+6)/7 {
		t.Errorf("%d told of each and %d together, of %d, in %d pages", len(each), rest.Queues, c.b.Known(), pages)
	}
	want := broker.Rest{}
	for _, s := range c.do(pqueue.Command{Op: pqueue.OpStats}).Parts[0].Result.Stats[100:n] {
		want.Queues++
		want.Sum.Ready, want.Sum.Delayed, want.Sum.Bytes = want.Sum.Ready+s.Ready, want.Sum.Delayed+s.Delayed, want.Sum.Bytes+s.Bytes
		want.Sum.Counters = want.Sum.Counters.Plus(s.Counters)
		if s.Oldest != 0 && want.Sum.Oldest == 0 {
			want.Sum.Oldest = s.Oldest // they were made in this order
		}
		switch s.Mode.Mode {
		case pqueue.Paused:
			want.Paused++
		case pqueue.Draining:
			want.Draining++
		default:
		}
	}
	want.Roots = want.Queues
	if got := (broker.Rest{Queues: rest.Queues, Paused: rest.Paused, Draining: rest.Draining, Roots: rest.Roots, Sum: rest.Sum}); got != want {
		t.Errorf("together they have %+v, want %+v", got, want)
	}
	if want.Sum.Delayed != 15 || want.Sum.Oldest == 0 || want.Sum.Counters.Acked != 15 {
		t.Errorf("it shows nothing: %+v", want)
	}
}

// A counter that falls looks like a restart to Prometheus, and what it has then
// counts a second time.
func TestCountersOfQueuesToldOfTogetherNeverFall(t *testing.T) {
	const n = 150
	c := newCrowd(t, n, 10)
	check := func(inserted, acked int) {
		t.Helper()
		if now := c.rest(func() {}).Sum.Counters; now.Inserted != uint64(inserted) || now.Acked != uint64(acked) {
			t.Errorf("they are %+v, want %d inserted and %d acknowledged", now, inserted, acked)
		}
	}
	check(n-100, 0)
	step := 0
	c.rest(func() { // what happens on both sides of where it is
		for _, i := range []int{100, 120, n - 1} {
			c.insert(crowdName(i))
		}
		step++
	})
	inserted := n - 100 + 3*step
	check(inserted, 0)
	c.insert("an item stays in the first")
	inserted++
	worked := inserted - 1
	for i := range n {
		for s := c.do(pqueue.Command{Op: pqueue.OpStats, Queue: crowdName(i)}); s.Parts[0].Result.Stats[0].Ready > 0; {
			c.work(crowdName(i))
			s = c.do(pqueue.Command{Op: pqueue.OpStats, Queue: crowdName(i)})
		}
	}
	c.idle(600_000_000)
	if c.b.Known() != 2 {
		t.Fatalf("%d queues are known, want the one that is listed, and one with an item", c.b.Known())
	}
	check(inserted, worked)
	for i := range n {
		c.insert(crowdName(i))
	}
	if each := c.b.Each(); len(each) != 101 || each[0].Counters.Inserted != 1 {
		t.Errorf("%d are told of each, the first is %+v", len(each), each[0])
	}
	check(inserted+n-100, worked)
}

func TestAQueueThatIsFullFindsRoomOnceAnotherIsIdle(t *testing.T) {
	c := newCrowd(t, 30, 0)
	another := func() pqueue.Code {
		return c.do(pqueue.Command{Op: pqueue.OpInsert, Queue: "another", ID: "x"}).Result.Code
	}
	c.work(crowdName(17))
	if code := another(); code != pqueue.QueuesFull {
		t.Fatalf("another: %v", code)
	}
	c.now.Boot += 60_000_000
	c.now.Clock += 60_000_000
	c.tick()
	if code := another(); code != pqueue.OK {
		t.Errorf("another, with one idle: %v", code)
	}
	if code := c.do(pqueue.Command{Op: pqueue.OpInsert, Queue: "a third", ID: "x"}).Result.Code; code != pqueue.QueuesFull {
		t.Errorf("a third: %v", code)
	}
}

// What is in a log stays there, also when its queue is not listed any more.
func TestAQueueOfALogKeepsItsNameWhenNobodyAsksForIt(t *testing.T) {
	c := newCrowd(t, 0, 10)
	s := pqueue.New(1)
	for _, command := range []pqueue.Command{{Op: pqueue.OpConfigure, Queue: "old", Limits: bounds()}, {Op: pqueue.OpInsert, Queue: "old", ID: "x", Now: 1}} {
		if r := s.Apply(command); r.Code != pqueue.OK {
			t.Fatal(r)
		}
	}
	if err := c.b.Restore(c.now, broker.Durable, s.Encode()); err != nil {
		t.Fatal(err)
	}
	c.b.Leads(c.now, broker.Durable, true)
	c.idle(700_000_000)
	if a := c.do(pqueue.Command{Op: pqueue.OpStats, Queue: "old"}); a.Result.Code != pqueue.OK || a.Parts[0].Result.Stats[0].Ready != 1 {
		t.Errorf("after ten minutes: %+v", a)
	}
}

// Here the shard's part is forgotten, and the queue stays for the sake of the
// round's tree.
func TestCountersOfAQueueThatBeginsAnewDoNotFallEither(t *testing.T) {
	const n = 105
	c := &cluster{t: t, now: broker.Time{Boot: 1_000_000, Clock: 1_700_000_000_000_000}}
	for _, name := range []qpid.NodeID{"n1", "n2"} {
		conf := config(eviction.Member{Name: name, Boot: 1})
		conf.QueuesMax = n + 10
		b, err := broker.New(conf, c.now)
		if err != nil {
			t.Fatal(err)
		}
		c.nodes = append(c.nodes, &host{m: conf.Self, b: b, answers: map[uint64]broker.Answer{}})
	}
	c.view()
	c.pass(1_000_000)
	for round := range 2 {
		for i := range n {
			for at := range c.nodes { // so that there is news of it between them
				c.insert(at, crowdName(i), fmt.Sprintf("x%d@n%d", round, at+1), 0)
			}
			for range c.nodes {
				a := c.take(0, broker.Take{Queue: crowdName(i), Max: 1})
				if len(a.Parts) != 1 {
					t.Fatalf("take: %+v", a)
				}
				p := a.Parts[0]
				c.do(0, broker.Call{
					Handle: broker.HandleOf(broker.Memory, p.Node, p.Result.Number), Command: pqueue.Command{Op: pqueue.OpAck, Queue: crowdName(i), Lease: p.Result.Lease},
				})
			}
		}
		c.pass(620_000_000)
		var rest broker.Rest
		for c.nodes[0].b.SumUp(&rest, n) {
		}
		if rest.Queues != n-100 || rest.Sum.Bytes != 0 || rest.Sum.Counters.Acked != uint64((round+1)*(n-100)) {
			t.Errorf("after %d: %d queues, %+v", round, rest.Queues, rest.Sum)
		}
	}
}
