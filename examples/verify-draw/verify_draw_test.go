package verifydraw

import (
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
			At: start + 1, Event: history.Entitled, Room: "shop", Ticket: hex.EncodeToString(ticket[:]), ID: hex.EncodeToString(ticket[:]),
			Joined: start - 1 - uint64(i), Stamp: eviction.Shuffled(seed(), start, ticket),
		})
	}
	slices.SortFunc(log, func(a, b history.Entry) int { return int(int64(a.Stamp) - int64(b.Stamp)) })
	for i := range log {
		log[i].Epoch = uint64(1 + i/3)
	}
	return log
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
	swapped := turns(20)
	swapped[4].Epoch, swapped[12].Epoch = swapped[12].Epoch, swapped[4].Epoch
	forged := turns(20)
	forged[7].Stamp++
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
