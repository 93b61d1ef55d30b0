package replog

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-metrics"
	"github.com/hashicorp/raft"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/qpid"
)

func TestThreeMembersApplyTheSameCommands(t *testing.T) {
	t.Parallel()
	m := three(t)
	want := numbered("c", 200)
	for _, c := range want {
		m.put(c)
	}
	equal(t, "applied", distinct(m.same()), want)
	until(t, "all say who leads, and are ready", func() bool {
		leads := m.leader().name
		for _, name := range m.up() {
			if leader, ok := m.nodes[name].Leader(); !ok || leader != leads || m.nodes[name].Ready() != nil {
				return false
			}
		}
		return true
	})
}

func TestCommandGoesToTheLeaderOnly(t *testing.T) {
	t.Parallel()
	m := three(t)
	until(t, "one leads for as long as it takes to ask all", func() bool {
		leads, calm := m.leader().name, true
		for _, name := range m.up() {
			n, part := m.nodes[name], raft.Follower
			if name == leads {
				part = raft.Leader
			}
			term, was := n.raft.CurrentTerm(), n.raft.State()
			a := <-n.propose("c")
			if was != part || n.raft.State() != part || n.raft.CurrentTerm() != term {
				calm = false // the machine is busy, and somebody else stood for election
			} else if refused := errors.Is(a.err, ErrRefused); refused != (name != leads) || !refused && a.err != nil {
				t.Errorf("propose at %s, while %s leads = %v", name, leads, a.err)
			}
		}
		return calm
	})
	equal(t, "applied", distinct(m.same()), []string{"c"})
}

// One member stops, and later another one is cut off, while commands are put. The
// acknowledged ones are all there at the end, in one order.
func TestNothingAcknowledgedIsLostWithAMemberStoppedAndOneCutOff(t *testing.T) {
	t.Parallel()
	m := three(t)
	done := make(chan struct{})
	var acknowledged []string
	vain := 0
	go func() {
		defer close(done)
		for _, c := range numbered("c", 60) {
			vain += m.put(c)
			acknowledged = append(acknowledged, c)
			time.Sleep(10 * time.Millisecond)
		}
	}()
	stopped := m.leader().name
	m.stop(stopped)
	m.see()
	second := m.leader().name
	c := member(stopped)
	c.Group.Self.Boot = 2
	m.start(c)
	m.see()
	until(t, "the one that was stopped has caught up", func() bool {
		return len(m.states[stopped].texts()) >= len(m.states[second].texts())-1
	})
	m.split(second, true)
	m.see()
	until(t, "it knows that it leads no more", func() bool { return !m.states[second].leading() })
	until(t, "it says that there is no majority", func() bool {
		err := m.nodes[second].Ready()
		return err != nil && strings.Contains(err.Error(), "2 of its 3 nodes must reach each other")
	})
	if a := <-m.nodes[second].propose("lost"); !errors.Is(a.err, ErrRefused) {
		t.Errorf("propose without a majority = %v", a.err)
	}
	m.leader(second)
	m.split(second, false)
	m.see()
	<-done
	all := m.same()
	if len(all) < len(acknowledged) || len(all) > len(acknowledged)+vain {
		t.Errorf("%d applied, %d acknowledged, %d in vain", len(all), len(acknowledged), vain)
	}
	// A command that was tried again may be there twice; the caller's ids tell.
	equal(t, "applied", distinct(all), acknowledged)
}

func distinct(all []string) []string {
	seen := map[string]bool{}
	var once []string
	for _, c := range all {
		if !seen[c] {
			seen[c] = true
			once = append(once, c)
		}
	}
	return once
}

func TestAllCrashAndComeBack(t *testing.T) {
	t.Parallel()
	m := newMesh(t)
	m.stores = nil
	for _, name := range []qpid.NodeID{"n1", "n2", "n3"} {
		m.start(slowly(member(name)))
	}
	m.see()
	m.voters("n1", "n2", "n3")
	want := numbered("c", 50)
	for _, c := range want {
		m.put(c)
	}
	crashed := copied(t, m.dir) // all of them, at about the same time
	after := newMesh(t)
	after.dir, after.stores = crashed, nil
	for _, name := range m.up() {
		c := member(name)
		c.Group.Self.Boot = 2
		after.start(slowly(c))
	}
	after.see()
	after.put("last")
	equal(t, "after a crash", distinct(after.same()), append(want, "last"))
}

// slowly gives a member time for a real disk.
func slowly(c Config) Config {
	c.Group.Election = 2 * time.Second
	return c
}

func TestMemberThatIsDeadForLongIsReplaced(t *testing.T) {
	t.Parallel()
	m := newMesh(t)
	for _, name := range []qpid.NodeID{"n1", "n2", "n3", "n4"} {
		c := member(name)
		c.Group.ReplaceAfter = 300 * time.Millisecond
		m.start(c)
	}
	m.see()
	m.voters("n1", "n2", "n3")
	m.put("before")
	until(t, "the spare node knows who leads", func() bool {
		leader, ok := m.nodes["n4"].Leader()
		return ok && leader == m.leader().name && m.nodes["n4"].Ready() == nil
	})
	m.stop("n3")
	m.see()
	m.voters("n1", "n2", "n4")
	m.put("after")
	c := member("n3")
	c.Group.Self.Boot = 2
	m.start(c)
	m.see()
	m.put("again")
	m.voters("n1", "n2", "n4")
	until(t, "the one that came has applied all", func() bool {
		return slices.Equal(distinct(m.states["n4"].texts()), []string{"before", "after", "again"})
	})
}

// A new voter may acknowledge the entry that gives it its vote before its leader
// counts by it. If that vote is needed, the group goes on all the same, though nobody
// uses the queues.
func TestNewVoterThatAnswersAtOnceCounts(t *testing.T) { // not parallel: all leaders are held
	measure := func(to metrics.MetricSink) {
		if _, err := metrics.NewGlobal(&metrics.Config{TimerGranularity: time.Millisecond, FilterDefault: true}, to); err != nil {
			t.Fatal(err)
		}
	}
	measure(&held{})
	defer measure(&metrics.BlackholeSink{})
	m := newMesh(t)
	disks := map[qpid.NodeID]*lagging{}
	for _, name := range []qpid.NodeID{"n1", "n2", "n3", "n4"} {
		c, disk := member(name), &lagging{}
		c.Group.ReplaceAfter, c.Group.Pace, c.Group.Election = 2*hold, 2*hold, 10*hold
		c.through = func(e entries) entries {
			disk.entries = e
			return disk
		}
		disks[name] = disk
		m.start(c)
	}
	m.see()
	m.voters("n1", "n2", "n3")
	leads := m.leader().name
	followers := slices.DeleteFunc([]qpid.NodeID{"n1", "n2", "n3"}, func(n qpid.NodeID) bool { return n == leads })
	disks[followers[0]].late.Store(true) // who answers while the leader is held is the new one
	m.stop(followers[1])
	m.see()
	m.voters(slices.Sorted(slices.Values([]qpid.NodeID{leads, followers[0], "n4"}))...)
}

const hold = 100 * time.Millisecond

// held holds a leader where raft measures how long it took to send an entry to the
// others, which is before it counts by it.
type held struct{ metrics.BlackholeSink }

func (h *held) AddSample(key []string, value float32) { h.AddSampleWithLabels(key, value, nil) }

func (*held) AddSampleWithLabels(key []string, _ float32, _ []metrics.Label) {
	if slices.Contains(key, "dispatchLog") {
		time.Sleep(hold)
	}
}

// lagging is a disk that may be slow to append.
type lagging struct {
	entries
	late atomic.Bool
}

func (d *lagging) StoreLog(l *raft.Log) error { return d.StoreLogs([]*raft.Log{l}) }

func (d *lagging) StoreLogs(l []*raft.Log) error {
	if d.late.Load() {
		time.Sleep(2 * hold)
	}
	return d.entries.StoreLogs(l)
}

func TestGroupDoesNotShrink(t *testing.T) {
	t.Parallel()
	m := newMesh(t)
	for _, name := range []qpid.NodeID{"n1", "n2", "n3"} {
		c := member(name)
		c.Group.ReplaceAfter = time.Millisecond
		m.start(c)
	}
	m.see()
	m.voters("n1", "n2", "n3")
	m.stop("n3")
	m.see()
	for i := range 20 {
		m.put(fmt.Sprint(i))
		time.Sleep(20 * time.Millisecond)
	}
	m.voters("n1", "n2", "n3")
}

// A node that has lost its disk has forgotten what it acknowledged.
func TestMemberWithAnEmptyDiskIsAnotherMember(t *testing.T) {
	t.Parallel()
	m := three(t)
	m.put("before")
	var wiped qpid.NodeID
	for _, name := range m.up() {
		if name != m.leader().name {
			wiped = name
		}
	}
	was := m.nodes[wiped].group.id
	m.stop(wiped)
	m.see()
	gone := filepath.Join(m.dir, string(wiped))
	delete(m.stores, gone)
	if err := os.RemoveAll(gone); err != nil {
		t.Fatal(err)
	}
	c := member(wiped)
	c.Group.Self.Boot = 2
	m.start(c)
	if m.nodes[wiped].group.id == was {
		t.Fatal("it is the same")
	}
	m.see()
	until(t, "the new one votes and the old one is gone", func() bool {
		servers := m.leader().raft.GetConfiguration().Configuration().Servers
		voters, old := 0, false
		for _, s := range servers {
			old = old || s.ID == was
			if s.Suffrage == 0 {
				voters++
			}
		}
		return voters == 3 && len(servers) == 3 && !old
	})
	m.put("after")
	equal(t, "applied", distinct(m.same()), []string{"before", "after"})
}

func TestLateMemberGetsTheSnapshot(t *testing.T) {
	t.Parallel()
	m := newMesh(t)
	for _, name := range []qpid.NodeID{"n1", "n2"} {
		c := member(name)
		c.Group.Founders, c.CompactBytes = 2, 1
		m.start(c)
	}
	m.see()
	m.voters("n1", "n2")
	var want []string
	for i := range 300 { // many more entries than are kept behind a snapshot
		want = append(want, fmt.Sprint(i, strings.Repeat("x", 10<<10)))
		m.put(want[i])
	}
	until(t, "the log was cut", func() bool {
		first, err := m.leader().disk.FirstIndex()
		return err == nil && first > 10
	})
	m.start(member("n3"))
	m.see()
	m.voters("n1", "n2", "n3")
	equal(t, "applied", distinct(m.same()), want)
	if first, _ := m.nodes["n3"].disk.FirstIndex(); first < 10 {
		t.Errorf("it has the log from entry %d on", first)
	}
}

func TestTooFewNodesTakeNothing(t *testing.T) {
	t.Parallel()
	m := newMesh(t)
	for _, name := range []qpid.NodeID{"n1", "n2", "n3"} {
		c := member(name)
		c.Group.Replicas, c.Group.Founders = 3, 1
		m.start(c)
	}
	m.see()
	until(t, "it says how many it takes", func() bool {
		err := m.nodes["n1"].Ready()
		return err != nil && strings.Contains(err.Error(), "begins with 4 nodes, and 3 are there")
	})
	if a := <-m.nodes["n1"].propose("c"); !errors.Is(a.err, ErrRefused) {
		t.Errorf("propose = %v", a.err)
	}
	c := member("n4")
	c.Group.Replicas, c.Group.Founders = 3, 0
	m.start(c)
	m.see()
	m.put("c")
	m.voters("n1", "n2", "n3", "n4")
	equal(t, "applied", distinct(m.same()), []string{"c"})
}

func TestFollowerThatFallsBehindIsNotAsked(t *testing.T) {
	t.Parallel()
	m := three(t)
	leader := m.leader()
	var putting sync.WaitGroup
	for i := range 8 {
		putting.Go(func() {
			for j := range 20 {
				m.put(fmt.Sprint(i, ".", j))
			}
		})
	}
	for _, name := range m.up() {
		if name != leader.name {
			m.split(name, true)
			m.split(name, false)
			break
		}
	}
	putting.Wait()
	if all := distinct(m.same()); len(all) != 160 {
		t.Errorf("%d of 160 commands", len(all))
	}
}

func TestStrangersAreTurnedAway(t *testing.T) {
	t.Parallel()
	m := three(t)
	g := m.nodes["n1"].group
	for _, hello := range [][3]string{{"", "n2.x", string(g.id)}, {"other", "n2.x", string(g.id)}, {g.l.owner.papers().Group, "n2.x", "n1.other"}} {
		if err := g.admit(helloOf(hello)); err == nil {
			t.Errorf("admit(%q) = nil", hello)
		}
	}
	m.nodes["n2"].SetMembers(map[eviction.Member]string{})
	if _, err := m.nodes["n2"].group.connection("n1"); err == nil {
		t.Error("there is a way to a node that is not among the members")
	}
}
