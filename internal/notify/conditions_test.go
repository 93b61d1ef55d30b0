package notify_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/anteroom/anteroom/internal/notify"
)

// looker looks at one condition every second.
type looker struct {
	*notify.Conditions
	now  time.Time
	mine bool
	said []string
	last notify.News
}

func newLooker(told ...notify.Told) *looker {
	return &looker{Conditions: notify.NewConditions(told), now: time.Unix(1000, 0), mine: true}
}

// sees lets the condition look so for a while.
func (l *looker) sees(s notify.State, seconds int) {
	for range seconds {
		l.now = l.now.Add(time.Second)
		r := notify.Reading{
			Key: "queueing shop", State: s, After: 10 * time.Second, Settle: time.Minute, Root: "a-1", Mine: l.mine,
			Begins: notify.Event{Type: notify.QueueingBegan, Room: "shop"}, Ends: notify.Event{Type: notify.QueueingEnded, Room: "shop"},
		}
		for _, n := range l.Look(l.now, []notify.Reading{r}) {
			l.said, l.last = append(l.said, fmt.Sprintf("%s %d", n.Event.Type, l.now.Unix()-1000)), n
		}
	}
}

func (l *looker) wants(t *testing.T, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, l.said); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}

func TestAFlappingFigureIsToldOnce(t *testing.T) {
	l := newLooker()
	for range 30 {
		l.sees(notify.On, 9)
		l.sees(notify.Off, 1)
	}
	l.wants(t)
	l.sees(notify.On, 20)
	for range 30 {
		l.sees(notify.Off, 59)
		l.sees(notify.On, 1)
	}
	l.wants(t, "queueing.began 311")
	l.sees(notify.Off, 100)
	l.wants(t, "queueing.began 311", "queueing.ended 2181")
}

// TestBetweenGoesOnWithWhatWas: a room that is full but for the moment in which one
// goes and the next comes is full.
func TestBetweenGoesOnWithWhatWas(t *testing.T) {
	l := newLooker()
	l.sees(notify.Between, 100)
	l.wants(t)
	for range 7 {
		l.sees(notify.On, 1)
		l.sees(notify.Between, 1)
	}
	l.wants(t, "queueing.began 111")
	l.sees(notify.Between, 1000)
	l.wants(t, "queueing.began 111")
}

// TestWhoGoesOnForAnotherTellsTheSame: two nodes that tell of one turn of a
// condition give it one ID, whenever they do; and none is given twice.
func TestWhoGoesOnForAnotherTellsTheSame(t *testing.T) {
	a, b := newLooker(), newLooker()
	b.mine = false
	seen := map[string]bool{}
	for range 3 {
		for _, s := range []notify.State{notify.On, notify.Off} {
			a.sees(s, 100)
			b.sees(s, 100)
			if b.mine = true; len(b.said) > 0 {
				t.Fatal("it told what is another's to tell")
			}
			b.sees(s, 1) // a has gone before anybody heard
			if len(b.said) != 1 || a.last.Told.ID != b.last.Told.ID || seen[b.last.Told.ID] {
				t.Fatalf("a tells %+v, b %v %+v", a.last, b.said, b.last)
			}
			seen[b.last.Told.ID], b.said, b.mine = true, nil, false
			a.Hear(b.last.Told)
		}
	}
	b.mine = true
	a.sees(notify.On, 20)
	b.Hear(a.last.Told)
	b.sees(notify.On, 200)
	b.wants(t)
	b.Hear(notify.Told{Key: "queueing shop", ID: "old", At: time.Unix(5, 0)})
	b.sees(notify.On, 200)
	b.wants(t)
	again := newLooker(b.Told()...) // the next life
	again.sees(notify.On, 200)
	again.wants(t)
	again.sees(notify.Off, 61)
	again.wants(t, "queueing.ended 261")
}

func TestWhatWasToldIsBounded(t *testing.T) {
	c := notify.NewConditions(nil)
	for i := range 10_100 {
		c.Hear(notify.Told{Key: fmt.Sprintf("%05d", i), ID: "x", At: time.Unix(int64(i), 0)})
	}
	if all := c.Told(); len(all) != 10_000 || all[0].Key != "00100" {
		t.Errorf("%d are kept, from %s", len(all), all[0].Key)
	}
}
