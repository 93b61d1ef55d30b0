package replog

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

// faulty is a disk on which nothing can be written while full is set, and nothing
// be read while blind is.
type faulty struct {
	entries
	full, blind *atomic.Bool
	syncs       *atomic.Int64
}

func (f *faulty) fails() error {
	if f.full.Load() {
		return errInjected
	}
	return nil
}

func (f *faulty) StoreLog(l *raft.Log) error { return f.StoreLogs([]*raft.Log{l}) }

func (f *faulty) StoreLogs(l []*raft.Log) error {
	if err := f.fails(); err != nil {
		return err
	}
	f.syncs.Add(1)
	return f.entries.StoreLogs(l)
}

func (f *faulty) SetUint64(key []byte, v uint64) error {
	if err := f.fails(); err != nil {
		return err
	}
	return f.entries.SetUint64(key, v)
}

func (f *faulty) Set(key, v []byte) error {
	if err := f.fails(); err != nil {
		return err
	}
	return f.entries.Set(key, v)
}

func (f *faulty) GetLog(i uint64, l *raft.Log) error {
	if f.blind.Load() {
		return errInjected
	}
	return f.entries.GetLog(i, l)
}

func newFaulty(c *Config) *faulty {
	f := &faulty{full: &atomic.Bool{}, blind: &atomic.Bool{}, syncs: &atomic.Int64{}}
	c.through = func(e entries) entries {
		f.entries = e
		return f
	}
	return f
}

func TestFullDiskFailsCommandsUntilThereIsRoom(t *testing.T) {
	t.Parallel()
	c := durable(t.TempDir())
	f := newFaulty(&c)
	r := start(t, c)
	r.put(t, "a", "b")
	if err := r.Ready(); err != nil {
		t.Fatalf("Ready = %v", err)
	}
	f.full.Store(true)
	if a := <-r.propose("lost"); a.err == nil || errors.Is(a.err, ErrRefused) {
		t.Fatalf("propose on a full disk = %v", a.err)
	}
	if err := r.Ready(); err == nil || !strings.Contains(err.Error(), "no space left on device") || !strings.Contains(err.Error(), r.c.Dir) {
		t.Errorf("Ready = %v", err)
	}
	if a := <-r.propose("refused"); !errors.Is(a.err, ErrRefused) || !strings.Contains(a.err.Error(), "no space left on device") {
		t.Errorf("propose = %v", a.err)
	}
	until(t, "raft has tried to write that it stands for election", func() bool { return r.raft.State() == raft.Candidate })
	if !r.state.leading() {
		t.Error("what it has is not to be had")
	}
	f.full.Store(false)
	until(t, "it is ready", func() bool { return r.Ready() == nil })
	r.put(t, "c")
	equal(t, "applied", r.state.texts(), []string{"a", "b", "c"})
	after := start(t, durable(copied(t, r.c.Dir)))
	until(t, "it leads", after.state.leading)
	equal(t, "after a crash", after.state.texts(), []string{"a", "b", "c"})
}

func TestLogEndsOnADiskThatFails(t *testing.T) {
	t.Parallel()
	c := durable(t.TempDir())
	f := newFaulty(&c)
	r := start(t, c)
	r.put(t, "a")
	f.full.Store(true)
	<-r.propose("lost")
	until(t, "raft cannot write its vote", func() bool { return r.disk.Fault() != nil && r.raft.State() != raft.Leader })
	time.Sleep(2 * diskRetry)
	begin := time.Now()
	if err := r.stop(); err == nil {
		t.Error("Run = nil")
	}
	if took := time.Since(begin); took > 2*endWithin {
		t.Errorf("it took %v to end", took)
	}
}

// A member whose disk is full holds up nobody, and catches up.
func TestGroupGoesOnWithOneFullDisk(t *testing.T) {
	t.Parallel()
	m := newMesh(t)
	var f *faulty
	for _, name := range []string{"n1", "n2", "n3"} {
		c := member(qpidName(name))
		if name == "n1" {
			f = newFaulty(&c)
		}
		m.start(c)
	}
	m.see()
	m.voters("n1", "n2", "n3")
	m.put("a")
	f.full.Store(true)
	m.put("b")
	m.put("c")
	until(t, "the full one says so", func() bool { return m.nodes["n1"].Ready() != nil })
	f.full.Store(false)
	m.put("d")
	equal(t, "applied", distinct(m.same()), []string{"a", "b", "c", "d"})
}

// An entry that cannot be read for a while is waited for.
func TestUnreadableEntryIsTriedAgain(t *testing.T) {
	t.Parallel()
	m := newMesh(t)
	var f *faulty
	for _, name := range []string{"n1", "n2", "n3"} {
		c := member(qpidName(name))
		if name == "n3" {
			f = newFaulty(&c)
		}
		m.start(c)
	}
	m.see()
	m.voters("n1", "n2", "n3")
	f.blind.Store(true)
	m.put("a")
	m.put("b")
	f.blind.Store(false)
	m.put("c")
	equal(t, "applied", distinct(m.same()), []string{"a", "b", "c"})
}

// A log that runs waits for room for its votes, and must not do so in silence.
func TestWhoWaitsForADiskSaysSo(t *testing.T) {
	var said bytes.Buffer
	d := &disk{ended: make(chan struct{}), log: forRaft(slog.New(slog.NewTextHandler(&said, nil)))}
	d.patient.Store(true)
	tries := 0
	err := d.must(func() error {
		tries++
		if tries < 3 {
			return fmt.Errorf("write /data/log: %w", syscall.ENOSPC)
		}
		return nil
	})
	if got := said.String(); err != nil || strings.Count(got, "\n") != 1 || !strings.Contains(got, "waits for its disk") || !strings.Contains(got, "no space left on device") {
		t.Errorf("said %q, want one line with the reason", got)
	}
}
