package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/store"
	"github.com/anteroom/anteroom/qpid"
)

// party is a node as far as its settings go.
type party struct {
	*clusterSettings
	member  eviction.Member
	log     bytes.Buffer
	inWave  bool
	taken   []eviction.Config
	refuses error // of the core
	renewed int
}

func newParty(t *testing.T, name string, lease time.Duration, adopts bool) *party {
	t.Helper()
	p := &party{member: eviction.Member{Name: qpid.NodeID(name), Boot: 1}}
	p.clusterSettings = &clusterSettings{
		self: p.member.Name, log: slog.New(slog.NewTextHandler(&p.log, nil)), c: eviction.Config{Lease: lease}.WithDefaults(),
		standing: given, adopts: adopts, differ: map[eviction.Member]string{},
		wave: func() bool { return p.inWave },
		take: func(c eviction.Config) error {
			if p.refuses == nil {
				p.taken = append(p.taken, c)
			}
			return p.refuses
		},
		then: func() { p.renewed++ },
	}
	if adopts {
		p.standing = byDefault
	}
	return p
}

// meets has p hear o's Hello.
func (p *party) meets(o *party) error { return p.Agree(o.member, o.Settings()) }

func everybody(eviction.Member) bool { return true }

func TestOtherSettingsAreRefusedInTheSameWordsAtBothNodes(t *testing.T) {
	a, b := newParty(t, "node-1", 0, false), newParty(t, "node-4", 0, false)
	b.c.Period = 2 * time.Second
	const want = "cluster.period is 200ms at node-1 and 2s at node-4; give all nodes the same `cluster:` settings"
	for range 3 { // as links try again
		for _, err := range []error{a.meets(b), b.meets(a)} {
			if err == nil || err.Error() != want {
				t.Errorf("%v; want %s", err, want)
			}
		}
	}
	for _, p := range []*party{a, b} {
		if n := strings.Count(p.log.String(), "level=WARN"); n != 1 {
			t.Errorf("%s has %d lines in the log, want one:\n%s", p.self, n, p.log.String())
		}
		if got := p.differing(everybody); got != want {
			t.Errorf("%s shows %q", p.self, got)
		}
	}
	b.c.Period, b.c.Fanout = a.c.Period, 3
	if err := a.meets(b); err == nil || !strings.HasSuffix(err.Error(), "and run the same version on all") {
		t.Errorf("with another fanout, which no file has: %v", err)
	}
	b.c = a.c
	if err := errors.Join(a.meets(b), b.meets(a)); err != nil || a.differing(everybody) != "" {
		t.Errorf("with the same: %v, and it still shows %q", err, a.differing(everybody))
	}
}

func TestMembersThatAreGoneAreForgotten(t *testing.T) {
	a, b := newParty(t, "a", 0, false), newParty(t, "b", 0, false)
	b.c.Fanout = 3
	if err := a.meets(b); err == nil || len(a.differ) != 1 {
		t.Errorf("%d kept", len(a.differ))
	}
	if got := a.differing(func(eviction.Member) bool { return false }); got != "" || len(a.differ) != 0 {
		t.Errorf("%q of a node that is gone; %d kept", got, len(a.differ))
	}
}

// Every setting counts, also one that is added later, and a missing one is its
// default: what an older version says is not different for that alone.
func TestEverySettingIsCompared(t *testing.T) {
	fields := reflect.TypeFor[eviction.Config]()
	for i := range fields.NumField() {
		a, b := newParty(t, "a", 0, false), newParty(t, "b", 0, false)
		f := reflect.ValueOf(&b.c).Elem().Field(i)
		f.SetInt(f.Int() + 1)
		if paces(fields.Field(i).Name) {
			f.SetInt(int64(150 * time.Millisecond))
			if err := errors.Join(a.meets(b), b.meets(a)); err != nil || a.differing(everybody) != "" {
				t.Errorf("with another %s, which nobody reckons with: %v", fields.Field(i).Name, err)
			}
			b.c.Period, b.c.Urgent = time.Second, a.c.Urgent
			if err := a.meets(b); err == nil || !strings.HasPrefix(err.Error(), "cluster.period is 200ms at a and 1s at b;") {
				t.Errorf("with a period that the queues reckon with: %v", err)
			}
			continue
		}
		if agreedOn(fields.Field(i).Name) {
			for range 2 {
				if err := errors.Join(a.meets(b), b.meets(a)); err != nil || a.differing(everybody) != "" {
					t.Errorf("with another %s, which the waves agree on: %v", fields.Field(i).Name, err)
				}
			}
			if n := strings.Count(a.log.String(), "a node has other settings"); n != 1 || !strings.Contains(a.log.String(), keyOf(fields.Field(i).Name)+" is ") {
				t.Errorf("the log says %s", a.log.String())
			}
			continue
		}
		if err := a.meets(b); err == nil || !strings.HasPrefix(err.Error(), keyOf(fields.Field(i).Name)+" is ") {
			t.Errorf("with another %s: %v", fields.Field(i).Name, err)
		}
	}
	a := newParty(t, "a", 0, false)
	if err := a.Agree(eviction.Member{Name: "old"}, []byte(`{"settings":{"Lease":10000000000}}`)); err != nil {
		t.Errorf("with the lease alone: %v", err)
	}
	for _, nonsense := range []string{"", "x", `{"settings":7}`} {
		if err := a.Agree(eviction.Member{Name: "old"}, []byte(nonsense)); err == nil || !strings.HasPrefix(err.Error(), "old does not say") {
			t.Errorf("settings %q: %v", nonsense, err)
		}
	}
}

func TestWhoTakesOverWhoseSettings(t *testing.T) {
	for name, test := range map[string]struct {
		change func(ours, theirs *party)
		adopts bool
	}{
		"a node without settings those of one that has some": {func(_, _ *party) {}, true},
		"and those of a cluster":                             {func(_, theirs *party) { theirs.inWave = true }, true},
		"what was kept from an earlier life gives way":       {func(ours, _ *party) { ours.standing = kept }, true},
		"but not to the defaults of nobody":                  {func(_, theirs *party) { theirs.standing, theirs.adopts = byDefault, true }, false},
		"what was taken from a stray gives way to a cluster's": {func(ours, theirs *party) {
			ours.standing, theirs.inWave = given, true
		}, true},
		"and not the other way round":  {func(ours, _ *party) { ours.standing = inForce }, false},
		"nor after a wave":             {func(ours, theirs *party) { ours.inWave, theirs.inWave = true, true }, false},
		"nor one that has settings":    {func(ours, theirs *party) { ours.adopts, theirs.inWave = false, true }, false},
		"nor if the core has objected": {func(ours, _ *party) { ours.refuses = eviction.ErrSettled }, false},
	} {
		ours, theirs := newParty(t, "x", 0, true), newParty(t, "a", 5*time.Second, false)
		test.change(ours, theirs)
		err := ours.meets(theirs)
		took := err == nil && ours.now() == theirs.now() && len(ours.taken) == 1 && ours.taken[0] == theirs.now() && ours.renewed == 1
		left := ours.now().Lease == 10*time.Second && len(ours.taken) == 0 && ours.renewed == 0
		if took == left || took != test.adopts {
			t.Errorf("%s: %v, lease %v, taken %v", name, err, ours.now().Lease, ours.taken)
		}
		if told := strings.Contains(ours.log.String(), `msg="taking over the cluster's settings" from=a.1 period=200ms lease=5s`); told != test.adopts {
			t.Errorf("%s: the log says %s", name, ours.log.String())
		}
	}
}

// The node that is asked first is no alarm: the other one has only to hear ours.
func TestNodeThatWillTakeOverOursIsNoAlarm(t *testing.T) {
	a, x := newParty(t, "a", 5*time.Second, false), newParty(t, "x", 0, true)
	if err := a.meets(x); err == nil || !strings.Contains(err.Error(), "first takes over") {
		t.Errorf("%v; want that x is to take over the settings first", err)
	}
	if a.log.Len() > 0 || a.differing(everybody) != "" {
		t.Errorf("an alarm: %s", a.log.String())
	}
	if err := errors.Join(x.meets(a), a.meets(x)); err != nil {
		t.Errorf("then: %v", err)
	}
}

// A node that is back from a restart before those who gave it the settings must
// not run the cluster on others meanwhile.
func TestSettingsThatWereTakenOverAreKept(t *testing.T) {
	dir := t.TempDir()
	disk, err := store.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	x, a := newParty(t, "x", 0, true), newParty(t, "a", 5*time.Second, false)
	x.disk = disk
	if err := errors.Join(x.load(), x.meets(a)); err != nil {
		t.Fatal(err)
	}
	again := newPartyAt(t, disk)
	if err := again.load(); err != nil || again.now() != a.now() || again.standing != kept {
		t.Errorf("after a restart: %v, lease %v", err, again.now().Lease)
	}
	own := newParty(t, "x", 7*time.Second, false)
	own.disk = disk
	if err := own.load(); err != nil || own.now().Lease != 7*time.Second {
		t.Errorf("with settings of its own: %v, lease %v", err, own.now().Lease)
	}

	// Those that the core refuses are not kept.
	b := newParty(t, "b", 6*time.Second, false)
	again.refuses = eviction.ErrSettled
	if err := again.meets(b); err == nil {
		t.Error("taken over against the core's will")
	}
	var c eviction.Config
	if text, err := os.ReadFile(disk.Path(settingsOnDisk)); err != nil || json.Unmarshal(text, &c) != nil || c != a.now() {
		t.Errorf("on disk: %s, %v; want those of a", text, err)
	}

	if err := os.WriteFile(disk.Path(settingsOnDisk), []byte(`{"Lease":1}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := newPartyAt(t, disk).load(); err == nil || !strings.Contains(err.Error(), "cluster.json") || !strings.Contains(err.Error(), "remove the file") {
		t.Errorf("a damaged file: %v", err)
	}
}

func newPartyAt(t *testing.T, disk *store.Store) *party {
	p := newParty(t, "x", 0, true)
	p.disk = disk
	return p
}

// What cannot be kept is not taken over.
func TestSettingsThatCannotBeKeptAreNotTakenOver(t *testing.T) {
	dir := t.TempDir()
	disk, err := store.Open(dir)
	if err == nil {
		err = os.RemoveAll(dir)
	}
	if err != nil {
		t.Fatal(err)
	}
	x := newPartyAt(t, disk)
	if err := x.meets(newParty(t, "a", 5*time.Second, false)); err == nil || !strings.Contains(err.Error(), "x cannot keep") || len(x.taken) != 0 {
		t.Errorf("%v, taken %v", err, x.taken)
	}
}
