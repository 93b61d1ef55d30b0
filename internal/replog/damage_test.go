package replog

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/anteroom/anteroom/qpid"
)

// filled is the directory of a log with commands, which ended in good order or is
// as a crash leaves it.
func filled(t testing.TB, c Config, ended bool, commands ...string) string {
	t.Helper()
	r := start(t, c)
	r.put(t, commands...)
	if !ended {
		return copied(t, c.Dir)
	}
	_ = r.stop()
	return c.Dir
}

// segmentsOf are the files of the log in dir, oldest first.
func segmentsOf(t testing.TB, dir string) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, "log", "*.wal"))
	if err != nil || len(all) == 0 {
		t.Fatalf("segments %v: %v", all, err)
	}
	return all
}

// refused opens the log in dir, which must be refused, and returns the damage.
func refused(t testing.TB, what, dir string) *Damage {
	t.Helper()
	l, err := Open(Config{Dir: dir, Node: "n1", Machine: &list{}, Leads: func(bool) {}})
	if err == nil {
		_ = l.close(new(sync.WaitGroup))
		t.Fatalf("%s: the log starts", what)
	}
	var d *Damage
	if !errors.As(err, &d) {
		t.Fatalf("%s: %v", what, err)
	}
	return d
}

// altered changes a file.
func altered(t testing.TB, name string, f func([]byte) []byte) {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, f(b), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestDamagedLogIsRefused(t *testing.T) {
	t.Parallel()
	var commands []string
	for i := range 700 { // 14 MiB: four segments
		commands = append(commands, fmt.Sprintf("%04d%s", i, strings.Repeat("x", 20<<10)))
	}
	for _, ended := range []bool{true, false} {
		dir := filled(t, durable(t.TempDir()), ended, commands...)
		segments := segmentsOf(t, dir)
		if len(segments) < 3 {
			t.Fatalf("%d segments", len(segments))
		}
		for _, c := range []struct {
			name    string
			segment int // from the end
			do      func(b []byte) []byte
		}{
			{"a hole in the last segment", 1, func(b []byte) []byte { clear(b[1000:1512]); return b }},
			{"a hole in the first segment", len(segments), func(b []byte) []byte { clear(b[100_000:100_512]); return b }},
			{"no beginning of the last segment", 1, func(b []byte) []byte { clear(b[:32]); return b }},
			{"no beginning of the first segment", len(segments), func(b []byte) []byte { clear(b[:32]); return b }},
			{"the last segment is gone", 1, nil},
			{"the second segment is gone", len(segments) - 1, nil},
			{"the last segment is empty", 1, func([]byte) []byte { return nil }},
			{"the last segment is cut", 1, func(b []byte) []byte { return b[:len(b)/16] }},
			{"a bit of the second segment", len(segments) - 1, func(b []byte) []byte { b[200_000] ^= 4; return b }},
			{"a bit of the last segment", 1, func(b []byte) []byte { b[2000] ^= 4; return b }},
		} {
			at := copied(t, dir)
			name := segmentsOf(t, at)[len(segments)-c.segment]
			if c.do == nil {
				if err := os.Remove(name); err != nil {
					t.Fatal(err)
				}
			} else {
				altered(t, name, c.do)
			}
			what := fmt.Sprintf("%s (ended: %v)", c.name, ended)
			for range 2 { // and again
				if d := refused(t, what, at); d.First == 0 || d.Last < d.First || d.File != name {
					t.Errorf("%s: %+v", what, d)
				}
			}
		}
	}
}

// A bit of what was acknowledged last is turned, and the process killed at once.
func TestDamageToTheLastEntryIsNoticed(t *testing.T) {
	t.Parallel()
	r := start(t, durable(t.TempDir()))
	for i := range 20 {
		last := fmt.Sprintf("command %d", i)
		r.put(t, last)
		at := copied(t, r.c.Dir)
		altered(t, segment(t, at), func(b []byte) []byte { b[bytes.Index(b, []byte(last))] ^= 1; return b })
		if d := refused(t, last, at); d.File != segment(t, at) || d.Last == 0 {
			t.Errorf("%s: %+v", last, d)
		}
	}
}

// A log whose end is gone, but for which there is a snapshot, goes on after that.
func TestLogThatEndsBeforeItsSnapshotGoesOn(t *testing.T) {
	t.Parallel()
	c := durable(t.TempDir())
	r := start(t, c)
	want := numbered("c", 10)
	for _, one := range want {
		r.put(t, one)
	}
	if err := r.raft.Snapshot().Error(); err != nil { // it is as far as the log is
		t.Fatal(err)
	}
	_ = r.stop()
	half := written(t, c.Dir) / 2
	altered(t, segment(t, c.Dir), func(b []byte) []byte { clear(b[half:]); return b })
	for i := range 2 {
		r = start(t, c)
		r.put(t, fmt.Sprint("next", i))
		want = append(want, fmt.Sprint("next", i))
		equal(t, "after the damage", r.state.texts(), want)
		_ = r.stop()
	}
}

func TestLogWithoutItsSnapshotIsGivenUpAsAWhole(t *testing.T) {
	t.Parallel()
	c := durable(t.TempDir())
	c.CompactBytes = 1
	r := start(t, c)
	r.put(t, numbered("c", 10)...)
	until(t, "there is a snapshot", func() bool {
		first, err := r.disk.FirstIndex()
		return err == nil && first > 2
	})
	_ = r.stop()
	states, _ := filepath.Glob(filepath.Join(c.Dir, "snapshots", "*", "state.bin"))
	if len(states) != 1 {
		t.Fatal(states)
	}
	altered(t, states[0], func(b []byte) []byte { b[len(b)/2] ^= 1; return b })
	if d := refused(t, "a bit of the snapshot", c.Dir); d.File != states[0] {
		t.Errorf("refused for %+v", d)
	}
	loss, err := Recover(c.Dir, "")
	if err != nil || loss.Kept != 0 || loss.Aside == "" {
		t.Fatalf("Recover = %+v, %v", loss, err)
	}
	r = start(t, c)
	r.put(t, "new")
	equal(t, "after all was given up", r.state.texts(), []string{"new"})
}

// A directory that is gone as a whole, as one whose disk was not mounted is, is not
// taken for that of a new node.
func TestDirectoryThatIsGoneIsRefused(t *testing.T) {
	t.Parallel()
	at := t.TempDir()
	c := durable(filepath.Join(at, "queues", durableKind))
	c.Note = filepath.Join(at, "queues-durable")
	r := start(t, c)
	r.put(t, "c")
	_ = r.stop()
	whole := copied(t, c.Dir)
	for what, do := range map[string]func() error{
		"the directory":         func() error { return os.RemoveAll(c.Dir) },
		"the one around it":     func() error { return os.RemoveAll(filepath.Dir(c.Dir)) },
		"all that is inside it": func() error { return errors.Join(os.RemoveAll(c.Dir), os.MkdirAll(c.Dir, 0o700)) },
	} {
		if err := do(); err != nil {
			t.Fatal(err)
		}
		var d *Damage
		if _, err := Open(c); !errors.As(err, &d) || d.File != c.Dir || !strings.Contains(err.Error(), "recover --data "+at+" --accept-loss") {
			t.Errorf("without %s: %v", what, err)
		}
		if seen, err := Verify(c.Dir, c.Note); err != nil || seen.Damage == nil || seen.Damage.File != c.Dir {
			t.Errorf("without %s: Verify = %+v, %v", what, seen, err)
		}
	}
	if err := os.CopyFS(c.Dir, os.DirFS(whole)); err != nil {
		t.Fatal(err)
	}
	r = start(t, c)
	until(t, "it leads", r.state.leading)
	equal(t, "brought back", r.state.texts(), []string{"c"})
	_ = r.stop()
	if err := os.RemoveAll(c.Dir); err != nil {
		t.Fatal(err)
	}
	if loss, err := Recover(c.Dir, c.Note); err != nil || loss.Damage == nil || loss.Kept != 0 {
		t.Errorf("Recover = %+v, %v", loss, err)
	}
	r = start(t, c)
	r.put(t, "new")
	equal(t, "after all was given up", r.state.texts(), []string{"new"})
	_ = r.stop()
}

// A member whose disk is damaged makes its copy anew, and no acknowledged command
// is lost by it, whichever file it was.
func TestDamagedMemberIsMadeAnewFromTheOthers(t *testing.T) {
	t.Parallel()
	m := newMesh(t)
	m.stores = nil
	for _, name := range []qpid.NodeID{"n1", "n2", "n3"} {
		m.start(slowly(member(name)))
	}
	m.see()
	m.voters("n1", "n2", "n3")
	want := numbered("c", 20)
	for _, c := range want {
		m.put(c)
	}
	boot := uint64(1)
	for i, hurt := range []func(dir string){
		func(dir string) {
			altered(t, segment(t, dir), func(b []byte) []byte { clear(b[600:1112]); return b })
		},
		func(dir string) {
			altered(t, filepath.Join(dir, ownerFile), func(b []byte) []byte { b[20] ^= 1; return b })
		},
		func(dir string) {
			altered(t, filepath.Join(dir, "log", metaFile), func(b []byte) []byte { b[30] ^= 1; return b })
		},
		func(dir string) {
			if err := os.Remove(filepath.Join(dir, ownerFile)); err != nil {
				t.Fatal(err)
			}
		},
	} {
		name := []qpid.NodeID{"n3", "n1", "n2", "n3"}[i]
		m.stop(name)
		m.see()
		hurt(filepath.Join(m.dir, string(name)))
		boot++
		c := slowly(member(name))
		c.Group.Self.Boot = boot
		m.start(c)
		m.see()
		if _, err := os.Stat(filepath.Join(m.dir, fmt.Sprintf("%s.damaged-%d", name, 1+i/3))); err != nil {
			t.Errorf("the damaged files: %v", err)
		}
		until(t, "the new directory has the old one's vote", func() bool {
			servers := m.leader().raft.GetConfiguration().Configuration().Servers
			id := serverOf(name, m.nodes[name].owner.papers().Disk)
			return len(servers) == 3 && slices.Contains(servers, raft.Server{ID: id, Address: raft.ServerAddress(id), Suffrage: raft.Voter})
		})
		m.put(fmt.Sprint("after ", i))
		want = append(want, fmt.Sprint("after ", i))
		equal(t, "applied", distinct(m.same()), want)
	}
}

// If all members' disks are damaged there is nobody to copy from, and no new group
// that knows nothing takes the old one's place.
func TestNobodyFoundsAnewAfterDamage(t *testing.T) {
	t.Parallel()
	m := newMesh(t)
	m.stores = nil
	names := []qpid.NodeID{"n1", "n2", "n3"}
	for _, name := range names {
		m.start(member(name))
	}
	m.see()
	m.voters(names...)
	m.put("c")
	for _, name := range names {
		m.stop(name)
	}
	for _, name := range names {
		altered(t, filepath.Join(m.dir, string(name), "log", metaFile), func(b []byte) []byte { b[30] ^= 1; return b })
		c := member(name)
		c.Group.Self.Boot = 2
		m.start(c)
	}
	m.see()
	for _, name := range names {
		n := m.nodes[name]
		until(t, "it says what it waits for", func() bool {
			err := n.Ready()
			return err != nil && strings.Contains(err.Error(), "was damaged and was set aside")
		})
	}
}

func TestDamageIsFoundWhileTheLogRuns(t *testing.T) {
	t.Parallel()
	c := durable(t.TempDir())
	c.ScrubEvery = 20 * time.Millisecond
	r := start(t, c)
	r.put(t, numbered("c", 50)...)
	time.Sleep(3 * c.ScrubEvery)
	if err := r.Ready(); err != nil {
		t.Fatalf("Ready = %v", err)
	}
	f, err := os.OpenFile(segment(t, c.Dir), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(make([]byte, 64), 300); err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
	until(t, "the damage is found", func() bool {
		var d *Damage
		return errors.As(r.Ready(), &d) && d.File == segment(t, c.Dir) && d.First > 0
	})
}
