package verifydraw

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/history"
)

const start = 1_800_000_000_000_000

func seed() (s [32]byte) { return sha256.Sum256([]byte("a seed")) }

// turns is an admission log in which n people have their turn by the draw.
func turns(n int) (log []history.Entry) {
	for i := range n {
		id := sha256.Sum256([]byte{byte(i)})
		ticket := [16]byte(id[:16])
		log = append(log, history.Entry{
			At: start + 1, Node: "node-1", Line: start - 2e9, Event: history.Entitled, Room: "shop", Ticket: hex.EncodeToString(ticket[:]), ID: hex.EncodeToString(ticket[:]),
			Joined: start - 1 - uint64(i), Stamp: eviction.Shuffled(seed(), start, ticket),
		})
	}
	slices.SortFunc(log, func(a, b history.Entry) int { return int(int64(a.Stamp) - int64(b.Stamp)) })
	for i := range log {
		log[i].Epoch = uint64(1 + i/3)
	}
	return log
}

// busy is the log of a cluster with five rooms, some with an event at the same time,
// that was stopped and started again in the middle of the draw: turns, by the draw
// of the shop, are its, and one of them came back late.
func busy(n int) (log []history.Entry) {
	log = turns(n)
	for i, e := range log {
		if i < n/2 {
			continue
		}
		log[i].Line, log[i].Epoch, log[i].At = start+3e6, e.Epoch-uint64(n/6), start+4e6
	}
	late := log[1]
	late.Line, late.Epoch, late.At = start+3e6, 900, start+6e6
	parked := late
	parked.Event, parked.At, parked.Line, parked.Epoch, parked.Stamp, parked.ID = history.Parked, start-5, 0, 0, 0, ""
	log = append([]history.Entry{parked}, append(append(log[:1:1], log[2:]...), late)...)
	again := log[1] // its second home gave it a turn once more
	again.Line, again.Epoch, again.At = start+3e6, 901, start+7e6
	log = append(log, again)

	for _, room := range []string{"museum", "desk", "lottery", "stage"} {
		for i, e := range turns(7) {
			id := sha256.Sum256([]byte{byte(i), room[0]})
			e.Room, e.Node, e.Ticket, e.ID = room, "node-2", hex.EncodeToString(id[:16]), hex.EncodeToString(id[:16])
			e.Stamp = e.Joined // first come, first served, or by a draw of its own
			if room == "lottery" {
				e.Stamp = uint64(i) << 40
			}
			log = append(log, e)
		}
	}
	early := log[len(log)-1] // somebody of the shop, before the doors were shut for the event
	early.Room, early.Ticket, early.Joined, early.Stamp, early.At = "shop", strings.Repeat("0e", 16), start-9e9, start-9e9, start-9e9+5
	early.ID, early.Node = early.Ticket, "node-3"
	return append(log, early)
}

// verify runs the script for the third in the draw and returns what it says.
func verify(t *testing.T, of []history.Entry, change func(draw map[string]any), more ...string) (out string, ok bool) {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("NOT RUN: there is no python3")
	}
	s := seed()
	commitment := sha256.Sum256(s[:])
	draw := map[string]any{
		"event": "sale", "start": start, "seed": hex.EncodeToString(s[:]), "commitment": hex.EncodeToString(commitment[:]),
		"ticket": of[2].Ticket, "key": eviction.Shuffled(s, start, id(t, of[2].Ticket)),
	}
	change(draw)
	dir := t.TempDir()
	b, err := json.Marshal(map[string]any{"draw": draw})
	if err != nil {
		t.Fatal(err)
	}
	lines := ""
	for _, e := range of {
		l, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		lines += string(l) + "\n"
	}
	lines += `{"at":18000000` // the node was killed
	one, log := filepath.Join(dir, "draw.json"), filepath.Join(dir, "admissions.jsonl")
	for name, text := range map[string]string{one: string(b), log: lines} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	said, err := exec.CommandContext(t.Context(), python, append([]string{"verify_draw.py", one, log}, more...)...).CombinedOutput()
	return string(said), err == nil
}

func id(t *testing.T, text string) [16]byte {
	t.Helper()
	b, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return [16]byte(b)
}

func TestTheScriptTellsAGoodDrawFromABadOne(t *testing.T) {
	s := seed()
	commitment := sha256.Sum256(s[:])
	shown := hex.EncodeToString(commitment[:])
	honest := func(map[string]any) {}
	stranger := func(d map[string]any) {
		d["ticket"], d["key"] = strings.Repeat("5a", 16), eviction.Shuffled(s, start, [16]byte(bytes.Repeat([]byte{0x5a}, 16)))
	}
	swapped := turns(20)
	swapped[4].Epoch, swapped[12].Epoch = swapped[12].Epoch, swapped[4].Epoch
	forged := turns(20)
	forged[7].Stamp++
	hidden := turns(20) // somebody was put forward, and their turn is said to have been before the draw
	hidden[12].Epoch, hidden[12].At = 1, start-1e9
	delayed, among := turns(20), busy(20)
	delayed[5].At += 60e6
	among[9].Epoch, among[12].Epoch = among[12].Epoch, among[9].Epoch
	for _, c := range []struct {
		name   string
		log    []history.Entry
		change func(map[string]any)
		shown  string
		want   string // of what is said; empty: all is good
	}{
		{"honest", turns(20), honest, shown, ""},
		{"another seed", turns(20), func(d map[string]any) { d["seed"] = strings.Repeat("ab", 32) }, shown, "BAD:  the seed"},
		{"another key", turns(20), func(d map[string]any) { d["key"] = 7 }, shown, "BAD:  your key"},
		{"another commitment", turns(20), honest, strings.Repeat("cd", 32), "BAD:  the commitment"},
		{"somebody was put forward", swapped, honest, shown, "BAD:  nobody had a turn"},
		{"a turn by another key", forged, honest, shown, "BAD:  20 turns"},
		{"five rooms and a restart", busy(20), honest, shown, ""},
		{"the same, and somebody was put forward", among, honest, shown, "BAD:  nobody had a turn"},
		{"a turn that was not in the draw", hidden, honest, shown, "BAD:  the times in the log"},
		{"another time", delayed, honest, shown, "BAD:  the times in the log"},
		{"a log of others", turns(20), stranger, shown, "BAD:  your ticket is not in the log"},
	} {
		out, ok := verify(t, c.log, c.change, c.shown)
		if ok != (c.want == "") || !strings.Contains(out, c.want) {
			t.Errorf("%s: %v, want %q:\n%s", c.name, ok, c.want, out)
		}
		if c.want == "" && !strings.Contains(out, "you were number 3 of 20") {
			t.Errorf("%s: it does not say where:\n%s", c.name, out)
		}
	}
}
