package replog

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/hashicorp/raft"
)

// older is a state machine of a release that cannot read commands which begin with
// "new".
func older() *list {
	return &list{knows: func(command []byte) error {
		if bytes.HasPrefix(command, []byte("new")) {
			return errors.New("unknown operation")
		}
		return nil
	}}
}

// stuck waits until a log says that it cannot read an entry.
func (r *running) stuck(t *testing.T) {
	t.Helper()
	until(t, "it says what it cannot read", func() bool {
		u := (*Unreadable)(nil)
		return errors.As(r.Ready(), &u) && strings.Contains(u.Error(), "unknown operation; run the release that wrote it")
	})
}

// A node that is put back to an older release says so, and has lost nothing when the
// newer one runs again.
func TestDurableLogStopsAtWhatItCannotRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	all := []string{"before", "new", "after"}
	r := start(t, durable(dir))
	for _, c := range all { // an entry each
		r.put(t, c)
	}
	_ = r.stop()

	c := durable(dir)
	c.Machine = older()
	r = start(t, c)
	r.stuck(t)
	equal(t, "applied by the older release", r.state.texts(), []string{"before"})
	if err := r.raft.Snapshot().Error(); err == nil || !strings.Contains(err.Error(), "cannot be read") {
		t.Errorf("a snapshot, which lets go of the entry = %v", err)
	}
	if r.state.leading() {
		t.Error("it leads, and would answer from what it has")
	}
	_ = r.stop()

	r = start(t, durable(dir))
	r.put(t, "last")
	equal(t, "applied by the newer one again", r.state.texts(), append(all, "last"))
}

// A replica of an older release stays behind instead of going on without what it
// cannot read, leads no more, and catches up once it is of a newer one.
func TestReplicaStopsAtWhatItCannotRead(t *testing.T) {
	t.Parallel()
	m := three(t)
	m.put("before")
	m.same()
	var old *node
	for _, name := range m.up() {
		if n := m.node(name); n != m.leader() {
			old = n
		}
	}
	old.state.mu.Lock()
	old.state.knows = older().knows
	old.state.mu.Unlock()
	m.put("new")
	m.put("after")
	old.stuck(t)
	equal(t, "applied by the older release", distinct(old.state.texts()), []string{"before"})

	leads := m.leader().name
	m.stop(leads)
	m.see()
	m.put("later", old.name)
	if old.state.leading() {
		t.Error("it leads")
	}
	c := member(leads)
	c.Group.Self.Boot = 2
	m.start(c)
	m.see()
	m.voters("n1", "n2", "n3")

	m.stop(old.name)
	c = member(old.name)
	c.Group.Self.Boot = 2
	m.start(c)
	m.see()
	equal(t, "applied by all", distinct(m.same()), []string{"before", "new", "after", "later"})
}

// A leader's own entry is one that it can read; an older one's is not its own.
func TestWhoCannotReadAnEntryLeadsNoMore(t *testing.T) {
	t.Parallel()
	state := older()
	m := &machine{state: state, leads: state.leads, full: make(chan struct{}, 1), compact: 1 << 20}
	m.mu.Lock()
	m.lead(true, 3)
	m.mu.Unlock()
	for i, c := range []string{"a", "new", "b"} {
		answer := m.Apply(&raft.Log{Index: uint64(i + 1), Term: 3, Type: raft.LogCommand, Data: appendCommand(nil, []byte(c))})
		u, stopped := answer.(*Unreadable)
		if stopped != (i > 0) || stopped && u.Index != 2 {
			t.Errorf("%s is answered by %v", c, answer)
		}
	}
	if state.leading() {
		t.Error("it leads")
	}
	equal(t, "applied", state.texts(), []string{"a"})
	state.check(t)
}
