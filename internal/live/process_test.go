package live

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
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
	port int // of gateway; admin, peer and gossip have the next ones
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

// freePorts finds four free ports in a row, below those from which systems take
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
		first := 20_000 + 4*rand.IntN(3000)
		free := !taken.first[first]
		for i := 0; i < 4 && free; i++ {
			l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", first+i))
			if free = err == nil; free {
				_ = l.Close()
			}
		}
		if free {
			taken.first[first] = true
			return first
		}
	}
	t.Fatal("no four free ports in a row")
	return 0
}

func (p *process) at(port int) string { return fmt.Sprintf("127.0.0.1:%d", p.port+port) }
func (p *process) gateway() string    { return "http://" + p.at(0) }
func (p *process) gossip() string     { return p.at(3) }

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
	c := fmt.Sprintf("node:\n  id: %s\n  gateway: %s\n  admin: %s\n  peer: %s\n  gossip: %s\n  join: [%s]\n  expect: %d\n",
		p.id, p.at(0), p.at(1), p.at(2), p.gossip(), seeds(others), expect)
	if p.c.data {
		c += "  data: " + p.c.file(p.id) + "\n"
	}
	if p.c.keys {
		c += "security:\n  signing_keys: " + p.c.file("keys.json") + "\n"
	}
	if p.c.lease > 0 {
		c += fmt.Sprintf("cluster: {lease: %v}\n", p.c.lease)
	}
	c += fmt.Sprintf(`rooms:
  - name: shop
    routes: [{host: "*", path: /}]
    origin: %s
    total_active_users: %d
    session_duration: %v
    refresh_interval: 3s
    claim_window: 8s
    ticket_ttl: 1m
%s`, p.c.origin.URL, p.c.limit, p.c.session, p.c.room)
	if p.c.queues != "" {
		c += "queues:\n" + p.c.queues
	}
	name := p.c.file(p.id + ".yaml")
	if err := os.WriteFile(name, []byte(c), 0o600); err != nil {
		p.c.t.Fatal(err)
	}
	p.run("--config", name, "--admissions", p.c.file(p.id+".jsonl"))
}

// joinBare begins a life that is told of others and of its own ports, and has
// no file.
func (p *process) joinBare(others ...*process) {
	p.c.t.Helper()
	p.run("--join", seeds(others), "--id", p.id, "--gateway", p.at(0), "--admin", p.at(1), "--peer", p.at(2), "--gossip", p.gossip())
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
	cmd.Stderr, p.cmd, p.done = p.log, cmd, make(chan struct{})
	cmd.WaitDelay = time.Second
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

// ask reads a JSON answer of the node's admin port.
func (p *process) ask(path string, into any) error {
	client := http.Client{Timeout: 2 * time.Second}
	a, err := client.Get("http://" + p.at(1) + path)
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
