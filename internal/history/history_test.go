package history_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/anteroom/anteroom/internal/history"
	"github.com/anteroom/anteroom/internal/node"
	"github.com/anteroom/anteroom/qpid"
)

func at(us int64, e node.Event, joined uint64, epoch uint64) history.Entry {
	w := qpid.Weight{Stamp: joined, ID: qpid.ItemID{byte(joined)}}
	return history.Of(us, "a", node.Admission{Event: e, Room: "shop", Weight: w, Epoch: epoch, Key: w})
}

// Three people are entitled in the order 1, 3, 2.
func lines() []history.Entry {
	return []history.Entry{
		at(10, node.Entitled, 1, 5), at(11, node.CalledIn, 1, 0), at(12, node.AdmittedQ, 1, 0),
		at(20, node.Entitled, 3, 6), at(21, node.CalledIn, 3, 0),
		at(30, node.Entitled, 2, 7), at(31, node.CalledIn, 2, 0),
		at(40, node.Entitled, 4, 8), // never called
		at(50, node.AdmittedO, 5, 8),
	}
}

func TestLogTellsTheSameAsTheBook(t *testing.T) {
	direct, read := history.NewBook(100), history.NewBook(100)
	var log bytes.Buffer
	for _, e := range lines() {
		direct.Add(e)
		if err := json.NewEncoder(&log).Encode(e); err != nil {
			t.Fatal(err)
		}
	}
	log.WriteString(`{"at":60,"ev`) // cut short by a crash
	if err := history.Read(&log, read.Add); err != nil {
		t.Fatal(err)
	}
	got := read.Report("shop", 0)
	if got != direct.Report("shop", 0) || got != read.Report("", 0) {
		t.Errorf("read %+v, wrote %+v", got, direct.Report("shop", 0))
	}
	if got.N != 3 || got.OpenAdmissions != 1 || got.DiscordantPairs != 1 || got.MaxOvertakenBy != 1 {
		t.Errorf("%+v; want three who queued, one pair turned, one who walked in", got)
	}
}

// Logs of several nodes may be read in any order: the first entitlement counts.
func TestOrderOfLinesDoesNotMatter(t *testing.T) {
	forth, back := history.NewBook(100), history.NewBook(100)
	all := append(lines(), at(70, node.Entitled, 1, 9), at(71, node.CalledIn, 1, 0)) // taken over and called again
	for i := range all {
		forth.Add(all[i])
		back.Add(all[len(all)-1-i])
	}
	if forth.Report("shop", 0) != back.Report("shop", 0) {
		t.Errorf("forth %+v, back %+v", forth.Report("shop", 0), back.Report("shop", 0))
	}
}

func TestBookForgetsTheFirst(t *testing.T) {
	b := history.NewBook(2)
	for _, e := range lines() {
		b.Add(e)
	}
	if r := b.Report("", 0); r.N+r.OpenAdmissions != 1 {
		t.Errorf("%d people in a book of two, one of whom was never called", r.N+r.OpenAdmissions)
	}
}

func TestWhatIsNoLogIsRefused(t *testing.T) {
	err := history.Read(strings.NewReader("{}\nhello\n"), func(history.Entry) {})
	if err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("%v; want line 2 named", err)
	}
}

// A cluster that is founded anew counts its waves from 1; whoever it entitles
// comes after all that the old one did.
func TestFoundingAnewDoesNotTurnTheOrder(t *testing.T) {
	b := history.NewBook(10)
	for _, e := range []history.Entry{
		at(10, node.Entitled, 1, 900), at(11, node.CalledIn, 1, 0),
		at(90, node.Entitled, 2, 3), at(91, node.CalledIn, 2, 0),
	} {
		if e.Epoch == 3 {
			e.Line = 50
		}
		b.Add(e)
	}
	if r := b.Report("shop", 0); r.N != 2 || r.DiscordantPairs != 0 {
		t.Errorf("%d people, %d pairs turned; want 2 and none", r.N, r.DiscordantPairs)
	}
}

// A room that is crowded and one that is not are two lines: nobody in the one
// is overtaken by people of the other.
func TestOverAllRoomsOnlyTheOrderWithinEachCounts(t *testing.T) {
	b := history.NewBook(10)
	for _, e := range []history.Entry{
		at(20, node.Entitled, 2, 5), at(21, node.CalledIn, 2, 0), at(90, node.Entitled, 1, 9), at(91, node.CalledIn, 1, 0),
		at(30, node.Entitled, 3, 6), at(31, node.CalledIn, 3, 0),
	} {
		if e.Epoch == 9 || e.At == 91 {
			e.Room = "crowded"
		}
		b.Add(e)
	}
	if r := b.Report("", 0); r.N != 3 || r.DiscordantPairs != 0 || r.KendallTau != 0 || r.MaxOvertakenBy != 0 {
		t.Errorf("%+v; want three people and no pair turned", r)
	}
	b.Add(at(10, node.Entitled, 3, 1)) // earlier than all, and than the second of its room
	if r := b.Report("", 0); r.DiscordantPairs != 1 || r.KendallTau != 1 || r.MaxOvertakenBy != 1 {
		t.Errorf("%+v; want the one pair of the room turned", r)
	}
}

func TestEachEventHasItsName(t *testing.T) {
	want := []string{history.Entitled, history.Called, history.Admitted, history.Open, history.Parked, history.Ended, history.TookOver, history.Dropped, history.Through, history.Given, history.Anew, history.Handed}
	for e := node.Entitled; e <= node.Restamped; e++ {
		if got := history.Of(0, "n", node.Admission{Event: e}).Event; got != want[e] {
			t.Errorf("event %d is %q, want %q", e, got, want[e])
		}
	}
}
