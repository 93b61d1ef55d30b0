package store_test

import (
	"bytes"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/store"
	"github.com/anteroom/anteroom/qpid"
	"github.com/google/go-cmp/cmp"
)

func record() *eviction.Record {
	m := eviction.Member{Name: "a", Boot: 1<<63 + 7}
	return &eviction.Record{
		Line: eviction.Line{Stamp: 1 << 60, By: "a"}, Epoch: 99, Member: m,
		Voters: eviction.Voters{Version: 3, Names: []qpid.NodeID{"a", "b"}, Founders: []eviction.Member{m}},
		Met:    []eviction.Sighting{{Member: m, Age: 5, Epoch: 98, Left: true}},
		Rooms: []eviction.RoomRecord{{
			Room: eviction.Room{Name: "shop", Target: 7, Session: time.Minute}, TTL: time.Hour,
			Voids: []eviction.Void{{Member: m, Epoch: 4}}, Cut: eviction.Cut{Value: qpid.Weight{Stamp: 1 << 55, ID: qpid.ItemID{1, 2}}},
		}},
	}
}

func open(t *testing.T, dir string) *store.Store {
	t.Helper()
	s, err := store.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestRecordComesBack(t *testing.T) {
	dir := t.TempDir() + "/new"
	s := open(t, dir)
	if r, err := s.Load(); r != nil || err != nil {
		t.Fatalf("a new directory has %v, %v", r, err)
	}
	for range 2 {
		if err := s.Save(record()); err != nil {
			t.Fatal(err)
		}
	}
	got, err := open(t, dir).Load()
	if diff := cmp.Diff(record(), got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
}

// Whatever single byte of it turns, the file is refused or says the same.
func TestDamageIsNoticed(t *testing.T) {
	s := open(t, t.TempDir())
	if err := s.Save(record()); err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(s.Path("state.json"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range good {
		bad := bytes.Clone(good)
		bad[i] ^= 0x11
		if err := os.WriteFile(s.Path("state.json"), bad, 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := s.Load()
		if err == nil && !cmp.Equal(got, record()) {
			t.Fatalf("byte %d turned: read as %+v", i, got)
		}
		if err != nil && !strings.Contains(err.Error(), "state.json") {
			t.Fatalf("byte %d turned: %q does not name the file", i, err)
		}
	}
}

func TestDirectoryThatCannotBeWritten(t *testing.T) {
	if _, err := store.Open("/proc/anteroom"); err == nil || !strings.Contains(err.Error(), "node.data") {
		t.Errorf("%v; want an error that names node.data", err)
	}
}

// Whoever may write to the directory could put signing keys of theirs there.
func TestADirectoryThatEverybodyMayWriteToIsRefused(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("it has no modes")
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777); err != nil { // whatever the umask
		t.Fatal(err)
	}
	if _, err := store.Open(dir); err == nil || !strings.Contains(err.Error(), "chmod 700 "+dir) {
		t.Errorf("%v, want a refusal that says what to do", err)
	}
	made := dir + "/a/b"
	open(t, made)
	if info, err := os.Stat(made); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the directory was made with mode %v, %v", info.Mode(), err)
	}
}
