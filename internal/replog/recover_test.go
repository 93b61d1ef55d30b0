package replog

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/anteroom/anteroom/qpid"
)

func TestRecoveredLogHasWhatCameBeforeTheDamage(t *testing.T) {
	t.Parallel()
	for _, compact := range []int64{0, 64 << 10} {
		c := durable(t.TempDir())
		c.CompactBytes, c.segmentSize = compact, 64<<10
		r := start(t, c)
		var want []string
		for i := range 300 {
			want = append(want, fmt.Sprintf("%04d%s", i, strings.Repeat("x", 2000)))
			r.put(t, want[i])
		}
		_ = r.stop()
		last := segmentsOf(t, c.Dir)
		altered(t, last[len(last)-1], func(b []byte) []byte { clear(b[3000:3512]); return b })
		before := refused(t, "a hole", c.Dir)
		seen, err := Verify(c.Dir, "")
		if err != nil || seen.Damage == nil || *seen.Damage != *before {
			t.Fatalf("Verify = %+v, %v; it was refused for %+v", seen, err, before)
		}
		loss, err := Recover(c.Dir, "")
		if err != nil || loss.Damage == nil || loss.Kept != before.First-1 && loss.Kept+1 < before.First || loss.Aside == "" {
			t.Fatalf("Recover = %+v, %v after %+v", loss, err, before)
		}
		if seen, err = Verify(c.Dir, ""); err != nil || seen.Damage != nil || max(seen.Last, seen.Snapshot) != loss.Kept {
			t.Fatalf("Verify after Recover = %+v, %v", seen, err)
		}
		r = start(t, c)
		until(t, "it leads", r.state.leading)
		got := r.state.texts()
		if len(got) == 0 || len(got) >= len(want) || !slices.Equal(got, want[:len(got)]) {
			t.Errorf("%d of %d commands are there", len(got), len(want))
		}
		r.put(t, "next")
		_ = r.stop()
		if loss, err = Recover(c.Dir, ""); err != nil || loss.Damage != nil || loss.Aside != "" {
			t.Errorf("Recover of a sound log = %+v, %v", loss, err)
		}
	}
}

// What the papers say of a durable log is in the log as well.
func TestRecoverMakesThePapersOfALogAgain(t *testing.T) {
	t.Parallel()
	for what, hurt := range map[string]func(name string) error{
		"damaged": func(name string) error { return os.WriteFile(name, []byte("x"), 0o600) },
		"gone":    os.Remove,
	} {
		c := durable(filepath.Join(t.TempDir(), durableKind))
		r := start(t, c)
		want := numbered("c", 10)
		r.put(t, want...)
		_ = r.stop()
		name := filepath.Join(c.Dir, ownerFile)
		if err := hurt(name); err != nil {
			t.Fatal(err)
		}
		if d := refused(t, what, c.Dir); d.File != name {
			t.Errorf("%s: refused for %+v", what, d)
		}
		if seen, err := Verify(c.Dir, ""); err != nil || seen.Damage == nil || seen.Damage.File != name {
			t.Errorf("%s: Verify = %+v, %v", what, seen, err)
		}
		loss, err := Recover(c.Dir, "")
		if err != nil || loss.Damage == nil || loss.Kept != loss.Last {
			t.Fatalf("%s: Recover = %+v, %v", what, loss, err)
		}
		r = start(t, c)
		r.put(t, "next")
		equal(t, what, r.state.texts(), append(want, "next"))
		_ = r.stop()
		other := c
		if other.Node = "n2"; what == "gone" {
			if _, err := Open(other); err == nil || !strings.Contains(err.Error(), "belongs to node n1, and this is n2") {
				t.Errorf("Open by another node = %v", err)
			}
		}
	}
}

// Two of three disks are gone for good, and the copy that is left goes on; a member of
// the old group that comes back all the same has no part in it.
func TestLastReplicaGoesOnAlone(t *testing.T) {
	t.Parallel()
	m := newMesh(t)
	m.stores = nil
	names := []qpid.NodeID{"n1", "n2", "n3"}
	for _, name := range names {
		m.start(slowly(member(name)))
	}
	m.see()
	m.voters(names...)
	want := numbered("c", 20)
	for _, c := range want {
		m.put(c)
	}
	all := m.same() // a command twice if a leader was lost before it could answer
	equal(t, "applied", distinct(all), want)
	for _, name := range names {
		m.stop(name)
	}
	dir := func(name qpid.NodeID) string { return filepath.Join(m.dir, string(name)) }
	again := func(name qpid.NodeID) {
		c := slowly(member(name))
		c.Group.Self.Boot = 2
		m.start(c)
		m.see()
	}
	if _, err := Recover(dir("n2"), ""); err != nil { // it is sound
		t.Fatal(err)
	}
	loss, err := RecoverLast(dir("n2"))
	if err != nil || loss.Damage != nil || loss.Kept < uint64(len(want)) {
		t.Fatalf("RecoverLast = %+v, %v", loss, err)
	}
	if err := os.RemoveAll(dir("n3")); err != nil {
		t.Fatal(err)
	}
	again("n2")
	until(t, "it leads", m.nodes["n2"].state.leading)
	equal(t, "alone", m.states["n2"].texts(), all)
	again("n3")
	m.voters("n2", "n3")
	m.put("next")
	again("n1")
	leader := m.leader()
	until(t, "n1 is of another group", func() bool {
		leader.group.mu.Lock()
		defer leader.group.mu.Unlock()
		return leader.group.strange["n1"] != ""
	})
	m.put("last")
	for _, name := range []qpid.NodeID{"n2", "n3"} {
		until(t, "all is there", func() bool {
			return slices.Equal(distinct(m.states[name].texts()), append(want[:20:20], "next", "last"))
		})
	}
	if _, err := RecoverLast(durable(t.TempDir()).Dir); err == nil || !strings.Contains(err.Error(), "is no directory of queues") {
		t.Errorf("RecoverLast of nothing = %v", err)
	}
}
