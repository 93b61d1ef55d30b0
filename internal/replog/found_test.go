package replog

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
	peerv1 "github.com/anteroom/anteroom/proto/anteroom/peer/v1"
	"github.com/anteroom/anteroom/qpid"
)

func helloOf(h [3]string) *peerv1.ReplicateHello {
	return &peerv1.ReplicateHello{Group: h[0], From: h[1], To: h[2]}
}

// groups returns the groups that nodes belong to, without repetitions.
func (m *mesh) groups() []string {
	var all []string
	for _, name := range m.up() {
		if group := m.nodes[name].owner.papers().Group; group != "" {
			all = append(all, group)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Nodes begin at the same time, and see each other at different times and in
// different sets; all are in one group in the end.
func TestOneGroupIsFounded(t *testing.T) {
	t.Parallel()
	for round := range 3 {
		m := newMesh(t)
		names := []qpid.NodeID{"n1", "n2", "n3", "n4", "n5"}
		all := map[eviction.Member]string{}
		for _, name := range names {
			c := member(name)
			c.Group.Pace = 5 * time.Millisecond
			m.start(c)
			all[c.Group.Self] = string(name)
		}
		for i, name := range names { // at first each sees three that begin with another one
			some := map[eviction.Member]string{}
			for j := range 3 {
				other := names[(i+j+round)%len(names)]
				some[eviction.Member{Name: other, Boot: 1}] = string(other)
			}
			m.nodes[name].SetMembers(some)
		}
		time.Sleep(20 * time.Millisecond) // whatever they do with that
		m.see()
		m.put("c")
		until(t, "three vote", func() bool { return voters(m.leader().raft.GetConfiguration().Configuration()) == 3 })
		if groups := m.groups(); len(groups) != 1 {
			t.Fatalf("groups %v", groups)
		}
		for _, name := range m.up() {
			m.stop(name)
		}
	}
}

func TestNobodyFoundsWithoutTheOthers(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		founders [3]int
		up       int
		want     string
	}{
		"too few":         {[3]int{3, 3, 3}, 2, "begins with 3 nodes, and 2 are there"},
		"alone":           {[3]int{1, 0, 0}, 1, "begins with 2 nodes, and 1 are there"},
		"none that may":   {[3]int{0, 0, 0}, 3, "and this node does not"},
		"another one may": {[3]int{0, 1, 0}, 1, "and this node does not"},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMesh(t)
			for i := range test.up {
				c := member([]qpid.NodeID{"n1", "n2", "n3"}[i])
				c.Group.Founders = test.founders[i]
				m.start(c)
			}
			m.see()
			until(t, "it says why", func() bool {
				err := m.nodes["n1"].Ready()
				return err != nil && strings.Contains(err.Error(), test.want)
			})
			if groups := m.groups(); len(groups) > 0 {
				t.Errorf("groups %v", groups)
			}
		})
	}
}

// A node keeps its vote for a founding until the founder says that it is over.
func TestVoteIsKeptForTheFounder(t *testing.T) {
	t.Parallel()
	m := newMesh(t)
	for _, name := range []qpid.NodeID{"n1", "n2", "n3"} {
		c := member(name)
		c.Group.Founders = 9 // they do not found by themselves
		m.start(c)
	}
	m.see()
	n1, n2, n3 := m.nodes["n1"].group, m.nodes["n2"].group, m.nodes["n3"].group
	give := func(to *group, group string) bool {
		t.Helper()
		ok, err := n3.vote(t.Context(), to.c.Self, group)
		if err != nil {
			t.Fatal(err)
		}
		return ok
	}
	n1.setAttempt("a")
	n2.setAttempt("b")
	for range 2 { // the answer to the first request may get lost
		if !give(n1, "a") {
			t.Fatal("no vote")
		}
	}
	if give(n2, "b") {
		t.Fatal("a second vote, while the first founding is under way")
	}
	m.split("n1", true)
	n1.setAttempt("")
	if give(n2, "b") {
		t.Fatal("a second vote, while the first founder says nothing")
	}
	m.split("n1", false)
	until(t, "the vote is free, for the founder says that it has given up", func() bool { return give(n2, "b") })
	if err := n2.l.owner.update(func(p *papers) { p.Group, p.Founded = "b", true }); err != nil {
		t.Fatal(err)
	}
	n2.setAttempt("")
	n1.setAttempt("a2")
	if give(n1, "a2") {
		t.Fatal("a second vote, after the first founding has succeeded")
	}
	if err := n3.release("n1", "b"); err != nil || n3.l.owner.papers().VotedGroup != "b" {
		t.Errorf("another node took the vote back: %v", err)
	}
	m.stop("n3") // a vote is on the disk
	c := member("n3")
	c.Group.Founders = 9
	m.start(c)
	if p := m.nodes["n3"].owner.papers(); p.Voted != "n2" || p.VotedGroup != "b" {
		t.Errorf("after a restart the vote is %+v", p)
	}
}

// The founder's process ends after it has written down that it founds.
func TestFoundingIsFinishedAfterARestart(t *testing.T) {
	t.Parallel()
	m := newMesh(t)
	for _, name := range []qpid.NodeID{"n1", "n2", "n3"} {
		c := member(name)
		c.Group.Founders = 9
		m.start(c)
	}
	if err := m.nodes["n2"].owner.update(func(p *papers) { p.Group, p.Founded = "g", true }); err != nil {
		t.Fatal(err)
	}
	m.stop("n2")
	m.start(member("n2"))
	m.see()
	m.put("c")
	m.voters("n1", "n2", "n3")
	if groups := m.groups(); !slices.Equal(groups, []string{"g"}) {
		t.Errorf("groups %v", groups)
	}
}

// Whoever founds again after a lost disk would begin a second group.
func TestFounderWithAnEmptyDiskIsAdded(t *testing.T) {
	t.Parallel()
	m := newMesh(t)
	for name, founders := range map[qpid.NodeID]int{"n1": 1, "n2": 0, "n3": 0} {
		c := member(name)
		c.Group.Founders = founders
		m.start(c)
	}
	m.see()
	m.voters("n1", "n2", "n3")
	m.put("before")
	m.stop("n1")
	m.see()
	m.put("without")
	m.dir += "2" // n1's new disk
	c := member("n1")
	c.Group.Founders, c.Group.Self.Boot = 1, 2
	m.start(c)
	m.see()
	m.voters("n1", "n2", "n3")
	equal(t, "applied", distinct(m.same()), []string{"before", "without"})
	if groups := m.groups(); len(groups) != 1 {
		t.Errorf("groups %v", groups)
	}
}

func TestTwoGroupsDoNotMix(t *testing.T) {
	t.Parallel()
	m := three(t)
	other := newMesh(t)
	for _, name := range []qpid.NodeID{"n4", "n5"} {
		c := member(name)
		c.Group.Founders = 2
		other.start(c)
	}
	other.see()
	other.put("theirs")
	for _, name := range other.up() {
		other.stop(name)
		c := member(name)
		c.Group.Self.Boot = 2
		maps.Copy(m.stores, other.stores)
		m.dir, other.dir = other.dir, m.dir
		m.start(c)
		m.dir, other.dir = other.dir, m.dir
	}
	m.see()
	m.put("ours", "n4", "n5") // they lead a group of their own
	until(t, "the leader has seen the other group", func() bool {
		g := m.leader("n4", "n5").group
		g.mu.Lock()
		defer g.mu.Unlock()
		return len(g.strange) == 2
	})
	if servers := m.leader("n4", "n5").raft.GetConfiguration().Configuration().Servers; len(servers) != 3 {
		t.Errorf("the group has %v", servers)
	}
	for _, name := range []qpid.NodeID{"n4", "n5"} {
		if texts := m.states[name].texts(); slices.Contains(texts, "ours") {
			t.Errorf("%s has applied %v", name, texts)
		}
	}
}
