package broker_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/broker"
	"github.com/anteroom/anteroom/internal/pqueue"
	"github.com/anteroom/anteroom/qpid"
)

func TestPauseHoldsEverywhereAndForNewcomers(t *testing.T) {
	c := newCluster(t, 3)
	c.insert(0, "q", "a@n1", 0)
	mode := func(at int, m pqueue.Mode) {
		t.Helper()
		a := c.do(at, broker.Call{Command: pqueue.Command{Op: pqueue.OpMode, Queue: "q", Mode: pqueue.ModeSetting{Mode: m}}})
		if a.Result.Code != pqueue.OK || len(a.Missing) > 0 {
			t.Fatalf("mode: %+v", a)
		}
	}
	mode(2, pqueue.Paused)
	c.start(eviction.Member{Name: "n4", Boot: 1})
	c.pass(1_000_000)
	stats := c.do(0, broker.Call{Command: pqueue.Command{Op: pqueue.OpStats, Queue: "q"}})
	if len(stats.Parts) != 4 {
		t.Fatalf("the newcomer does not know the queue: %+v", stats)
	}
	for _, p := range stats.Parts {
		if p.Result.Stats[0].Mode.Mode != pqueue.Paused {
			t.Errorf("%s does not know that the queue is paused", p.Node)
		}
	}
	for at := range 4 {
		if a := c.take(at, broker.Take{Queue: "q", Max: 1}); !a.Paused || a.Result.Code != pqueue.Empty {
			t.Fatalf("at %d: %+v", at, a)
		}
	}
	id := c.begin(1, broker.Take{Queue: "q", Max: 1, Wait: 10_000_000})
	mode(3, pqueue.Running)
	c.pass(broker.TickEvery)
	if a := c.nodes[1].answers[id]; len(a.Parts) != 1 {
		t.Fatalf("after resume: %+v", a)
	}
	mode(0, pqueue.Draining)
	if a := c.do(1, broker.Call{Command: pqueue.Command{Op: pqueue.OpInsert, Queue: "q", ID: "b@n3"}}); a.Result.Code != pqueue.IsDraining {
		t.Fatalf("insert into a draining queue: %+v", a)
	}
}

func TestALostNodeTakesItsItemsAndNobodyElses(t *testing.T) {
	c := newCluster(t, 4)
	for i := range 40 {
		c.insert(0, "q", fmt.Sprintf("i%02d@n%d", i, i%4+1), 0)
		c.now.Clock++
	}
	c.nodes[0].down = true
	if a := c.do(1, broker.Call{Handle: broker.Handle{Node: "n1", Number: 1}, Command: pqueue.Command{Op: pqueue.OpCancel, Queue: "q"}}); a.Result.Code != pqueue.Unavailable {
		t.Fatalf("cancel at a lost node: %+v", a)
	}
	c.pass(2_000_000)
	got := names(c.take(3, broker.Take{Queue: "q", Max: 100}))
	if len(got) != 30 || slices.ContainsFunc(got, func(id string) bool { return id[4:] == "n1" }) {
		t.Fatalf("got %d: %v", len(got), got)
	}
}

// The last node of three has no quorum: it may not let anything out of a queue
// with an interval, and says what it does not know.
func TestANodeAloneNeitherHangsNorHidesWhoIsMissing(t *testing.T) {
	c := newCluster(t, 3)
	c.votes = []qpid.NodeID{"n1", "n2", "n3"}
	for i := range 6 {
		c.insert(0, "slow", fmt.Sprintf("i%02d@n%d", i, i%3+1), 0)
	}
	c.nodes[0].down, c.nodes[1].down, c.minor = true, true, true
	c.pass(3_000_000)
	gone := []qpid.NodeID{"n1", "n2"}
	for _, wait := range []int64{0, 2_000_000} {
		began := c.now.Boot
		a := c.take(2, broker.Take{Queue: "slow", Max: 1, Wait: wait})
		if took := c.now.Boot - began; a.Result.Code != pqueue.Empty || !slices.Equal(a.Missing, gone) || took > wait+1_000_000 {
			t.Errorf("a take that waits for %d µs: %+v after %d µs", wait, a, took)
		}
	}
	for _, op := range []pqueue.Op{pqueue.OpStats, pqueue.OpPeek, pqueue.OpDead} {
		if a := c.do(2, broker.Call{Command: pqueue.Command{Op: op, Queue: "slow", Max: 10}}); a.Result.Code != pqueue.OK || !slices.Equal(a.Missing, gone) {
			t.Errorf("operation %d: %+v", op, a)
		}
	}
	c.nodes[0].down, c.minor = false, false
	c.pass(3_000_000)
	c.votes = []qpid.NodeID{"n1", "n3"} // the others know that n2 is gone for good
	c.pass(1_000_000)
	if a := c.do(2, broker.Call{Command: pqueue.Command{Op: pqueue.OpStats, Queue: "slow"}}); len(a.Parts) != 2 || len(a.Missing) > 0 {
		t.Errorf("with a quorum: %+v", a)
	}
	if a := c.take(2, broker.Take{Queue: "slow", Max: 1, Wait: 5_000_000}); len(a.Parts) != 1 {
		t.Errorf("with a quorum: %+v", a)
	}
}

// A node that is gone keeps what it had of a durable queue on its disk, also when
// the others do without its vote.
func TestADurableQueueMissesANodeUntilItIsBack(t *testing.T) {
	m, o := eviction.Member{Name: "n1", Boot: 1}, eviction.Member{Name: "n2", Boot: 1}
	c := config(m)
	c.Queues = append(c.Queues, broker.Queue{Name: "kept", Kind: broker.Durable, Limits: bounds()})
	c.Logs = []broker.Kind{broker.Durable}
	now := broker.Time{Boot: 1_000_000, Clock: 1_700_000_000_000_000}
	b, err := broker.New(c, now)
	if err != nil {
		t.Fatal(err)
	}
	b.Leads(now, broker.Durable, true)
	missing := func(queue string, list ...eviction.Member) []qpid.NodeID {
		t.Helper()
		b.SetView(now, broker.View{List: list, Primary: true, At: now.Boot, Voters: []qpid.NodeID{"n1"}})
		b.Broke(now, o) // whatever it was asked
		b.Do(now, broker.Call{ID: 1, Command: pqueue.Command{Op: pqueue.OpStats, Queue: queue}})
		b.Broke(now, o)
		a := b.Ready().Answers
		if len(a) != 1 {
			t.Fatalf("answers: %+v", a)
		}
		return a[0].Missing
	}
	missing("kept", m, o)
	for queue, want := range map[string]int{"kept": 1, "": 1, "slow": 0} {
		if got := missing(queue, m); len(got) != want {
			t.Errorf("of queue %q %v are missing, want %d", queue, got, want)
		}
	}
	missing("kept", m, o)
	if got := missing("kept", m, o); !slices.Equal(got, []qpid.NodeID{"n2"}) {
		t.Errorf("one in the view that does not answer: %v", got)
	}
}

func TestALostAnswerIsAskedForAgain(t *testing.T) {
	c := newCluster(t, 2)
	c.insert(0, "q", "a@n1", 0)
	lost := 0
	c.cut = func(from, _ eviction.Member) bool {
		if from.Name == "n1" && lost < 1 {
			lost++
			return true
		}
		return false
	}
	a := c.take(1, broker.Take{Queue: "q", Max: 1})
	if len(a.Parts) != 1 {
		t.Fatalf("take: %+v", a)
	}
	s := c.do(0, broker.Call{Command: pqueue.Command{Op: pqueue.OpStats, Queue: "q"}})
	if n := s.Parts[0].Result.Stats[0].Counters.Leased; n != 1 {
		t.Fatalf("leased %d times for one deleteMin", n)
	}
}

// leasedOnce fails if an item that somebody works on is to be had.
func leasedOnce(c *cluster) {
	c.t.Helper()
	c.pass(1_000_000)
	if a := c.take(0, broker.Take{Queue: "q", Max: 1}); len(a.Parts) > 0 {
		c.t.Fatalf("an item is given out while it is leased: %+v", a)
	}
}

// A deleteMin that lay at a paused node comes to the root again, which has given
// it a lease. What its caller is told again may come when that has forgotten.
func lateCopy(c *cluster) broker.Message {
	c.t.Helper()
	var late broker.Message
	c.heard = func(m broker.Message) {
		if m.Kind == broker.MsgQPID && m.QPID.Kind == qpid.MsgDeleteMin {
			late = m
		}
	}
	c.insert(0, "q", "a@n1", 0)
	if a := c.take(1, broker.Take{Queue: "q", Max: 1, For: 3_600_000_000}); len(a.Parts) != 1 || late.To != c.nodes[0].m {
		c.t.Fatalf("take: %+v, asked for with %+v", a, late)
	}
	c.heard = nil
	return late
}

func TestALeaseIsNotGivenBackByALaterLifeOfItsCaller(t *testing.T) {
	c := newCluster(t, 2)
	late := lateCopy(c)
	c.nodes[1].down = true
	c.start(eviction.Member{Name: "n2", Boot: 2})
	c.pass(1_000_000)
	c.deliver(late)
	leasedOnce(c)
}

func TestALeaseIsNotGivenBackWhenItsDeliveryIsForgotten(t *testing.T) {
	c := newCluster(t, 2)
	late := lateCopy(c)
	c.pass(20_000_000)
	c.insert(0, "q", "b@n1", 0)
	if a := c.take(1, broker.Take{Queue: "q", Max: 1, For: 3_600_000_000}); len(a.Parts) != 1 {
		t.Fatalf("take: %+v", a)
	}
	c.deliver(late)
	leasedOnce(c)
}

func TestACallerWhoHasGoneKeepsNothing(t *testing.T) {
	c := newCluster(t, 2)
	id := c.begin(1, broker.Take{Queue: "q", Max: 5, Wait: 10_000_000})
	c.nodes[1].b.Forsake(c.now, id)
	c.insert(0, "q", "a@n1", 0)
	c.pass(1_000_000)
	if a := c.take(0, broker.Take{Queue: "q", Max: 1}); len(a.Parts) != 1 || a.Parts[0].Result.Items[0].Attempts != 1 {
		t.Fatalf("take: %+v", a)
	}
}

func TestIntervalLetsSoManyOutAndNoMore(t *testing.T) {
	c := newCluster(t, 3)
	for i := range 20 {
		c.insert(i%3, "slow", fmt.Sprintf("i%02d@n%d", i, i%3+1), 0)
		c.now.Clock++
	}
	c.pass(10_000_000) // an idle time earns nothing
	var at []int64
	var got []string
	for len(got) < 20 {
		a := c.take(len(got)%3, broker.Take{Queue: "slow", Max: 3, Wait: 5_000_000})
		for range a.Parts {
			at = append(at, c.now.Boot)
		}
		got = append(got, names(a)...)
	}
	for i := 2; i < len(at); i++ {
		if at[i]-at[i-2] < 1_000_000 {
			t.Fatalf("items %d to %d within %d µs", i-2, i, at[i]-at[i-2])
		}
	}
	if span := at[19] - at[0]; span > 10_000_000 {
		t.Fatalf("20 items, two a second, took %d µs", span)
	}
	if !slices.IsSorted(got) {
		t.Fatalf("order: %v", got)
	}
}

func TestIntervalHoldsWhenTheRootIsLost(t *testing.T) {
	c := newCluster(t, 3)
	for i := range 6 {
		c.insert(0, "slow", fmt.Sprintf("i%02d@n%d", i, 3-i/2), 0)
		c.now.Clock++
	}
	c.pass(3_000_000)
	if a := c.take(0, broker.Take{Queue: "slow", Max: 2}); len(a.Parts) != 2 || a.Parts[0].Node != "n3" {
		t.Fatalf("first: %+v", a)
	}
	last := c.now.Boot
	c.nodes[2].down = true
	c.pass(200_000)
	a := c.take(0, broker.Take{Queue: "slow", Max: 2, Wait: 20_000_000})
	if len(a.Parts) == 0 || c.now.Boot-last < 1_000_000 {
		t.Fatalf("after %d µs: %+v", c.now.Boot-last, a)
	}
	if c.now.Boot-last > 4_000_000 {
		t.Fatalf("the queue stood still for %d µs", c.now.Boot-last)
	}
}

func TestWatchersSeeAllNodes(t *testing.T) {
	c := newCluster(t, 3)
	if code := c.nodes[0].b.Watch(c.now, "q", true); code != pqueue.OK {
		t.Fatal(code)
	}
	c.settle()
	c.insert(1, "q", "a@n3", 0)
	c.take(2, broker.Take{Queue: "q", Max: 1})
	var kinds []pqueue.Kind
	for _, s := range c.nodes[0].seen {
		if s.Node != "n3" || s.Change.Item.ID != "a@n3" || s.Change.Item.Payload != nil {
			t.Fatalf("saw %+v", s)
		}
		kinds = append(kinds, s.Change.Kind)
	}
	if !slices.Equal(kinds, []pqueue.Kind{pqueue.WasInserted, pqueue.WasLeased}) {
		t.Fatalf("saw %v", kinds)
	}
}

func TestStrangersCannotFillANode(t *testing.T) {
	c := newCluster(t, 2)
	code := pqueue.OK
	for i := range 100 {
		a := c.do(0, broker.Call{Command: pqueue.Command{Op: pqueue.OpInsert, Queue: fmt.Sprint("q", i), ID: "x@n1"}})
		if code = a.Result.Code; code != pqueue.OK {
			break
		}
	}
	if code != pqueue.QueuesFull {
		t.Fatalf("the last of 100 queues: %v", code)
	}
	if a := c.take(0, broker.Take{Queue: "one more", Max: 1}); a.Result.Code != pqueue.QueuesFull {
		t.Fatalf("take: %+v", a)
	}
}

func TestARepeatedInsertMeetsTheSameItemWhenItsHomeHasChanged(t *testing.T) {
	c := newCluster(t, 2)
	handles := map[string]broker.Handle{}
	for i := range 50 {
		id := fmt.Sprint("job", i)
		handles[id] = c.insert(0, "q", id, 0)
	}
	c.start(eviction.Member{Name: "n3", Boot: 1})
	c.pass(1_000_000)
	for i := range 50 {
		id := fmt.Sprint("job", i)
		a := c.do(i%3, broker.Call{Command: pqueue.Command{Op: pqueue.OpInsert, Queue: "q", ID: id}})
		if !a.Result.Exists || a.Handle != handles[id] {
			t.Fatalf("%s: %+v, want %v", id, a, handles[id])
		}
	}
	moved := 0
	for i := range 50 {
		if h := c.insert(0, "q", fmt.Sprint("new", i), 0); h.Node == "n3" {
			moved++
		}
	}
	if moved == 0 {
		t.Fatal("the newcomer is nobody's home")
	}
}

// A round begins while a lighter item waits elsewhere, and somebody asks where the
// heavier one is: all know of both from the install on.
func TestARoundOvertakesNothing(t *testing.T) {
	c := newCluster(t, 3)
	c.insert(0, "q", "heavy@n1", 1)
	c.insert(0, "q", "light@n2", 0)
	c.pass(1_000_000)
	rounds := c.nodes[0].b.Counts().Rounds
	c.nodes[0].b.Broke(c.now, c.nodes[1].m)
	got := names(c.take(0, broker.Take{Queue: "q", Max: 1}))
	if c.nodes[0].b.Counts().Rounds == rounds {
		t.Fatal("there was no round")
	}
	if !slices.Equal(got, []string{"light@n2"}) {
		t.Errorf("a take just after a round brings %v", got)
	}
}

// logged is a life of a node with a durable log, which it reads first.
type logged struct {
	self eviction.Member
	t    *testing.T
	b    *broker.Broker
	now  broker.Time
	log  [][]byte
}

func begin(t *testing.T, now broker.Time, log [][]byte) *logged {
	t.Helper()
	self := eviction.Member{Name: "n1", Boot: uint64(now.Boot)}
	c := config(self)
	c.Logs = []broker.Kind{broker.Durable}
	c.Queues = append(c.Queues, broker.Queue{Name: "kept", Kind: broker.Durable, Limits: bounds(), Lease: 30_000_000, PayloadMax: 100})
	b, err := broker.New(c, now)
	if err != nil {
		t.Fatal(err)
	}
	l := &logged{self, t, b, now, log}
	applied(t, b, now, broker.Durable, log...)
	b.SetView(now, broker.View{List: []eviction.Member{self}, Primary: true, At: now.Boot})
	b.Leads(now, broker.Durable, true)
	l.run()
	return l
}

// applied applies commands of a log, all of which can be read.
func applied(t testing.TB, b *broker.Broker, now broker.Time, k broker.Kind, commands ...[]byte) [][]byte {
	t.Helper()
	results, err := b.Apply(now, k, commands)
	if err != nil {
		t.Fatal(err)
	}
	return results
}

// run does what the broker wants done, and returns its last answer.
func (l *logged) run() (last broker.Answer) {
	for r := l.b.Ready(); len(r.Proposals)+len(r.Answers) > 0; r = l.b.Ready() {
		for _, p := range r.Proposals {
			l.log = append(l.log, p.Command)
			l.b.Proposed(l.now, p.Token, applied(l.t, l.b, l.now, broker.Durable, p.Command)[0], false, false)
		}
		for _, a := range r.Answers {
			last = a
		}
	}
	return last
}

func (l *logged) do(c pqueue.Command, h broker.Handle) pqueue.Result {
	c.Queue = "kept"
	l.b.Do(l.now, broker.Call{ID: 1, Handle: h, Command: c})
	return l.run().Result
}

func (l *logged) take() broker.Part {
	l.t.Helper()
	l.b.Take(l.now, broker.Take{ID: 2, Queue: "kept", Max: 1, Within: 1_000_000})
	a := l.run()
	if len(a.Parts) != 1 {
		l.t.Fatalf("take: %+v", a)
	}
	return a.Parts[0]
}

// A log whose end was given up, or that is brought back from a copy, begins again
// before its last leases: who holds one of them holds nothing any more.
func TestALeaseThatALogGaveUpIsLost(t *testing.T) {
	now := broker.Time{Boot: 1_000_000, Clock: 1_700_000_000_000_000}
	first := begin(t, now, nil)
	first.do(pqueue.Command{Op: pqueue.OpInsert, ID: "x@n1"}, broker.Handle{})
	kept := slices.Clone(first.log)
	old := first.take()
	now.Boot, now.Clock = now.Boot+1_000_000, now.Clock+1_000_000
	second := begin(t, now, kept)
	if got := second.take(); got.Result.Number != old.Result.Number {
		t.Fatalf("took %+v, and then %+v", old, got)
	}
	ack := pqueue.Command{Op: pqueue.OpAck, Lease: old.Result.Lease}
	if r := second.do(ack, broker.HandleOf(old.Kind, old.Node, old.Result.Number)); r.Code != pqueue.LeaseLost {
		t.Errorf("who holds a lease that the log gave up ends the next one: %+v", r)
	}
}

// What a newer release has written is not skipped, and what stands beside it waits.
func TestCommandsThatCannotBeReadAreNotSkipped(t *testing.T) {
	l := begin(t, broker.Time{Boot: 1, Clock: 1}, nil)
	put := pqueue.Command{Op: pqueue.OpInsert, Queue: "kept", ID: "a", Now: 1}.Encode(nil)
	if results, err := l.b.Apply(l.now, broker.Durable, [][]byte{put, {0xff, 0x7f}}); err == nil {
		t.Fatalf("the results are %q", results)
	}
	r, err := pqueue.DecodeResult(applied(t, l.b, l.now, broker.Durable, put)[0])
	if err != nil || r.Code != pqueue.OK || r.Exists {
		t.Errorf("it was applied before: %+v, %v", r, err)
	}
}
