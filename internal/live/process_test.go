package live

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/anteroom/anteroom/gateway/admin"
)

// process is one node, through all its lives.
type process struct {
	c    *cluster
	id   string
	port int // of gateway; admin, peer, gossip and grpc have the next ones
	cmd  *exec.Cmd
	log  *journal
	done chan struct{} // closed when the life is over
}

// journal is what a process writes. It may be read while that runs.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(b)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

// taken are the ports given out, so that tests may run side by side.
var taken struct {
	sync.Mutex
	first map[int]bool
}

// freePorts finds five free ports in a row, below those from which systems take
// the ports of outgoing connections: a node that is down could not get its own
// back.
func freePorts(t testing.TB) int {
	t.Helper()
	taken.Lock()
	defer taken.Unlock()
	if taken.first == nil {
		taken.first = make(map[int]bool)
	}
	for range 1000 {
		first := 20_000 + 5*rand.IntN(2400)
		free := !taken.first[first]
		for i := 0; i < len(ports) && free; i++ {
			l, err := net.Listen("tcp", fmt.Sprintf(":%d", first+i))
			if free = err == nil; free {
				_ = l.Close()
			}
		}
		if free {
			taken.first[first] = true
			return first
		}
	}
	t.Fatal("no five free ports in a row")
	return 0
}

// ports are a node's, in order.
var ports = [...]string{"gateway", "admin", "peer", "gossip", "grpc"}

// at is where one of the ports is reached from this machine.
func (p *process) at(port int) string {
	host := p.c.listen[ports[port]]
	if ip, err := netip.ParseAddr(host); err != nil || ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, strconv.Itoa(p.port+port))
}

// listens is what it says in the node's file: at, or all addresses.
func (p *process) listens(port int) string {
	if host := p.c.listen[ports[port]]; host != "" {
		return net.JoinHostPort(host, strconv.Itoa(p.port+port))
	}
	return p.at(port)
}

func (p *process) gateway() string { return "http://" + p.at(0) }
func (p *process) gossip() string  { return p.at(3) }
func (p *process) grpc() string    { return p.at(4) }

// start begins a life that joins all other nodes there are. With expect 0 it
// never founds a cluster.
func (p *process) start(expect int) {
	p.c.t.Helper()
	var others []*process
	for _, o := range p.c.nodes {
		if o != p {
			others = append(others, o)
		}
	}
	p.join(expect, others...)
}

// join begins a life that joins others.
func (p *process) join(expect int, others ...*process) {
	p.c.t.Helper()
	name := p.c.file(p.id + ".yaml")
	if err := os.WriteFile(name, []byte(p.config(expect, others...)), 0o600); err != nil {
		p.c.t.Fatal(err)
	}
	if p.c.users {
		p.owns(name)
	}
	p.run("--config", name, "--admissions", p.c.file(p.id+".jsonl"))
}

// config is the node's file.
func (p *process) config(expect int, others ...*process) string {
	c := fmt.Sprintf("node:\n  id: %s\n  gateway: %q\n  admin: %q\n  peer: %q\n  gossip: %q\n  grpc: %q\n  join: [%s]\n  expect: %d\n",
		p.id, p.listens(0), p.listens(1), p.listens(2), p.listens(3), p.listens(4), seeds(others), expect)
	if p.c.node != nil {
		c += p.c.node(p)
	}
	if p.c.data {
		c += "  data: " + p.c.file(p.id) + "\n"
	}
	security := p.c.security
	if p.c.keys {
		security += "  signing_keys: " + p.c.file("keys.json") + "\n"
	}
	if security != "" {
		c += "security:\n" + security
	}
	c += p.c.top
	if p.c.period > 0 {
		c += fmt.Sprintf("cluster: {lease: %v, period: %v}\n", p.c.lease, p.c.period)
	} else if p.c.lease > 0 {
		c += fmt.Sprintf("cluster: {lease: %v}\n", p.c.lease)
	}
	c += fmt.Sprintf(`rooms:
  - name: shop
    routes: [{host: "*", path: /}]
    origin: %s
    total_active_users: %d
    session_duration: %v
    refresh_interval: %v
    claim_window: %v
    ticket_ttl: %v
%s%s`, p.c.origin.URL, p.c.limit, p.c.session, cmp.Or(p.c.refresh, 3*time.Second), p.c.claim, cmp.Or(p.c.ttl, time.Minute), p.c.room, p.c.rooms)
	if p.c.queues != "" {
		c += "queues:\n" + p.c.queues
	}
	return c
}

// joinBare begins a life that is told of others and of its own ports, and has
// no file.
func (p *process) joinBare(others ...*process) {
	p.c.t.Helper()
	p.run("--join", seeds(others), "--id", p.id, "--gateway", p.at(0), "--admin", p.at(1), "--peer", p.at(2), "--gossip", p.gossip(), "--grpc", p.grpc())
}

func seeds(nodes []*process) string {
	at := make([]string, len(nodes))
	for i, n := range nodes {
		at[i] = n.gossip()
	}
	return strings.Join(at, ",")
}

func (p *process) run(flags ...string) {
	p.c.t.Helper()
	cmd := exec.Command(p.c.binary, append([]string{"serve"}, flags...)...)
	if p.c.files > 0 {
		script := fmt.Sprintf(`ulimit -n %d && exec "$0" "$@"`, p.c.files)
		cmd = exec.Command("sh", append([]string{"-c", script, p.c.binary, "serve"}, flags...)...)
	}
	cmd.Stderr, p.cmd, p.done = p.log, cmd, make(chan struct{})
	cmd.WaitDelay = time.Second
	if p.c.users {
		cmd.SysProcAttr = p.asUser()
	}
	cmd.Env = append(os.Environ(), p.c.env...)
	if p.c.secret != "" { // by the environment: some lives have no file
		cmd.Env = append(cmd.Env, "ANTEROOM_SECURITY_GOSSIP_KEY="+p.c.secret)
	}
	if err := cmd.Start(); err != nil {
		p.c.t.Fatal(err)
	}
	go func(done chan struct{}) { _ = cmd.Wait(); close(done) }(p.done)
}

func (p *process) signal(s syscall.Signal) {
	p.c.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.c.t.Fatalf("%s: %v: %v", p.id, s, err)
	}
}

// standStill stops the process, and returns once all its threads have stopped: some go on
// for a moment after the signal was sent, and answer what they are asked.
func (p *process) standStill() {
	p.c.t.Helper()
	p.signal(syscall.SIGSTOP)
	p.c.await(p.id+" that stands still", 10*time.Second, func() bool {
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", p.cmd.Process.Pid))
		return err == nil && len(threads) > 0 && !slices.ContainsFunc(threads, func(name string) bool {
			b, err := os.ReadFile(name)
			_, state, _ := strings.Cut(string(b), ") ")
			return err != nil || !strings.HasPrefix(state, "T")
		})
	})
}

// kill ends the process at once, if it runs.
func (p *process) kill() {
	if p.cmd != nil {
		_ = p.cmd.Process.Kill()
		<-p.done
	}
}

func (p *process) running() bool {
	if p.cmd == nil {
		return false
	}
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// orders has the room held, released or drained, as an operator does.
func (p *process) orders(what string) {
	p.c.t.Helper()
	a, err := http.Post("http://"+p.at(1)+"/v1/rooms/shop/"+what, "", nil)
	if err != nil {
		p.c.t.Fatal(err)
	}
	defer func() { _ = a.Body.Close() }()
	if a.StatusCode/100 != 2 {
		b, _ := io.ReadAll(a.Body)
		p.c.t.Fatalf("%s: %d %s", what, a.StatusCode, b)
	}
}

// look asks the node's admin port, by a connection of its own.
func (p *process) look(path string, within time.Duration) (*http.Response, error) {
	q, err := http.NewRequest(http.MethodGet, "http://"+p.at(1)+path, nil)
	if err != nil {
		return nil, err
	}
	if p.c.operator != "" {
		q.Header.Set("Authorization", "Bearer "+p.c.operator)
	}
	client := http.Client{Timeout: within, Transport: &http.Transport{DisableKeepAlives: true}}
	return client.Do(q)
}

// ask reads a JSON answer of the node's admin port.
func (p *process) ask(path string, into any) error {
	a, err := p.look(path, 2*time.Second)
	if err != nil {
		return err
	}
	defer func() { _ = a.Body.Close() }()
	b, err := io.ReadAll(a.Body)
	if err != nil || a.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s: %w", path, a.Status, err)
	}
	return json.Unmarshal(b, into)
}

func (p *process) cluster() (c admin.Cluster) {
	_ = p.ask("/v1/cluster", &c) // of one that does not answer nothing is known
	return c
}

func (p *process) room() (r admin.Room) {
	_ = p.ask("/v1/rooms/shop", &r) // the same
	return r
}

// answer is what a visitor reads of one.
type answer struct {
	Status   int    `json:"-"`
	State    string `json:"state"`
	Ticket   string `json:"ticket"`
	Pass     string `json:"pass"`
	Position int    `json:"position"`
	Joined   string `json:"joined_at"`
	Reason   string `json:"reason"`
	Paused   string `json:"paused"`
	Code     string `json:"code"`   // of a problem
	Detail   string `json:"detail"` // the same
}

// visit asks for something in the shop's room by the visitors' API. Without an
// answer the status is 0.
func (p *process) visit(what string, body map[string]string) (a answer) {
	p.c.t.Helper()
	b, err := json.Marshal(body)
	if err != nil {
		p.c.t.Fatal(err)
	}
	client := http.Client{Timeout: 5 * time.Second}
	r, err := client.Post(p.gateway()+"/_anteroom/v1/rooms/shop/"+what, "application/json", bytes.NewReader(b))
	if err != nil {
		return answer{}
	}
	defer func() { _ = r.Body.Close() }()
	if b, err = io.ReadAll(r.Body); err == nil && len(b) > 0 {
		err = json.Unmarshal(b, &a)
	}
	if err != nil {
		p.c.t.Errorf("%s: %s: %v: %s", p.id, what, err, b)
	}
	a.Status = r.StatusCode
	return a
}

// browse asks for the shop as a browser does, with a ticket or a pass if there
// is one.
func (p *process) browse(cookie string) (status int, page string) {
	p.c.t.Helper()
	return p.open(http.MethodGet, "/", cookie)
}

func (p *process) open(method, path, cookie string) (status int, page string) {
	p.c.t.Helper()
	q, err := http.NewRequest(method, p.gateway()+path, nil)
	if err != nil {
		p.c.t.Fatal(err)
	}
	q.Header.Set("Accept", "text/html")
	q.Header.Set("Sec-Fetch-Mode", "navigate")
	if cookie != "" {
		q.AddCookie(&http.Cookie{Name: "anteroom_shop", Value: cookie})
	}
	client := http.Client{Timeout: 5 * time.Second}
	a, err := client.Do(q)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = a.Body.Close() }()
	b, err := io.ReadAll(a.Body)
	if err != nil {
		return 0, err.Error()
	}
	return a.StatusCode, string(b)
}

// enter goes the way of a visitor with a ticket until there is a pass; without
// a ticket it joins first.
func (p *process) enter(ticket string) (pass string) {
	p.c.t.Helper()
	p.c.until("pass for a visitor at "+p.id, 20*time.Second, func() bool {
		a := answer{}
		if ticket == "" {
			a = p.visit("join", nil)
		} else if a = p.visit("checkin", map[string]string{"ticket": ticket}); a.State == "called" {
			ticket = a.Ticket
			a = p.visit("leave", map[string]string{"ticket": ticket})
		}
		if a.Ticket != "" {
			ticket = a.Ticket
		}
		pass = a.Pass
		return a.State == "admitted"
	})
	return pass
}
