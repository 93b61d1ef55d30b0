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
		a, err := openAdmissions(name, slog.New(slog.DiscardHandler))
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
	if _, err := openAdmissions(name, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "shop.yaml") {
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
	a := &admissionLog{file: w, log: slog.New(slog.NewTextHandler(&told, nil)), entries: make(chan history.Entry, 4), done: make(chan struct{})}
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
