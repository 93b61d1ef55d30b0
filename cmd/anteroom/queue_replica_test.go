package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/replog"
	"github.com/anteroom/anteroom/proto/auth"
	"github.com/anteroom/anteroom/qpid"
)

// listed is a state machine that lists its commands.
type listed struct {
	noState
	mu  sync.Mutex
	all []string
}

func (s *listed) Apply(commands [][]byte) ([][]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range commands {
		s.all = append(s.all, string(c))
	}
	return make([][]byte, len(commands)), nil
}

func (s *listed) has(want []string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Equal(slices.Compact(slices.Clone(s.all)), want) // one that had no answer is put again
}

// replica is a node's copy of a replicated log, on a loopback port.
type replica struct {
	*replog.Log
	state *listed
	self  eviction.Member
	at    string
	stop  func()
}

func aReplica(t *testing.T, data string, self eviction.Member, policy auth.Policy) *replica {
	t.Helper()
	r := &replica{state: &listed{}, self: self}
	var err error
	r.Log, err = replog.Open(replog.Config{
		Dir: filepath.Join(data, "queues", "replicated"), Node: self.Name, Machine: r.state, Leads: func(bool) {},
		Group: &replog.Group{Self: self, Replicas: 2, Founders: 3, Policy: policy, Pace: 50 * time.Millisecond, Election: 500 * time.Millisecond},
	})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.at = l.Addr().String()
	server := grpc.NewServer(grpc.Creds(policy.Server()))
	r.Register(server)
	go func() { _ = server.Serve(l) }()
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() { over <- r.Run(ctx) }()
	r.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-over; !errors.Is(err, context.Canceled) {
			t.Errorf("Run = %v", err)
		}
		server.Stop()
	})
	t.Cleanup(r.stop)
	return r
}

// meet tells all replicas of each other.
func meet(all ...*replica) {
	members := map[eviction.Member]string{}
	for _, r := range all {
		members[r.self] = r.at
	}
	for _, r := range all {
		r.SetMembers(members)
	}
}

// soon waits for what other goroutines bring about.
func soon(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("still not: %s", what)
		}
	}
}

// put puts a command into the log of whoever leads.
func put(t *testing.T, command string, all ...*replica) {
	t.Helper()
	soon(t, command+" is put", func() bool {
		for _, r := range all {
			done := make(chan error, 1)
			r.Propose([]byte(command), true, func(_ []byte, err error) { done <- err })
			if <-done == nil {
				return true
			}
		}
		return false
	})
}

// The disks of two of three replicas are gone for good: the queues go on from the copy
// that is left, and from no other without a word.
func TestQueueRecoverGoesOnFromTheLastReplica(t *testing.T) {
	t.Parallel()
	policy, err := auth.GossipKey([]byte("the key of a test"))
	if err != nil {
		t.Fatal(err)
	}
	var nodes []*replica
	data := map[qpid.NodeID]string{}
	for _, name := range []qpid.NodeID{"n1", "n2", "n3"} {
		data[name] = t.TempDir()
		nodes = append(nodes, aReplica(t, data[name], eviction.Member{Name: name, Boot: 1}, policy))
	}
	meet(nodes...)
	var want []string
	for i := range 8 {
		want = append(want, fmt.Sprint("command ", i))
		put(t, want[i], nodes...)
	}
	for _, r := range nodes {
		soon(t, "all have all", func() bool { return r.state.has(want) })
	}
	ask := func(args ...string) (string, string) {
		var out strings.Builder
		err := run(t.Context(), append([]string{"queue"}, append(args, "--data", data["n2"])...), &out, &out)
		return out.String(), fmt.Sprint(err)
	}
	expect := func(what, got string, want ...string) {
		t.Helper()
		for _, w := range want {
			if !strings.Contains(got, w) {
				t.Errorf("%s: %q, without %q", what, got, w)
			}
		}
	}
	_, failed := ask("recover", "--accept-loss", "--last-replica")
	expect("of a log that runs", failed, "another process is using it")
	for _, r := range nodes {
		r.stop()
	}
	out, failed := ask("verify")
	expect("stopped", out+failed, "replicated: sound: replicated queues of n2, entries 1 to ", "<nil>")
	_, failed = ask("recover", "--last-replica")
	expect("without a word", failed, "without --accept-loss nothing is done")

	dir := filepath.Join(data["n2"], "queues", "replicated")
	out, failed = ask("recover", "--accept-loss", "--last-replica")
	expect("of a sound copy", out+failed, dir+": goes on from this copy alone, which ends with entry ", "move their directories of replicated queues away", "<nil>")
	alone := aReplica(t, data["n2"], eviction.Member{Name: "n2", Boot: 2}, policy)
	meet(alone)
	soon(t, "it has all that was acknowledged", func() bool { return alone.state.has(want) })
	alone.stop()

	hurt := hurtLast(t, filepath.Join(dir, "log"), want[len(want)-1])
	_, failed = ask("recover", "--accept-loss")
	expect("a damaged copy", failed, "recover the best copy that is left with --last-replica")
	out, failed = ask("recover", "--accept-loss", "--last-replica")
	expect("a damaged copy", out+failed, hurt, "at most entries ", "Kept up to entry ", "log.damaged-1", "goes on from this copy alone", "<nil>")
	if out, failed = ask("verify"); failed != "<nil>" {
		t.Errorf("after that: %s %s", out, failed)
	}
	rest := aReplica(t, data["n2"], eviction.Member{Name: "n2", Boot: 3}, policy)
	meet(rest)
	soon(t, "it has what came before the damage", func() bool { return rest.state.has(want[:len(want)-1]) })
}

// hurtLast turns a bit of a command in a log, and returns the file.
func hurtLast(t *testing.T, dir, command string) string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, "*.wal"))
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	b, err := os.ReadFile(all[0])
	at := strings.Index(string(b), command)
	if err != nil || at < 0 {
		t.Fatalf("%s is not in %s: %v", command, all[0], err)
	}
	b[at] ^= 1
	if err := os.WriteFile(all[0], b, 0o600); err != nil {
		t.Fatal(err)
	}
	return all[0]
}
