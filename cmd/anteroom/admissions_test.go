package main

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anteroom/anteroom/internal/history"
)

func TestAdmissionLogGoesOnAfterACrash(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a.jsonl")
	for _, begun := range []string{"", `{"at":1,"node":"a","event":"called"}` + "\n", `{"at":1}` + "\n" + `{"at":60,"ev`, `{"a`} {
		if err := os.WriteFile(name, []byte(begun), 0o600); err != nil {
			t.Fatal(err)
		}
		a, err := openAdmissions(name, admissionsKept{}, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatalf("after %q: %v", begun, err)
		}
		for i := range 100 {
			a.write(history.Entry{At: int64(100 + i), Event: history.Called, Room: "shop"})
		}
		a.close()
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		var got []history.Entry
		err = history.Read(f, func(e history.Entry) { got = append(got, e) })
		_ = f.Close()
		if want := 100 + strings.Count(begun, "\n"); err != nil || len(got) != want || got[len(got)-1].At != 199 {
			t.Errorf("after %q: %d lines, %v; want %d", begun, len(got), err, want)
		}
	}
}

func TestAdmissionLogWritesIntoNoOtherFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "shop.yaml")
	if err := os.WriteFile(name, []byte("node: {id: a}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := openAdmissions(name, admissionsKept{}, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "shop.yaml") {
		t.Errorf("%v; want an error that names the file", err)
	}
	if b, err := os.ReadFile(name); string(b) != "node: {id: a}" || err != nil {
		t.Errorf("the file is %q now, %v", b, err)
	}
}

// A disk that takes nothing holds up nobody, and the log tells how much it lacks.
func TestAdmissionLogDoesNotWaitForTheDisk(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	var told bytes.Buffer
	a := &admissionLog{out: w, log: slog.New(slog.NewTextHandler(&told, nil)), entries: make(chan history.Entry, 4), done: make(chan struct{})}
	for range 10 {
		a.write(history.Entry{}) // nobody writes it down: or the test hangs
	}
	go a.run()
	read := make(chan int)
	go func() {
		n := 0
		_ = history.Read(r, func(history.Entry) { n++ })
		read <- n
	}()
	a.close()
	if n := <-read; n != 4 || !strings.Contains(told.String(), "lines=6") {
		t.Errorf("%d lines written, want 4; the log says %q, want 6 lines missing", n, told.String())
	}
}

// A file that has grown large is packed and put aside, and one that is too old is
// removed; report reads them all.
func TestAdmissionLogsArePackedAndPutAside(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "a.jsonl")
	old := filepath.Join(dir, "a-2020-01-01T00-00-00.000-size.jsonl.gz")
	if err := os.WriteFile(old, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	a, err := openAdmissions(name, admissionsKept{size: 1, days: 32}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	const lines = 10_000 // 1.2 MB
	for i := range lines {
		a.write(history.Entry{At: int64(i), Event: history.Called, Room: "shop", Node: "node-1", Ticket: strings.Repeat("0", 32)})
	}
	a.close()
	files, err := filepath.Glob(filepath.Join(dir, "a*.jsonl*"))
	if err != nil || len(files) != 2 || !strings.HasSuffix(files[0], "-size.jsonl.gz") || files[1] != name {
		t.Fatalf("%v, %v: want one that is packed, and the one that is written", files, err)
	}
	seen := make(map[int64]bool)
	for _, file := range files {
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, mode %v", file, err, info.Mode())
		}
		if err := readAdmissions(file, func(e history.Entry) { seen[e.At] = true }); err != nil {
			t.Fatal(err)
		}
	}
	if len(seen) != lines {
		t.Errorf("%d of %d lines are there", len(seen), lines)
	}
}
