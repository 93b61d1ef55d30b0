package pqueue_test

import (
	"bytes"
	"testing"

	"github.com/anteroom/anteroom/internal/pqueue"
)

// set is a command that gives q settings of that stamp, with room for so many items.
func set(stamp uint64, by string, items int) pqueue.Command {
	l := limits()
	l.ItemsMax = items
	return pqueue.Command{Op: pqueue.OpConfigure, Queue: "q", Limits: l, Settings: pqueue.Settings{
		Stamp: stamp, By: by, Lease: 30, PayloadMax: 100, Interval: 7, PerInterval: 2,
	}}
}

func TestOfTwoSettingsTheLaterHolds(t *testing.T) {
	file := pqueue.Command{Op: pqueue.OpConfigure, Queue: "q", Limits: limits()}
	for name, c := range map[string]struct {
		commands []pqueue.Command
		items    int
		stamp    uint64
	}{
		"one":                   {[]pqueue.Command{set(5, "a", 3)}, 3, 5},
		"the later one":         {[]pqueue.Command{set(5, "a", 3), set(6, "a", 4)}, 4, 6},
		"the earlier one comes": {[]pqueue.Command{set(6, "a", 4), set(5, "b", 3)}, 4, 6},
		"two of one time":       {[]pqueue.Command{set(6, "b", 4), set(6, "a", 3)}, 4, 6},
		"the file has no say":   {[]pqueue.Command{set(6, "a", 4), file}, 4, 6},
	} {
		s := shard(t)
		for _, one := range c.commands {
			if r := s.Apply(one); r.Code != pqueue.OK {
				t.Fatalf("%s: %+v", name, r)
			}
		}
		again, err := pqueue.Restore(s.Encode())
		if err != nil || !bytes.Equal(again.Encode(), s.Encode()) {
			t.Fatalf("%s: restored it is another: %v", name, err)
		}
		for _, s := range []*pqueue.Shard{s, again} {
			if l, _ := s.Limits("q"); l.ItemsMax != c.items || s.SettingsOf("q").Stamp != c.stamp {
				t.Errorf("%s: room for %d, %+v", name, l.ItemsMax, s.SettingsOf("q"))
			}
			if s.Bare("q") {
				t.Errorf("%s: it would be forgotten", name)
			}
		}
	}
}

func TestSettingsLoseNoItem(t *testing.T) {
	s := shard(t)
	for _, id := range []string{"a", "b", "c"} {
		insert(t, s, 10, id, 1)
	}
	do(t, s, 20, set(5, "n", 1), pqueue.OK)
	wantReady(t, s, "a", "b", "c")
	do(t, s, 20, pqueue.Command{Op: pqueue.OpInsert, ID: "d"}, pqueue.Full)
	for _, id := range []string{"a", "b", "c"} {
		do(t, s, 30, pqueue.Command{Op: pqueue.OpCancel, ID: id}, pqueue.OK)
	}
	insert(t, s, 40, "d", 1)
}

func TestSettingsThatMakeNoSenseAreRefused(t *testing.T) {
	for _, change := range []func(*pqueue.Settings){
		func(s *pqueue.Settings) { s.Stamp = 0 },
		func(s *pqueue.Settings) { s.Lease = 0 },
		func(s *pqueue.Settings) { s.Interval = -1 },
		func(s *pqueue.Settings) { s.PerInterval = 0 },
		func(s *pqueue.Settings) { s.PerInterval = 1001 },
		func(s *pqueue.Settings) { s.PayloadMax = -1 },
	} {
		c := set(5, "n", 3)
		change(&c.Settings)
		do(t, shard(t), 10, c, pqueue.Invalid)
	}
}

func TestFairKeysAreInTheSnapshotAndOnlyThen(t *testing.T) {
	for fair, header := range map[bool]string{false: "anteroom-shard-3\n", true: "anteroom-shard-5\n"} {
		s, c := shard(t), set(5, "n", 3)
		c.Settings.FairKeys = fair
		do(t, s, 10, c, pqueue.OK)
		again, err := pqueue.Restore(s.Encode())
		if err != nil || !bytes.HasPrefix(s.Encode(), []byte(header)) || again.SettingsOf("q") != c.Settings {
			t.Errorf("fair %v: %q, restored %+v, %v", fair, s.Encode()[:17], again, err)
		}
		if got, err := pqueue.DecodeCommand(c.Encode(nil)); err != nil || got.Settings != c.Settings {
			t.Errorf("fair %v: a command comes to be %+v, %v", fair, got, err)
		}
	}
}

func TestAWeightIsRestamped(t *testing.T) {
	w := pqueue.WeightOf(7, 1_700_000_000_000_000, 3, 9)
	if got := pqueue.Restamped(w, 1_800_000_000_000_001); got != pqueue.WeightOf(7, 1_800_000_000_000_001, 3, 9) {
		t.Errorf("restamped: %v", got)
	}
	if pqueue.StampOf(w) != 1_700_000_000_000_000 || pqueue.PriorityOf(w) != 7 {
		t.Errorf("of a weight: stamp %d, priority %d", pqueue.StampOf(w), pqueue.PriorityOf(w))
	}
}
