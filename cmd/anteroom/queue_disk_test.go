package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anteroom/anteroom/internal/replog"
)

// noState is a state machine that keeps nothing.
type noState struct{}

func (noState) Apply(commands [][]byte) ([][]byte, error) { return make([][]byte, len(commands)), nil }
func (noState) Snapshot() []byte                          { return nil }
func (noState) Restore([]byte) error                      { return nil }
func (noState) Size() int64                               { return 0 }

// aLog runs a durable log with so many commands, each of 1 KiB, in the data of a node
// until stop is called.
func aLog(t *testing.T, data string, commands int) (stop func()) {
	t.Helper()
	leads := make(chan bool, 8)
	l, err := replog.Open(replog.Config{Dir: filepath.Join(data, "queues", "durable"), Note: filepath.Join(data, "queues-durable"), Node: "n1", Machine: noState{}, Leads: func(l bool) { leads <- l }})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() { over <- l.Run(ctx) }()
	<-leads
	for range commands {
		done := make(chan error, 1)
		l.Propose([]byte(strings.Repeat("x", 1024)), true, func(_ []byte, err error) { done <- err })
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	return func() {
		cancel()
		if err := <-over; !errors.Is(err, context.Canceled) {
			t.Errorf("Run = %v", err)
		}
	}
}

func TestQueueVerifyAndRecoverSayWhatIsGone(t *testing.T) {
	data := t.TempDir()
	ask := func(args ...string) (string, string) {
		var out strings.Builder
		err := run(t.Context(), append([]string{"queue"}, append(args, "--data", data)...), &out, &out)
		if err == nil {
			return out.String(), ""
		}
		return out.String(), err.Error()
	}
	expect := func(what, got string, want ...string) {
		t.Helper()
		for _, w := range want {
			if !strings.Contains(got, w) {
				t.Errorf("%s: %q, without %q", what, got, w)
			}
		}
	}
	stop := aLog(t, data, 20)
	out, err := ask("verify")
	expect("a log that runs", out, "durable: sound: durable queues of n1, which runs, entries 1 to ")
	if err != "" {
		t.Error(err)
	}
	_, err = ask("recover", "--accept-loss")
	expect("recover of a log that runs", err, "another process is using it")
	stop()
	out, err = ask("verify")
	expect("a log that is stopped", out, "durable: sound: durable queues of n1, entries 1 to ")
	if err != "" {
		t.Error(err)
	}
	out, _ = ask("recover", "--accept-loss")
	expect("recover of a sound log", out, "sound, so nothing was changed")
	out, err = ask("recover", "--accept-loss", "--last-replica")
	if out != "" || err != "" {
		t.Errorf("--last-replica does something to a durable log: %s %s", out, err)
	}

	all, _ := filepath.Glob(filepath.Join(data, "queues", "durable", "log", "*.wal"))
	if len(all) != 1 {
		t.Fatal(all)
	}
	b, failed := os.ReadFile(all[0])
	if failed == nil {
		clear(b[10_000:10_512])
		failed = os.WriteFile(all[0], b, 0o600)
	}
	if failed != nil {
		t.Fatal(failed)
	}
	out, err = ask("verify")
	expect("a damaged log", out, "durable: DAMAGED: "+all[0], "at most entries ", " of the log are lost")
	expect("a damaged log", err, "a log is damaged; ", "anteroom queue recover --data "+data+" --accept-loss")
	_, err = ask("recover")
	expect("recover without a word", err, "without --accept-loss nothing is done")
	out, err = ask("recover", "--accept-loss")
	expect("recover", out, all[0], "at most entries ", "Kept up to entry ", "The files as they were: "+filepath.Join(data, "queues", "durable", "log.damaged-1"))
	if err != "" {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(data, "queues", "durable", "log.damaged-1")); err != nil {
		t.Error(err)
	}
	if out, err = ask("verify"); err != "" {
		t.Errorf("after recover: %s %s", out, err)
	}
	aLog(t, data, 1)()

	if err := os.RemoveAll(filepath.Join(data, "queues")); err != nil {
		t.Fatal(err)
	}
	out, err = ask("verify")
	expect("a log that is gone", out, "durable: DAMAGED: ", "durable is damaged: it is gone, and "+filepath.Join(data, "queues-durable")+" says that there was a log in it")
	expect("a log that is gone", err, "anteroom queue recover --data "+data+" --accept-loss")
	out, err = ask("recover", "--accept-loss")
	expect("recover of a log that is gone", out, "it is gone", "Nothing of it could be kept.")
	if err != "" {
		t.Error(err)
	}
	aLog(t, data, 1)()
}
