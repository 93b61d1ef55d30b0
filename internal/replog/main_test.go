package replog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/anteroom/anteroom/qpid"
)

func TestMain(m *testing.M) {
	if writer := os.Getenv(writerEnv); writer != "" {
		os.Exit(writeForever(writer))
	}
	goleak.VerifyTestMain(m)
}

// list is a state machine that lists its commands. The result of one is its place.
type list struct {
	mu       sync.Mutex
	commands [][]byte
	hold     chan struct{} // not nil: Apply waits for it to be closed
	busy     int           // calls under way, of which there must be one at most
	events   []bool        // of leadership
	overlap  bool
	knows    func(command []byte) error // nil: all
}

func (s *list) enter() func() {
	s.mu.Lock()
	s.busy++
	s.overlap = s.overlap || s.busy > 1
	s.mu.Unlock()
	return func() {
		s.mu.Lock()
		s.busy--
		s.mu.Unlock()
	}
}

func (s *list) Apply(commands [][]byte) ([][]byte, error) {
	defer s.enter()()
	s.mu.Lock()
	hold := s.hold
	s.mu.Unlock()
	if hold != nil {
		<-hold
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.knows != nil {
		for _, c := range commands {
			if err := s.knows(c); err != nil {
				return nil, err
			}
		}
	}
	results := make([][]byte, 0, len(commands))
	for _, c := range commands {
		s.commands = append(s.commands, bytes.Clone(c))
		results = append(results, fmt.Append(nil, len(s.commands)))
	}
	return results, nil
}

func (s *list) Snapshot() []byte {
	defer s.enter()()
	s.mu.Lock()
	defer s.mu.Unlock()
	text, _ := json.Marshal(s.commands)
	return text
}

func (s *list) Size() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	size := int64(0)
	for _, c := range s.commands {
		size += int64(len(c))
	}
	return size
}

func (s *list) Restore(text []byte) error {
	defer s.enter()()
	var commands [][]byte
	if err := json.Unmarshal(text, &commands); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.commands = commands
	return nil
}

func (s *list) leads(leads bool) {
	defer s.enter()()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, leads)
}

func (s *list) leading() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.events) > 0 && s.events[len(s.events)-1]
}

// texts returns the commands so far.
func (s *list) texts() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]string, 0, len(s.commands))
	for _, c := range s.commands {
		all = append(all, string(c))
	}
	return all
}

// check fails the test if calls overlapped or leadership was not told in turns.
func (s *list) check(t testing.TB) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.overlap {
		t.Error("calls of the state machine and of leads overlapped")
	}
	for i, leads := range s.events {
		if leads != (i%2 == 0) {
			t.Errorf("leadership was told as %v", s.events)
			break
		}
	}
}

// running is a log that runs.
type running struct {
	*Log
	state *list
	stop  func() error // ends it and returns what Run did
}

// start opens and runs a log with c, until the test is over or stop is called.
func start(t testing.TB, c Config) *running {
	t.Helper()
	state := &list{}
	if given, ok := c.Machine.(*list); ok {
		state = given
	}
	c.Machine, c.Leads = state, state.leads
	l, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	r := &running{Log: l, state: state}
	ctx, cancel := contextOf(t)
	over := make(chan error, 1)
	go func() { over <- l.Run(ctx) }()
	r.stop = sync.OnceValue(func() error {
		cancel()
		return <-over
	})
	t.Cleanup(func() {
		_ = r.stop()
		state.check(t)
	})
	return r
}

// patience is how long a test waits for what must come; the machine may be slow.
const patience = 2 * time.Minute

// until waits for a condition that other goroutines bring about.
func until(t testing.TB, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !is(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("after %v still not: %s", patience, what)
		}
	}
}

type answer struct {
	result string
	err    error
}

// propose proposes a command and returns where its answer will be.
func (r *running) propose(command string) <-chan answer {
	got := make(chan answer, 2) // two: a second answer is a fault, and not a hang
	r.Propose([]byte(command), true, func(result []byte, err error) { got <- answer{string(result), err} })
	return got
}

// put proposes commands together and waits until all are acknowledged.
func (r *running) put(t testing.TB, commands ...string) {
	t.Helper()
	until(t, "it leads", func() bool { return r.state.leading() })
	var waiting []<-chan answer
	for _, c := range commands {
		waiting = append(waiting, r.propose(c))
	}
	for i, w := range waiting {
		if a := <-w; a.err != nil {
			t.Fatalf("propose(%s) = %v", commands[i], a.err)
		}
	}
}

func durable(dir string) Config { return Config{Dir: dir, Node: qpid.NodeID("n1")} }

// copied copies a directory as a crash would leave it: nothing is closed.
func copied(t testing.TB, dir string) string {
	t.Helper()
	for {
		to := filepath.Join(t.TempDir(), "crashed")
		err := os.CopyFS(to, os.DirFS(dir))
		if err == nil {
			return to
		}
		if !errors.Is(err, fs.ErrNotExist) { // a file was renamed between being listed and being read
			t.Fatal(err)
		}
	}
}

func numbered(prefix string, n int) []string {
	all := make([]string, 0, n)
	for i := range n {
		all = append(all, fmt.Sprintf("%s%d", prefix, i))
	}
	return all
}

func equal(t testing.TB, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Fatalf("%s: got %d commands %.200v, want %d %.200v", what, len(got), got, len(want), want)
	}
}

var errInjected = errors.New("no space left on device")

func qpidName(name string) qpid.NodeID { return qpid.NodeID(name) }
