package series

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// minuteOfShop is a minute with one join, under some settings.
func minuteOfShop(at int64, limit uint32) Minute {
	r := Row{At: at, Settings: Settings{limit, 0, Queueing}}
	r.Counts[Joins] = 1
	return Minute{at, []NamedRow{{self, Row{At: at, Up: 60}}, {"shop", r}}}
}

func kept(t *testing.T, dir string, minutes ...Minute) *Kept {
	t.Helper()
	log, _ := told()
	k, err := NewKept(dir, log)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range minutes {
		if err := k.Add("a", m); err != nil {
			t.Fatal(err)
		}
	}
	return k
}

// joins are those of all steps.
func joins(rows []Row) (n int) {
	for i := range rows {
		n += int(rows[i].Counts[Joins])
	}
	return n
}

// A node that leaves hands over its last minute before those that still wait, and a
// tail may have minutes in any order.
func TestMinutesMayComeInAnyOrder(t *testing.T) {
	dir := t.TempDir()
	k := kept(t, dir, minuteOfShop(noon+minute, 2), minuteOfShop(noon, 1))
	if got := joins(Read(nil, k, "a", "shop", Span{noon, noon + minute, minute}, noon+hour)); got != 1 {
		t.Errorf("%d joins in the first minute, which came last; want 1", got)
	}
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
	k = kept(t, dir)
	rows := Read(nil, k, "a", "shop", Span{noon, noon + 10*minute, 10 * minute}, noon+hour)
	if len(rows) != 1 || joins(rows) != 2 || rows[0].Limit != 2 {
		t.Errorf("after a restart: %+v; want 2 joins, and the limit of the later minute", rows)
	}
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
}

// An hour with a minute that came late is in two blocks, the second behind later hours.
func TestALateMinuteIsFoundAfterARestart(t *testing.T) {
	dir := t.TempDir()
	k := kept(t, dir)
	turn := func(now int64) {
		t.Helper()
		if err := k.Turn(now); err != nil {
			t.Fatal(err)
		}
	}
	for h := range int64(4) {
		if err := k.Add("a", minuteOfShop(noon+h*hour, 1)); err != nil {
			t.Fatal(err)
		}
	}
	turn(noon + 5*hour)
	if err := k.Add("a", minuteOfShop(noon+minute, 1)); err != nil {
		t.Fatal(err)
	}
	turn(noon + 5*hour)
	for range 2 {
		for _, s := range []Span{{noon, noon + hour, minute}, {noon, noon + hour, hour}, {noon - 3*hour, noon + hour, 2 * hour}} {
			if got := joins(Read(nil, k, "a", "shop", s, s.To)); got != 2 {
				t.Errorf("%d joins in steps of %d s, want 2", got, s.Step)
			}
		}
		if err := k.Close(); err != nil {
			t.Fatal(err)
		}
		k = kept(t, dir)
	}
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
}

// What another node keeps of one that has begun anew counts up to when that began,
// and not for the whole hour: the node itself tells the rest.
func TestAnHourIsCutWhereItIsAskedTo(t *testing.T) {
	k := kept(t, "", minuteOfShop(noon, 1), minuteOfShop(noon+30*minute, 1), minuteOfShop(noon+40*minute, 1))
	if err := k.Turn(noon + 2*hour); err != nil {
		t.Fatal(err)
	}
	for _, step := range []int64{minute, hour} {
		rows := Read(nil, k, "a", "shop", Span{noon, noon + hour, step}, noon+30*minute)
		if got := joins(rows); got != 1 {
			t.Errorf("%d joins before 12:30 in steps of %d s, want 1", got, step)
		}
	}
}

// A node that ends while it packs an hour has some of its rooms in the file, and all
// minutes in the tail: each counts once.
func TestAnHourThatWasHalfPackedCountsOnce(t *testing.T) {
	dir := t.TempDir()
	k := kept(t, dir, minuteOfShop(noon, 1), minuteOfShop(noon+minute, 1))
	tail, err := os.ReadFile(filepath.Join(dir, tailName))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(k.Turn(noon+2*hour), k.Close()); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "2026-11-21.rows")
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var whole [][]byte
	frames(b, func(_ int64, body []byte) { whole = append(whole, frame(nil, body)) })
	if len(whole) != 2 {
		t.Fatalf("%d blocks, want the node's own and the room's", len(whole))
	}
	err = errors.Join(os.WriteFile(name, whole[0], 0o600), os.WriteFile(filepath.Join(dir, tailName), tail, 0o600))
	if err != nil {
		t.Fatal(err)
	}
	k = kept(t, dir)
	if got := joins(Read(nil, k, "a", "shop", Span{noon, noon + hour, hour}, noon+hour)); got != 2 {
		t.Errorf("%d joins, want 2", got)
	}
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
}

// A later version may count more: what is not known here is left out, and the rest
// of the row is read.
func TestCountsOfALaterVersionAreLeftOut(t *testing.T) {
	r := Row{At: noon, Up: 60, Settings: Settings{5, 0, Open}}
	r.Counts[Joins] = 7
	r.Waits.Record(1000)
	b := r.append(nil, noon, minute)
	set := binary.AppendUvarint(nil, 1)
	at := 10 // of the set, after ten figures of a byte each
	for i := range 10 {
		if b[i] >= 0x80 {
			t.Fatal("a figure of the test takes more than a byte")
		}
	}
	if b[at] != set[0] || b[at+1] != 7 {
		t.Fatalf("the row is %x", b)
	}
	later := append(binary.AppendUvarint(append([]byte{}, b[:at]...), 1|1<<40), 7, 9)
	later = append(later, b[at+2:]...)
	var got []Row
	if err := Decode(later, noon, minute, func(r *Row) bool { got = append(got, *r); return true }); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Row{r}, got); diff != "" {
		t.Error(diff)
	}
}
