package series

import (
	"bytes"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// noon is 2026-11-21T12:00:00Z.
const noon = 1795262400

// told is a log that a test reads.
func told() (*slog.Logger, *bytes.Buffer) {
	var b bytes.Buffer
	return slog.New(slog.NewTextHandler(&b, nil)), &b
}

// world is a node with a busy room and an idle one, and a count of its own of each
// second.
type world struct {
	t     *testing.T
	rng   *rand.Rand
	live  *Live
	kept  *Kept
	now   int64
	busy  []Row // each second
	limit uint32
	terms uint32 // of visits
}

func newWorld(t *testing.T, dir string) *world {
	w := &world{t: t, rng: rand.New(rand.NewPCG(7, 0)), live: New(1), now: noon, limit: 50}
	w.open(dir)
	return w
}

func (w *world) open(dir string) {
	log, said := told()
	var err error
	if w.kept, err = NewKept(dir, log); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		if dir != "" && strings.Contains(said.String(), "history") && !strings.Contains(w.t.Name(), "Damage") {
			w.t.Errorf("the log says %s", said)
		}
	})
}

// run lets seconds pass.
func (w *world) run(seconds int) {
	w.t.Helper()
	for range seconds {
		r := Row{At: w.now, Up: 1, Settings: Settings{w.limit, 0, Queueing}}
		for range w.rng.IntN(4) {
			wait, visit := 1+w.rng.Int64N(600_000_000), w.rng.Int64N(300_000_000)
			w.live.Admitted("shop", wait, int(w.limit))
			w.live.Ended("shop", visit, true, w.terms)
			r.Counts[Admissions]++
			r.Counts[EndsLeft]++
			r.Counts[Terms] = w.terms
			r.Waits.Record(wait / 1000)
			r.Visits.Record(visit / 1000)
			r.OnSiteMost = w.limit
		}
		joins := w.rng.IntN(3)
		w.live.Count("shop", Joins, joins)
		r.Counts[Joins] = uint32(joins)
		s := Sample{Room: "shop", OnSite: w.rng.IntN(50), InLine: w.rng.IntN(1000), RoomInLine: 1000, Settings: r.Settings}
		r.OnSite, r.InLine, r.InLineMost = uint64(s.OnSite), uint64(s.InLine), 1000
		r.OnSiteMost = max(r.OnSiteMost, uint32(s.OnSite))
		w.busy = append(w.busy, r)
		w.now++
		for _, m := range w.live.Tick(w.now, []Sample{s, {Room: "idle", Settings: Settings{9, 3, Open}}}) {
			if err := w.kept.Add("a", m); err != nil {
				w.t.Fatal(err)
			}
			if err := w.kept.Turn(m.At); err != nil {
				w.t.Fatal(err)
			}
		}
	}
}

// want is the count of the world in the steps of a span.
func (w *world) want(s Span) []Row {
	f := newFold(s)
	for i := range w.busy {
		f.add(&w.busy[i])
	}
	return f.within(f)
}

func (w *world) check(what string, live *Live, s Span) {
	w.t.Helper()
	if diff := cmp.Diff(w.want(s), Read(live, w.kept, "a", "shop", s, s.To), cmpopts.EquateEmpty()); diff != "" {
		w.t.Fatalf("%s, steps of %d s (-counted +kept):\n%s", what, s.Step, diff)
	}
}

// What is kept of each step is what happened in it, in whatever step it is asked for,
// and through a restart.
func TestEachStepTellsWhatHappenedInIt(t *testing.T) {
	for _, dir := range []string{"", t.TempDir()} {
		w := newWorld(t, dir)
		w.run(3*hour + 17*minute + 5)
		for _, s := range []Span{
			{w.now - 14*minute, w.now + 9, 1},
			{noon + 3*hour + 5*minute, noon + 3*hour + 10*minute, 5},
			{noon, noon + 4*hour, 10},
			{noon, noon + 4*hour, 60},
			{noon + hour, noon + 2*hour, 300},
			{noon, noon + 4*hour, hour},
			{noon - 12*hour, noon + 12*hour, day},
		} {
			w.check("running", w.live, s)
		}
		idle := Read(w.live, w.kept, "a", "idle", Span{noon - hour, noon + 4*hour, hour}, w.now)
		if diff := cmp.Diff([]Row{{At: noon, Up: hour}, {At: noon + hour, Up: hour}, {At: noon + 2*hour, Up: hour}, {At: noon + 3*hour, Up: 17*minute + 5}}, idle, cmpopts.IgnoreFields(Row{}, "Settings")); diff != "" {
			t.Errorf("the idle room: %s", diff)
		}
		for _, r := range idle {
			if r.Settings != (Settings{9, 3, Open}) {
				t.Errorf("the idle room had %+v", r.Settings)
			}
		}
		if dir == "" {
			continue
		}
		m, _ := w.live.Last() // it stops
		if err := w.kept.Add("a", m); err != nil {
			t.Fatal(err)
		}
		if err := w.kept.Close(); err != nil {
			t.Fatal(err)
		}
		w.open(dir)
		w.live = New(2)
		w.run(2 * minute) // in the same minute, and in the next ones
		w.check("restarted", w.live, Span{noon, noon + 4*hour, 60})
		w.check("restarted", w.live, Span{noon, noon + 4*hour, hour})
		w.run(2 * hour)
		w.check("and packed", w.live, Span{noon, noon + 6*hour, 60})
		w.check("and packed", w.live, Span{noon, noon + 6*hour, hour})
	}
}

// A node that ends leaves behind what has happened in its last second, too, also in a
// room that had not been there before.
func TestTheLastMinuteHasTheSecondThatRuns(t *testing.T) {
	w := newWorld(t, "")
	w.run(5)
	w.live.Ended("shop", 1_000_000, true, 0)
	w.live.Count("new", Joins, 1)
	m, ok := w.live.Last()
	if !ok {
		t.Fatal("nothing is left of five seconds")
	}
	if err := w.kept.Add("a", m); err != nil {
		t.Fatal(err)
	}
	left := func(room string) (all Row) {
		for _, r := range Read(nil, w.kept, "a", room, Span{noon, noon + minute, minute}, noon+minute) {
			all.Merge(&r)
		}
		return all
	}
	if got, want := left("shop").Visits.Count(), count(w.busy)+1; got != want {
		t.Errorf("%d visits are kept, want %d", got, want)
	}
	if got := left("new").Counts[Joins]; got != 1 {
		t.Errorf("%d joins are kept of a new room, want 1", got)
	}
}

// A minute that is sent again is not counted again, but that of another life is.
func TestMinuteSentAgainIsCountedOnce(t *testing.T) {
	w := newWorld(t, t.TempDir())
	row := func(life uint32) Minute {
		shop := Row{At: noon, OnSite: 60, Settings: Settings{50, 0, Open}}
		return Minute{noon, []NamedRow{{self, Row{At: noon, Up: 20, Settings: Settings{Rate: life}}}, {"shop", shop}}}
	}
	for _, life := range []uint32{1, 1, 2, 1, 2} {
		m, err := DecodeMinute(EncodeMinute(row(life)))
		if err == nil {
			err = w.kept.Add("b", m)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	span := Span{noon, noon + hour, hour}
	for _, when := range []string{"open", "packed"} {
		got := Read(nil, w.kept, "b", "shop", span, span.To)
		if len(got) != 1 || got[0].OnSite != 120 || got[0].Up != 40 {
			t.Errorf("%s: %+v; want both lives once", when, got)
		}
		if err := w.kept.Turn(noon + 2*hour); err != nil {
			t.Fatal(err)
		}
		if err := w.kept.Add("b", row(1)); err != nil {
			t.Fatal(err)
		}
	}
}

// Damage costs what is damaged, and the log is told.
func TestDamageCostsOnlyItself(t *testing.T) {
	dir := t.TempDir()
	w := newWorld(t, dir)
	w.run(4*hour + 5*minute)
	if err := w.kept.Close(); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "2026-11-21.rows")
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var second int64 // where the body of the room's second hour is
	frames(b, func(at int64, body []byte) {
		r := reader{b: body}
		if r.uvarint(9); r.text() == "a" && r.text() == "shop" && r.uvarint(stepsMax) == (noon+hour)/hour {
			second = at
		}
	})
	b[second+40] ^= 1
	tail, err := os.ReadFile(filepath.Join(dir, tailName))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, tailName), tail[:len(tail)-7], 0o600)
	}
	if err == nil {
		err = os.WriteFile(name, append(b, "ArH1 and then nothing"...), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	log, said := told()
	if w.kept, err = NewKept(dir, log); err != nil {
		t.Fatal(err)
	}
	for h := range int64(4) {
		s := Span{noon + h*hour, noon + (h+1)*hour, 60}
		got, want := Read(nil, w.kept, "a", "shop", s, s.To), w.want(s)
		if h == 1 {
			want = nil // the hour is lost, and the node's own row says that it ran
			for _, r := range got {
				if !r.idle() {
					t.Errorf("in the damaged hour: %+v", r)
				}
			}
			got = nil
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("hour %d (-counted +kept):\n%s", h, diff)
		}
	}
	open := Span{noon + 4*hour, noon + 5*hour, 60}
	if got := Read(nil, w.kept, "a", "shop", open, open.To); len(got) != 3 {
		t.Errorf("%d minutes of the tail; want all but the torn one", len(got))
	}
	for _, file := range []string{"2026-11-21.rows", tailName} {
		if !strings.Contains(said.String(), file) {
			t.Errorf("the log says nothing of %s: %s", file, said)
		}
	}
	if err := w.kept.Close(); err != nil {
		t.Fatal(err)
	}
}

// Files of days that are too old are removed, and memory holds a day.
func TestHistoryIsForgotten(t *testing.T) {
	for _, dir := range []string{"", t.TempDir()} {
		w := newWorld(t, dir)
		most := 0
		for d := range int64(40) {
			at := noon + d*day
			m := Minute{at, []NamedRow{{self, Row{At: at, Up: 60}}, {"shop", Row{At: at, OnSite: 1}}}}
			if err := w.kept.Add("a", m); err != nil {
				t.Fatal(err)
			}
			if err := w.kept.Turn(at + 2*hour); err != nil {
				t.Fatal(err)
			}
			files, _ := filepath.Glob(filepath.Join(dir, "2*.rows"))
			most = max(most, len(files))
		}
		want := 33
		if dir == "" {
			want, most = 1, len(w.kept.nodes["a"]["shop"].hours)
		}
		if most != want {
			t.Errorf("%d days are kept, want %d", most, want)
		}
	}
}

func TestFineStepsAreBoundedOverAllRooms(t *testing.T) {
	w := newWorld(t, "")
	w.live.max = 50_000
	w.run(2 * hour)
	size := 0
	for _, r := range w.live.rooms {
		size += r.rows.size() + r.seconds.size()
	}
	if size > w.live.max+20_000 { // a minute's growth
		t.Errorf("%d bytes, the bound is %d", size, w.live.max)
	}
	w.check("the latest", w.live, Span{w.now - 5*minute, w.now, 10})
}

func TestSpansThatAreAskedFor(t *testing.T) {
	now := int64(noon)
	for _, x := range []struct {
		from, to, step int64
		want           Span
		err            string
	}{
		{now - 15*minute, now, 0, Span{now - 15*minute, now, 1}, ""},
		{now - hour, now, 0, Span{now - hour, now, 10}, ""},
		{now - 30*day, now, 0, Span{now - 30*day, now, hour}, ""},
		{now - 61, now + 1, 60, Span{now - 120, now + 60, 60}, ""},
		{now - hour, now, 1, Span{}, "go back 15 minutes"},
		{now - 2*day, now, 10, Span{}, "go back 1440 minutes"},
		{now - 30*day, now, 60, Span{}, "43200 steps"},
	} {
		got, err := Fit(x.from, x.to, x.step, now)
		if fmt.Sprint(err) != "<nil>" && (x.err == "" || !strings.Contains(err.Error(), x.err)) || err == nil && got != x.want {
			t.Errorf("Fit(%d, %d, %d) = %v, %v; want %v %s", x.from-now, x.to-now, x.step, got, err, x.want, x.err)
		}
	}
}

// What is told of the waits of late is of those seconds, and of the one that runs.
func TestWaitsOfLateAreThoseOfTheLastSeconds(t *testing.T) {
	w := newWorld(t, "")
	w.run(200)
	w.live.Admitted("shop", 0, 50) // who does not wait
	w.live.Admitted("shop", 7_000_000, 50)
	for _, seconds := range []int{1, 60, 199} {
		var want Hist
		want.Record(7000)
		for _, r := range w.busy[len(w.busy)-seconds:] {
			want.Merge(r.Waits)
		}
		got := w.live.Waits(w.now - int64(seconds))
		if diff := cmp.Diff(map[string]Hist{"shop": want}, got); diff != "" {
			t.Errorf("of %d seconds (-want +got):\n%s", seconds, diff)
		}
	}
	before := w.live.Waits(w.now - 60)["shop"].Count()
	got := w.live.Waits(w.now)["shop"]
	w.live.Admitted("shop", 7_000_000, 50) // into the same bucket
	if got.Count() != 1 || w.live.Waits(w.now - 60)["shop"].Count() != before+1 {
		t.Error("what was told has changed since")
	}
}
