package store_test

import (
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/anteroom/anteroom/eviction"
)

const hour = int64(time.Hour / time.Microsecond)

func TestUsedTicketsAreKeptForADay(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	begin := 500_000 * hour
	for _, add := range []struct {
		at      int64
		tickets []uint64
	}{{begin, []uint64{1, 2}}, {begin + hour/2, []uint64{3}}, {begin + 5*hour, []uint64{4, 5, 6}}} {
		if err := s.AppendUsed(add.at, add.tickets); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		name string
		now  int64
		most int
		want []eviction.UsedBatch
		more bool
	}{
		{"soon", begin + 6*hour, 100, []eviction.UsedBatch{{At: begin + hour, Tickets: []uint64{1, 2, 3}}, {At: begin + 6*hour, Tickets: []uint64{4, 5, 6}}}, false},
		{"the first are a day old", begin + 27*hour, 100, []eviction.UsedBatch{{At: begin + 6*hour, Tickets: []uint64{4, 5, 6}}}, false},
		{"room for four", begin + 6*hour, 4, []eviction.UsedBatch{{At: begin + hour, Tickets: []uint64{3}}, {At: begin + 6*hour, Tickets: []uint64{4, 5, 6}}}, true},
		{"room for three", begin + 6*hour, 3, []eviction.UsedBatch{{At: begin + 6*hour, Tickets: []uint64{4, 5, 6}}}, true},
	} {
		got, more, err := open(t, dir).LoadUsed(tt.now, tt.most)
		if d := cmp.Diff(tt.want, got); d != "" || more != tt.more || err != nil {
			t.Errorf("%s: more %t, %v (-want +got):\n%s", tt.name, more, err, d)
		}
	}
	if err := s.AppendUsed(begin+40*hour, []uint64{7}); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 1 {
		t.Errorf("%d files are left of old hours, want that of the last: %v", len(files), err)
	}
}

// A ticket that was written in part, as on a full disk, spoils none after it.
func TestUsedTicketsGoOnAfterOneThatWasCutShort(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(open(t, dir).Path("used-7.log"), []byte{0, 0, 0, 0, 0, 0, 0, 9, 1, 2, 3}, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, want := range [][]uint64{{9}, {9, 8}} {
		s := open(t, dir)
		got, _, err := s.LoadUsed(7*hour, 10)
		if err != nil || len(got) != 1 || cmp.Diff(want, got[0].Tickets) != "" {
			t.Errorf("%v, %v; want %v", got, err, want)
		}
		if err := s.AppendUsed(7*hour, []uint64{8}); err != nil {
			t.Fatal(err)
		}
	}
}

// FuzzLoadUsed: no file makes LoadUsed fail, and what it reads is what is there,
// eight bytes at a time.
func FuzzLoadUsed(f *testing.F) {
	f.Add([]byte{}, uint16(10))
	f.Add([]byte{0, 0, 0, 0, 0, 0, 0, 9, 1, 2, 3}, uint16(1))
	f.Fuzz(func(t *testing.T, b []byte, most uint16) {
		s := open(t, t.TempDir())
		if err := os.WriteFile(s.Path("used-7.log"), b, 0o600); err != nil {
			t.Fatal(err)
		}
		got, more, err := s.LoadUsed(7*hour, int(most))
		n := 0
		for _, g := range got {
			n += len(g.Tickets)
		}
		if err != nil || n != min(len(b)/8, int(most)) || more != (len(b)/8 > int(most)) && most > 0 {
			t.Fatalf("%d of %d bytes, at most %d, more %t: %v", n, len(b), most, more, err)
		}
	})
}
