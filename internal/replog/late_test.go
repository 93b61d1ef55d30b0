package replog

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/anteroom/anteroom/qpid"
)

// startFull starts a log for which there is no room, which must say so, take nothing
// and be over when it is told to.
func startFull(t *testing.T, c Config) *running {
	t.Helper()
	r := start(t, c)
	if err := r.Ready(); !errors.Is(err, ErrFull) || !strings.Contains(err.Error(), c.Dir) {
		t.Fatalf("Ready = %v", err)
	}
	if room, err := r.Room(); room != RoomForNone || !errors.Is(err, ErrFull) || !r.Storage().Full {
		t.Errorf("room %v %v, storage %+v", room, err, r.Storage())
	}
	if a := <-r.propose("refused"); !errors.Is(a.err, ErrRefused) || !errors.Is(a.err, ErrFull) {
		t.Errorf("propose = %v", a.err)
	}
	if node, known := r.Leader(); known {
		t.Errorf("%s leads", node)
	}
	until(t, "how much room there is", func() bool { return r.Storage().Total > 0 })
	return r
}

// A node whose disk has no room for its log goes on without, and has all of it once
// there is.
func TestLogIsOpenedOnceThereIsRoom(t *testing.T) {
	t.Parallel()
	dir, all := endedFull(t)
	fresh := filepath.Join(t.TempDir(), "fresh")
	for what, had := range map[string]struct {
		dir  string
		want []string
	}{"no next file": {dir, all}, "founded": {fresh, nil}} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			c, d := onSmallDisk(durable(had.dir))
			d.full.Store(true)
			r := startFull(t, c)
			if err := r.stop(); err == nil || errors.Is(err, ErrFull) {
				t.Errorf("Run = %v", err)
			}
			r = startFull(t, c)
			d.full.Store(false)
			r.put(t, "last")
			equal(t, "applied", r.state.texts(), append(slices.Clone(had.want), "last"))
			if room, err := r.Room(); room != RoomForAll || r.Ready() != nil {
				t.Errorf("room %v %v, ready %v", room, err, r.Ready())
			}
			_ = r.stop()
		})
	}
}

// cramped is a disk on which no vote can be written while full is set.
type cramped struct {
	entries
	full *atomic.Bool
}

func (f cramped) SetUint64(key []byte, v uint64) error {
	if f.full.Load() {
		return syscall.ENOSPC
	}
	return f.entries.SetUint64(key, v)
}

// Raft writes its term when it starts, and waits until it can.
func TestLogDoesNotWaitForRoomForItsTerm(t *testing.T) {
	t.Parallel()
	c := durable(t.TempDir())
	for _, want := range [][]string{nil, {"0"}} { // founded, and opened again
		var full atomic.Bool
		full.Store(true)
		c.through = func(e entries) entries { return cramped{e, &full} }
		r := startFull(t, c)
		full.Store(false)
		r.put(t, "0")
		equal(t, "applied", r.state.texts(), append(want, "0"))
		_ = r.stop()
	}
}

// halfWay is a disk on which no entry can be written while fault is set.
type halfWay struct {
	entries
	fault *atomic.Pointer[error]
	tries *atomic.Int64
}

func (f halfWay) StoreLog(l *raft.Log) error { return f.StoreLogs([]*raft.Log{l}) }

func (f halfWay) StoreLogs(l []*raft.Log) error {
	if err := f.fault.Load(); err != nil {
		f.tries.Add(1)
		return *err
	}
	return f.entries.StoreLogs(l)
}

func newHalfWay(c *Config, fault error) halfWay {
	f := halfWay{fault: &atomic.Pointer[error]{}, tries: &atomic.Int64{}}
	f.fault.Store(&fault)
	c.through = func(e entries) entries { return halfWay{e, f.fault, f.tries} }
	return f
}

// Raft writes the term of a log that it founds, and then the first entry. A process may
// end between the two, and a disk may have room for the one only.
func TestLogThatIsHalfFoundedIsFounded(t *testing.T) {
	t.Parallel()
	t.Run("after a crash", func(t *testing.T) {
		t.Parallel()
		c := durable(t.TempDir())
		newHalfWay(&c, errInjected)
		c.Machine, c.Leads = &list{}, func(bool) {}
		if _, err := Open(c); !errors.Is(err, errInjected) && (err == nil || !strings.Contains(err.Error(), errInjected.Error())) {
			t.Fatalf("Open = %v", err)
		}
		r := start(t, durable(c.Dir))
		r.put(t, "a")
	})
	t.Run("when there is room", func(t *testing.T) {
		t.Parallel()
		c := durable(t.TempDir())
		f := newHalfWay(&c, syscall.ENOSPC)
		r := startFull(t, c)
		f.fault.Store(nil)
		r.put(t, "a")
	})
	for what, restarts := range map[string]bool{"a group": false, "a group, after a crash": true} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			m := newMesh(t)
			c := slowly(member("n1"))
			f := newHalfWay(&c, errInjected)
			for _, other := range []qpid.NodeID{"n2", "n3"} {
				m.start(slowly(member(other)))
			}
			m.start(c)
			m.see()
			until(t, "it tries to found the log", func() bool { return f.tries.Load() > 0 })
			if restarts {
				m.stop("n1")
			}
			f.fault.Store(nil)
			if restarts {
				m.start(c)
			}
			m.see()
			m.voters("n1", "n2", "n3")
			m.put("a")
		})
	}
}

// What was damaged is refused at once, not when there is room.
func TestDamagedLogIsRefusedOnAFullDisk(t *testing.T) {
	t.Parallel()
	dir, _ := endedFull(t)
	if turned(t, dir, "last0.0001") == "" {
		t.Fatal("nothing is damaged")
	}
	c, d := onSmallDisk(durable(dir))
	c.Machine, c.Leads = &list{}, func(bool) {}
	d.full.Store(true)
	l, err := Open(c)
	if found := (*Damage)(nil); !errors.As(err, &found) {
		t.Fatalf("Open = %v, %v", l, err)
	}
}

// And what is only torn is not.
func TestTornIndexIsNoDamageOnAFullDisk(t *testing.T) {
	t.Parallel()
	for cutAt := range 12 {
		dir, _ := endedFull(t)
		altered(t, segmentsOf(t, dir)[0], func(b []byte) []byte { return tornIndex(b, cutAt) })
		c, d := onSmallDisk(durable(copied(t, dir)))
		c.Machine, c.Leads = &list{}, func(bool) {}
		roomy, err := Open(c)
		if err == nil {
			_ = roomy.close(new(sync.WaitGroup))
		}
		c.Dir = dir
		d.full.Store(true)
		full, fullErr := Open(c)
		if (err == nil) != (fullErr == nil) {
			t.Errorf("cut at %d: with room %v, without %v", cutAt, err, fullErr)
		}
		if fullErr == nil && full.late.err() == nil {
			_ = full.close(new(sync.WaitGroup))
		}
	}
}

// A member for which there is no room joins the others once there is.
func TestMemberJoinsOnceThereIsRoom(t *testing.T) {
	t.Parallel()
	m := newMesh(t)
	m.stores = nil
	c, d := onSmallDisk(slowly(member("n3")))
	d.full.Store(true)
	for _, name := range []qpid.NodeID{"n1", "n2"} {
		c := slowly(member(name))
		c.Group.Founders = 2
		m.start(c)
	}
	m.start(c)
	if err := m.node("n3").Ready(); !errors.Is(err, ErrFull) {
		t.Fatalf("Ready = %v", err)
	}
	m.see()
	until(t, "nobody founds a group without it", func() bool {
		err := m.node("n1").Ready()
		return err != nil && strings.Contains(err.Error(), "n3 does not answer")
	})
	m.stop("n3")
	m.see()
	leads := m.leader().name
	m.start(c)
	m.see()
	n3 := m.node("n3")
	until(t, "it knows who leads", func() bool { at, known := n3.Leader(); return known && at == leads })
	if err := n3.Ready(); !errors.Is(err, ErrFull) {
		t.Fatalf("Ready = %v", err)
	}
	d.full.Store(false)
	m.voters("n1", "n2", "n3")
	m.put("first")
	equal(t, "applied", distinct(m.same()), []string{"first"})
}

// Raft writes its term when it starts, which takes no room where it has not changed.
func TestValueThatIsThereIsNotWritten(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m, err := openMeta(dir)
	if err != nil {
		t.Fatal(err)
	}
	file := func() os.FileInfo {
		i, err := os.Stat(m.file.path())
		if err != nil {
			t.Fatal(err)
		}
		return i
	}
	set := func(value string) os.FileInfo {
		if err := m.SetStable([]byte("k"), []byte(value)); err != nil {
			t.Fatal(err)
		}
		return file()
	}
	first := set("a")
	if !os.SameFile(first, set("a")) {
		t.Error("the same value was written again")
	}
	if os.SameFile(first, set("b")) {
		t.Error("another value was not written")
	}
	blocked := m.file.path() + ".new"
	if err := os.Mkdir(blocked, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := m.SetStable([]byte("k"), []byte("c")); err == nil {
		t.Fatal("it was written")
	}
	if err := os.Remove(blocked); err != nil {
		t.Fatal(err)
	}
	before := file()
	if os.SameFile(before, set("b")) {
		t.Error("after a write that failed the file may have either, and was not written")
	}
}
