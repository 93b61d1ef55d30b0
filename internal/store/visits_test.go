package store_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/store"
)

func line(i byte, of eviction.Member) eviction.VisitLine {
	return eviction.VisitLine{ID: [16]byte{i, 0xff}, Stamp: uint64(i), Gen: 1, Until: 100, Started: 10, Homes: []eviction.Account{{Member: of, Born: 7}}}
}

var (
	lifeA = eviction.Member{Name: "n1", Boot: 1}
	lifeB = eviction.Member{Name: "n1", Boot: 2}
)

// written is a directory in which a life has put three visits, in two batches, and struck one.
func written(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	s, err := store.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	v, kept, err := s.OpenVisits(lifeA)
	if err != nil || len(kept.Lives)+len(kept.Rooms) > 0 {
		t.Fatalf("a new directory has %+v, %v", kept, err)
	}
	for _, b := range []eviction.VisitsBatch{
		{Rooms: []eviction.RoomLines{{Room: "shop", Put: []eviction.VisitLine{line(1, lifeA), line(2, lifeA)}}}},
		{Rooms: []eviction.RoomLines{{Room: "shop", Put: []eviction.VisitLine{line(3, lifeA)}}}},
	} {
		if b.Rooms[0].Put[0].Stamp == 3 {
			b.Rooms[0].Struck = append(b.Rooms[0].Struck, line(1, lifeA).ID)
		}
		if err := v.Append(&b); err != nil {
			t.Fatal(err)
		}
	}
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

func reopened(t *testing.T, dir string) (*eviction.VisitsKept, error) {
	t.Helper()
	s, err := store.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	v, kept, err := s.OpenVisits(lifeB)
	if v != nil {
		_ = v.Close()
	}
	return kept, err
}

func TestVisitsOfEarlierLivesAreKept(t *testing.T) {
	want := &eviction.VisitsKept{
		Lives: []eviction.Member{lifeA},
		Rooms: []eviction.RoomLines{{Room: "shop", Put: []eviction.VisitLine{line(2, lifeA), line(3, lifeA)}}},
	}
	dir := written(t)
	for range 2 { // the second time, as the file was written anew
		got, err := reopened(t, dir)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Fatalf("%v, -want +got:\n%s", err, diff)
		}
		want.Lives = append(want.Lives, lifeB)
	}
}

// A crash cuts off a batch: it was not durable. Anything else that is damaged may have been.
func TestVisitsThatAreDamagedCountForNothing(t *testing.T) {
	dir := written(t)
	name := filepath.Join(dir, "visits.log")
	whole, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	last := bytes.LastIndexByte(whole[:len(whole)-1], '\n') + 1
	for cut := last; cut < len(whole); cut++ {
		if err := os.WriteFile(name, whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := reopened(t, dir); err != nil || len(got.Rooms) != 1 || len(got.Rooms[0].Put) != 2 || got.Rooms[0].Put[0].ID[0] != 1 {
			t.Fatalf("cut off after %d of %d bytes: %+v, %v; want the first batch", cut, len(whole), got, err)
		}
	}
	for at := range last - 1 {
		bad := bytes.Clone(whole)
		bad[at] ^= 0x10
		if err := os.WriteFile(name, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := reopened(t, dir)
		if !errors.Is(err, store.ErrVisits) || len(got.Rooms)+len(got.Lives) > 0 {
			t.Fatalf("byte %d is damaged: %+v, %v", at, got, err)
		}
	}
}

func TestVisitsAreWrittenAnewWhenMuchIsOutOfDate(t *testing.T) {
	dir := t.TempDir()
	s, err := store.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	v, _, err := s.OpenVisits(lifeA)
	if err != nil {
		t.Fatal(err)
	}
	lines := make([]eviction.VisitLine, 250)
	for i := range lines {
		lines[i] = line(byte(i), lifeA)
	}
	for range 100 {
		if err := v.Append(&eviction.VisitsBatch{Rooms: []eviction.RoomLines{{Room: "shop", Put: lines}}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := v.Append(&eviction.VisitsBatch{Leaving: true}); err != nil {
		t.Fatal(err)
	}
	_ = v.Close()
	if info, err := os.Stat(filepath.Join(dir, "visits.log")); err != nil || info.Size() > 3<<20 {
		t.Errorf("the file has %d bytes, %v", info.Size(), err)
	}
	got, err := reopened(t, dir)
	if err != nil || len(got.Rooms[0].Put) != 250 || len(got.Leaving) != 1 {
		t.Errorf("%d visits, leaving %v, %v", len(got.Rooms[0].Put), got.Leaving, err)
	}
}

// FuzzVisits reads any bytes as a file of visits.
func FuzzVisits(f *testing.F) {
	f.Add([]byte("00000000 {}\n"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "visits.log"), b, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := reopened(t, dir); err != nil && !errors.Is(err, store.ErrVisits) {
			t.Fatal(err)
		}
	})
}

// Of more lives than a file knows of the first are forgotten, with their visits; all others stay.
func TestVisitsOfTooManyLives(t *testing.T) {
	dir := t.TempDir()
	s, err := store.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	life := func(boot int) eviction.Member { return eviction.Member{Name: "n1", Boot: uint64(boot)} }
	for boot := 1; boot <= eviction.LivesMax+3; boot++ {
		v, kept, err := s.OpenVisits(life(boot))
		if err != nil {
			t.Fatalf("life %d: %v", boot, err)
		}
		first := max(1, boot-eviction.LivesMax+1)
		if n := len(kept.Lives); n != boot-first {
			t.Fatalf("life %d finds %d lives, want %d", boot, n, boot-first)
		}
		lines, leaving := 0, 0
		for i := range kept.Rooms {
			lines += len(kept.Rooms[i].Put)
		}
		for _, old := range []int{1, 3, 10} {
			if first <= old && old < boot {
				lines--
			}
		}
		if leaving = len(kept.Leaving); first <= 3 && 3 < boot {
			leaving--
		}
		if lines != 0 || leaving != 0 {
			t.Fatalf("life %d finds %+v", boot, kept)
		}
		if boot == 1 || boot == 3 || boot == 10 {
			b := &eviction.VisitsBatch{Leaving: boot == 3, Rooms: []eviction.RoomLines{{Room: "shop", Put: []eviction.VisitLine{line(byte(boot), life(boot))}}}}
			if err := v.Append(b); err != nil {
				t.Fatal(err)
			}
		}
		if err := v.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A disk that takes nothing when a life begins keeps what it has, and has this life's with the first
// batch that it takes.
func TestVisitsOnADiskThatIsFullAtTheStart(t *testing.T) {
	dir := written(t)
	s, err := store.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	stands := filepath.Join(dir, "visits.log.new", "in the way")
	if err := os.MkdirAll(stands, 0o700); err != nil {
		t.Fatal(err)
	}
	v, kept, err := s.OpenVisits(lifeB)
	if err != nil || len(kept.Lives) != 1 || len(kept.Rooms) != 1 || len(kept.Rooms[0].Put) != 2 {
		t.Fatalf("OpenVisits = %+v, %v, want the two visits of before", kept, err)
	}
	b := &eviction.VisitsBatch{Rooms: []eviction.RoomLines{{Room: "shop", Put: []eviction.VisitLine{line(4, lifeB)}}}}
	if err := v.Append(b); err == nil {
		t.Error("a batch is durable on a disk that takes nothing")
	}
	if err := os.RemoveAll(filepath.Dir(stands)); err != nil {
		t.Fatal(err)
	}
	if err := v.Append(b); err != nil {
		t.Fatal(err)
	}
	_ = v.Close()
	if s, err = store.Open(dir); err != nil {
		t.Fatal(err)
	}
	_, got, err := s.OpenVisits(eviction.Member{Name: "n1", Boot: 3})
	if err != nil || len(got.Lives) != 2 || len(got.Rooms) != 1 || len(got.Rooms[0].Put) != 3 {
		t.Errorf("OpenVisits = %+v, %v, want three visits of two lives", got, err)
	}
}
