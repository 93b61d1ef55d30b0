package replog

import (
	"bytes"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

func TestEntryHoldsItsCommands(t *testing.T) {
	t.Parallel()
	want := [][]byte{[]byte("a"), {}, bytes.Repeat([]byte{7}, 300), []byte("z")}
	var entry []byte
	for _, c := range want {
		entry = appendCommand(entry, c)
	}
	got, err := commandsOf(entry)
	if err != nil || len(got) != len(want) {
		t.Fatalf("commandsOf = %d commands, %v", len(got), err)
	}
	for i := range want {
		if !bytes.Equal(got[i], want[i]) {
			t.Errorf("command %d = %q, want %q", i, got[i], want[i])
		}
	}
	for _, bad := range [][]byte{nil, {2}, {1, 5, 'a'}, {1, 0x80}, append(bytes.Clone(entry), 9)} {
		if _, err := commandsOf(bad); err == nil {
			t.Errorf("commandsOf(%q) = nil", bad)
		}
	}
}

func FuzzEntry(f *testing.F) {
	f.Add(appendCommand(appendCommand(nil, []byte("a")), []byte("bc")))
	f.Add([]byte{1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, entry []byte) {
		commands, err := commandsOf(entry)
		if err != nil || len(commands) == 0 {
			return
		}
		var again []byte
		for _, c := range commands {
			again = appendCommand(again, c)
		}
		if back, err := commandsOf(again); err != nil || len(back) != len(commands) {
			t.Errorf("%d commands came back as %d, %v", len(commands), len(back), err)
		}
	})
}

func TestBadSnapshotIsAnError(t *testing.T) {
	t.Parallel()
	m := &machine{snapshotMax: 100, state: &list{}}
	head := func(version, size byte) string { return string([]byte{version, 0, 0, 0, 0, 0, 0, 0, size}) }
	for text, want := range map[string]string{
		"":                       "EOF",
		"\x01\x00":               "unexpected EOF",
		head(2, 4) + "null":      "it is of version 2",
		head(1, 101):             "more than the bound of 100",
		head(1, 9) + "null":      "unexpected EOF",
		head(1, 4) + "nope":      "invalid character",
		head(1, 4) + "null" + "": "",
	} {
		err := m.Restore(io.NopCloser(strings.NewReader(text)))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("Restore(%q) = %v, want %q", text, err, want)
		}
	}
}

// An entry of a later term is of another leader, whose word comes before raft's.
func TestLeadIsLostBeforeAnotherLeadersEntry(t *testing.T) {
	t.Parallel()
	state := &list{}
	m := &machine{state: state, leads: state.leads, full: make(chan struct{}, 1), compact: 1 << 20}
	m.mu.Lock()
	m.lead(true, 3)
	m.mu.Unlock()
	entry := func(term uint64) *raft.Log {
		return &raft.Log{Term: term, Type: raft.LogCommand, Data: appendCommand(nil, []byte("c"))}
	}
	m.Apply(entry(3))
	if !state.leading() {
		t.Fatal("its own entry ended the lead")
	}
	m.Apply(entry(4))
	if state.leading() {
		t.Error("it leads, and another leader's entry is applied")
	}
	if err, ok := m.Apply(&raft.Log{Type: raft.LogCommand, Data: []byte{9}}).(error); !ok {
		t.Errorf("an entry of another version = %v", err)
	}
	state.check(t)
}

func TestRaftsLinesArePassedOnSeldom(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	l := forRaft(slog.New(slog.NewTextHandler(&out, nil)))
	for range 100 {
		l.Error("failed to heartbeat to", "peer", "n2", "servers", hclog.Fmt("%v", 1))
		l.Info("chatter")
	}
	if got := strings.Count(out.String(), "\n"); got != 1 || !strings.Contains(out.String(), `msg="raft: failed to heartbeat to" peer=n2`) {
		t.Errorf("%d lines: %s", got, out.String())
	}
}
