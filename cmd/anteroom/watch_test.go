package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// swapped is a file as Kubernetes mounts it: a link into a directory that is itself
// a link, which is turned to another directory at once.
type swapped struct {
	t   *testing.T
	dir string
	n   int
}

func (s *swapped) file() string { return filepath.Join(s.dir, "anteroom.yaml") }

func (s *swapped) swap(body string) {
	s.t.Helper()
	s.n++
	next := filepath.Join(s.dir, "..version-"+string(rune('0'+s.n)))
	steps := []error{
		os.Mkdir(next, 0o755),
		os.WriteFile(filepath.Join(next, "anteroom.yaml"), []byte(body), 0o644),
		os.Symlink(next, filepath.Join(s.dir, "..data_tmp")),
		os.Rename(filepath.Join(s.dir, "..data_tmp"), filepath.Join(s.dir, "..data")),
	}
	if s.n == 1 {
		steps = append(steps, os.Symlink("..data/anteroom.yaml", s.file()))
	}
	for _, err := range steps {
		if err != nil {
			s.t.Fatal(err)
		}
	}
}

func TestAWatchedFileIsTakenInOnceForEachChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &swapped{t: t, dir: t.TempDir()}
		s.swap("one")
		w := newWatcher(s.file())
		var took []string
		var serving atomic.Bool
		serving.Store(true)
		go w.run(t.Context(), serving.Load, func() {
			b, _ := os.ReadFile(s.file())
			took = append(took, string(b))
		}, slog.New(slog.DiscardHandler))
		looks := func(want ...string) {
			t.Helper()
			time.Sleep(10 * watchEvery)
			synctest.Wait()
			if len(took) != len(want) || len(want) > 0 && took[len(took)-1] != want[len(want)-1] {
				t.Fatalf("took in %q, want %q", took, want)
			}
		}
		looks()
		s.swap("two")
		looks("two")
		if err := os.Remove(s.file()); err != nil {
			t.Fatal(err)
		}
		looks("two")
		serving.Store(false)
		if err := os.WriteFile(s.file(), []byte("three"), 0o644); err != nil {
			t.Fatal(err)
		}
		looks("two")
		serving.Store(true)
		looks("two", "three")
	})
}

func TestWhatIsHalfWrittenIsNoChange(t *testing.T) {
	name := filepath.Join(t.TempDir(), "anteroom.yaml")
	write := func(body string) {
		if err := os.WriteFile(name, []byte(body), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("rooms: [one]")
	w := newWatcher(name)
	for i, look := range []struct {
		body string
		want bool
	}{{"rooms: [one]", false}, {"rooms: [", false}, {"rooms: [two]", false}, {"rooms: [two]", true}} {
		if write(look.body); w.changed() != look.want {
			t.Errorf("look %d at %q: changed is %v", i+1, look.body, !look.want)
		}
	}
}

// A pod may be replaced before it has seen the change: the next one takes it in. One that is merely
// restarted takes in nothing, and what operators have changed meanwhile stays.
func TestAChangeWhileTheNodeWasDownIsAChange(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	name := filepath.Join(t.TempDir(), "anteroom.yaml")
	for i, life := range []struct {
		body string
		want bool
	}{{"one", false}, {"one", false}, {"two", true}, {"two", false}} {
		if err := os.WriteFile(name, []byte(life.body), 0o644); err != nil {
			t.Fatal(err)
		}
		w := newWatcher(name)
		if err := w.remember(data); err != nil {
			t.Fatal(err)
		}
		if got := w.changed(); got != life.want {
			t.Errorf("life %d, with %q: changed is %v, want %v", i+1, life.body, got, life.want)
		} else if got {
			if err := w.take(); err != nil {
				t.Fatal(err)
			}
		}
	}
}
