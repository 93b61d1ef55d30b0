package replog

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/qpid"
)

// writerEnv has the test's binary write to a log until it is killed.
const writerEnv = "ANTEROOM_REPLOG_WRITER"

// writer is what it is told.
type writer struct {
	Dir, Node, Run string
	Members        map[string]string // addresses; empty: a durable log
}

// writeForever writes while this process leads and says what was acknowledged. The
// first line that it is sent ends the writing: it is answered, as every later one,
// with the state, once what was proposed has its answer.
func writeForever(told string) int {
	var w writer
	if err := json.Unmarshal([]byte(told), &w); err != nil {
		return fault(err)
	}
	state := &list{}
	c := Config{
		Dir: w.Dir, Node: qpid.NodeID(w.Node), Machine: state, Leads: state.leads, CompactBytes: 1 << 20,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	}
	if len(w.Members) > 0 {
		c.Group = &Group{Self: eviction.Member{Name: c.Node, Boot: 1}, Replicas: 2, Founders: 3, Policy: peers(), Pace: 100 * time.Millisecond}
	}
	l, err := Open(c)
	if err != nil {
		return fault(err)
	}
	if len(w.Members) > 0 {
		listener, err := net.Listen("tcp", w.Members[w.Node])
		if err != nil {
			return fault(err)
		}
		server := grpc.NewServer(grpc.Creds(c.Group.Policy.Server()))
		l.Register(server)
		go func() { _ = server.Serve(listener) }()
		members := map[eviction.Member]string{}
		for name, address := range w.Members {
			members[eviction.Member{Name: qpid.NodeID(name), Boot: 1}] = address
		}
		l.SetMembers(members)
	}
	go func() { _ = l.Run(context.Background()) }()
	var out sync.Mutex
	var writers sync.WaitGroup
	quiet := make(chan struct{})
	for i := range 8 {
		writers.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-quiet:
					return
				default:
				}
				command := fmt.Sprintf("%s.%s.%d.%d", w.Node, w.Run, i, n)
				acknowledged := make(chan error, 1)
				l.Propose([]byte(command), true, func(_ []byte, err error) { acknowledged <- err })
				if err := <-acknowledged; err != nil {
					time.Sleep(10 * time.Millisecond)
					continue
				}
				out.Lock()
				fmt.Println("ack", command)
				out.Unlock()
			}
		})
	}
	lines := bufio.NewScanner(os.Stdin)
	for first := true; lines.Scan(); first = false {
		if first {
			close(quiet)
			writers.Wait()
		}
		text, _ := json.Marshal(state.texts())
		out.Lock()
		fmt.Printf("state %s\n", text)
		out.Unlock()
	}
	select {} // until it is killed
}

func fault(err error) int {
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// process is a writer's.
type process struct {
	*exec.Cmd
	in    io.Writer
	errs  *lastLines
	mu    sync.Mutex
	acks  []string
	state chan string
	gone  chan struct{}
}

func spawn(t *testing.T, w writer) *process {
	t.Helper()
	told, err := json.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	p := &process{errs: &lastLines{}, Cmd: exec.Command(os.Args[0]), state: make(chan string, 1), gone: make(chan struct{})}
	p.Env = append(os.Environ(), writerEnv+"="+string(told))
	p.Stderr = p.errs
	p.in, err = p.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.gone)
		lines := bufio.NewScanner(out)
		lines.Buffer(nil, 64<<20)
		for lines.Scan() {
			if ack, ok := strings.CutPrefix(lines.Text(), "ack "); ok {
				p.mu.Lock()
				p.acks = append(p.acks, ack)
				p.mu.Unlock()
			} else if state, ok := strings.CutPrefix(lines.Text(), "state "); ok {
				p.state <- state
			}
		}
		_ = p.Wait()
	}()
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("%s run %s: %s", w.Node, w.Run, p.errs.String())
		}
	})
	return p
}

// lastLines keeps the end of what a process says.
type lastLines struct {
	mu   sync.Mutex
	text []byte
}

func (l *lastLines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, b...)
	l.text = l.text[max(0, len(l.text)-4000):]
	return len(b), nil
}

func (l *lastLines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.text)
}

// kill is kill -9. It returns what had been acknowledged.
func (p *process) kill() []string {
	_ = p.Process.Kill()
	<-p.gone
	return p.acknowledged()
}

func (p *process) acknowledged() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.acks)
}

// ask returns the state of the process.
func (p *process) ask(t *testing.T) []string {
	t.Helper()
	if _, err := io.WriteString(p.in, "?\n"); err != nil {
		t.Fatal(err)
	}
	var all []string
	if err := json.Unmarshal([]byte(<-p.state), &all); err != nil {
		t.Fatal(err)
	}
	return all
}

func e2e(t *testing.T) {
	t.Helper()
	if os.Getenv("ANTEROOM_E2E") == "" {
		t.Skip("NOT RUN: a test with real processes and sockets; set ANTEROOM_E2E=1")
	}
}

// judge fails the test unless all that was acknowledged is in state, nothing is
// there twice, and each writer's commands are in its order.
func judge(t *testing.T, state, acknowledged []string) {
	t.Helper()
	at := map[string]int{}
	for i, c := range state {
		if _, twice := at[c]; twice {
			t.Errorf("%s is there twice", c)
		}
		at[c] = i
	}
	last := map[string]int{}
	for _, c := range acknowledged {
		i, there := at[c]
		if !there {
			t.Errorf("%s was acknowledged and is lost", c)
			continue
		}
		writer := c[:strings.LastIndexByte(c, '.')]
		if before, ok := last[writer]; ok && before > i {
			t.Errorf("%s is before an earlier one of its writer", c)
		}
		last[writer] = i
	}
	t.Logf("%d acknowledged, %d applied", len(acknowledged), len(state))
}

func TestAcknowledgedCommandsSurviveKill9(t *testing.T) {
	e2e(t)
	dir := t.TempDir()
	var acknowledged []string
	for run := range 12 {
		p := spawn(t, writer{Dir: dir, Node: "n1", Run: fmt.Sprint(run)})
		until(t, "it writes", func() bool { return len(p.acknowledged()) > 150*(run%4+1) })
		acknowledged = append(acknowledged, p.kill()...)
	}
	r := start(t, durable(dir))
	until(t, "it leads", r.state.leading)
	judge(t, r.state.texts(), acknowledged)
}

func TestGroupSurvivesKill9AndStop(t *testing.T) {
	e2e(t)
	dir := t.TempDir()
	members := map[string]string{}
	for _, name := range []string{"n1", "n2", "n3"} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		members[name] = l.Addr().String()
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	up, runs := map[string]*process{}, 0
	begin := func(name string) {
		runs++
		up[name] = spawn(t, writer{Dir: dir + "/" + name, Node: name, Run: fmt.Sprint(runs), Members: members})
	}
	for name := range members {
		begin(name)
	}
	leader := func(not string) string { // whoever is acknowledged something from now on
		leads := ""
		before := map[string]int{}
		for name, p := range up {
			before[name] = len(p.acknowledged())
		}
		until(t, "commands are acknowledged", func() bool {
			for name, p := range up {
				if name != not && len(p.acknowledged()) > before[name]+20 {
					leads = name
					return true
				}
			}
			return false
		})
		return leads
	}
	until(t, "all three vote", func() bool {
		votes := 0
		for _, p := range up {
			votes += strings.Count(p.errs.String(), "give a vote")
		}
		return votes == 2 // and the founder's own
	})
	var acknowledged []string
	for round := range 6 {
		name := leader("")
		if round%2 == 0 {
			acknowledged = append(acknowledged, up[name].kill()...)
			leader(name)
			begin(name)
			continue
		}
		if err := up[name].Process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		leader(name)
		if err := up[name].Process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
	}
	leader("")
	for _, p := range up {
		p.ask(t) // from here on it writes nothing, and awaits no answer
	}
	var states [3][]string
	until(t, "all have applied the same", func() bool {
		for i, name := range []string{"n1", "n2", "n3"} {
			states[i] = up[name].ask(t)
		}
		return slices.Equal(states[0], states[1]) && slices.Equal(states[1], states[2])
	})
	for _, p := range up {
		acknowledged = append(acknowledged, p.acknowledged()...)
	}
	judge(t, states[0], acknowledged)
}

// A process of another node must not take a directory that is in use.
func TestSecondProcessIsRefused(t *testing.T) {
	e2e(t)
	dir := t.TempDir()
	p := spawn(t, writer{Dir: dir, Node: "n1", Run: "1"})
	until(t, "it writes", func() bool { return len(p.acknowledged()) > 0 })
	second := exec.Command(os.Args[0])
	second.Env = append(os.Environ(), writerEnv+`={"Dir":"`+dir+`","Node":"n1"}`)
	said, err := second.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 || !strings.Contains(string(said), "another process is using it") {
		t.Errorf("a second process: %v, %s", err, said)
	}
}
