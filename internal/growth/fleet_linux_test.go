package growth

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/anteroom/anteroom/gateway/admin"
	"github.com/anteroom/anteroom/internal/history"
)

// fleet is nodes in processes of their own.
type fleet struct {
	b       *testing.B
	dir     string
	file    string // the configuration that all read
	nodes   []*process
	founded int // so many of nodes found the cluster
	logged  bool
	secure  bool // visitors come by HTTPS, with the certificate of net/http/httptest
}

// process is one of them.
type process struct {
	f    *fleet
	id   string
	port int // of gateway; admin, peer and gossip have the next ones
	cmd  *exec.Cmd
	done chan struct{} // closed when it is over
}

// launch starts n nodes that serve rooms, a part of a configuration file, and
// have found each other. If logged, they keep admission logs.
func launch(b *testing.B, n int, rooms string, logged bool) *fleet {
	b.Helper()
	return (&fleet{b: b, dir: b.TempDir(), founded: n, logged: logged}).launch(n, rooms)
}

func (f *fleet) launch(n int, rooms string) *fleet {
	b := f.b
	b.Helper()
	f.file = filepath.Join(f.dir, "anteroom.yaml")
	if f.secure {
		f.certify()
	}
	f.write(rooms)
	b.Cleanup(func() {
		for _, p := range f.nodes {
			p.end(syscall.SIGKILL)
		}
		if b.Failed() {
			for _, p := range f.nodes {
				log, _ := os.ReadFile(p.name("log"))
				b.Logf("%s:\n%s", p.id, log)
			}
		}
	})
	first := ports(b, n+1)
	for i := range n + 1 { // there are addresses for one more
		f.nodes = append(f.nodes, &process{f: f, id: fmt.Sprintf("node-%d", i+1), port: first + 4*i})
	}
	for _, p := range f.nodes[:n] {
		p.start()
	}
	f.meet(f.nodes[:n])
	return f
}

const gossipKey = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="

func (f *fleet) write(rooms string) {
	https := ""
	if f.secure {
		https = ", tls: {gateway: {cert: " + f.file + ".cert, key: " + f.file + ".key}}"
	}
	if err := os.WriteFile(f.file, []byte("security: {gossip_key: "+gossipKey+https+"}\nrooms:\n"+rooms), 0o600); err != nil {
		f.b.Fatal(err)
	}
}

// certify writes a certificate for this machine, and its key.
func (f *fleet) certify() {
	f.b.Helper()
	s := httptest.NewUnstartedServer(nil)
	s.StartTLS()
	s.Close()
	pair := s.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		f.b.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{".cert": {Type: "CERTIFICATE", Bytes: pair.Certificate[0]}, ".key": {Type: "PRIVATE KEY", Bytes: key}} {
		if err := os.WriteFile(f.file+name, pem.EncodeToMemory(block), 0o600); err != nil {
			f.b.Fatal(err)
		}
	}
}

// meet waits until all of up are in the waves, and nobody else.
func (f *fleet) meet(up []*process) {
	f.b.Helper()
	f.until("waves of all nodes", func() bool {
		for _, p := range up {
			c, in := p.cluster(), 0
			for _, m := range c.Members {
				if m.InWave {
					in++
				}
			}
			if in != len(up) || len(c.Members) != len(up) || !p.serves() {
				return false
			}
		}
		return true
	})
}

func (f *fleet) until(what string, holds func() bool) {
	f.b.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			f.b.Fatalf("no %s within a minute", what)
		}
	}
}

// ports finds ports for n nodes in a row, below those from which systems take
// the ports of outgoing connections.
func ports(b *testing.B, n int) int {
	b.Helper()
	for range 1000 {
		first, free := 20_000+rand.IntN(10_000), true
		for i := 0; i < 4*n && free; i++ {
			l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", first+i))
			if free = err == nil; free {
				_ = l.Close()
			}
		}
		if free {
			return first
		}
	}
	b.Fatal("no free ports in a row")
	return 0
}

func (p *process) at(port int) string      { return fmt.Sprintf("127.0.0.1:%d", p.port+port) }
func (p *process) name(what string) string { return filepath.Join(p.f.dir, p.id+"."+what) }
func (p *process) room(op string) string {
	return "http://" + p.at(0) + "/_anteroom/v1/rooms/shop/" + op
}
func (p *process) signal(s syscall.Signal) { _ = p.cmd.Process.Signal(s) }
func (p *process) cluster() (c admin.Cluster) {
	_ = p.ask("/v1/cluster", &c) // of one that does not answer nothing is known
	return c
}

// serves reports whether visitors may come.
func (p *process) serves() bool {
	a, err := http.Get("http://" + p.at(1) + "/readyz")
	if err != nil {
		return false
	}
	_ = a.Body.Close()
	return a.StatusCode == http.StatusOK
}

func (p *process) start() {
	p.f.b.Helper()
	join := make([]string, 0, len(p.f.nodes))
	for _, o := range p.f.nodes {
		join = append(join, o.at(3))
	}
	log, err := os.Create(p.name("log"))
	if err != nil {
		p.f.b.Fatal(err)
	}
	defer log.Close() //nolint:errcheck // the process has it
	expect := 0
	if p != p.f.nodes[p.f.founded] {
		expect = p.f.founded
	}
	args := []string{
		"serve", "--pprof", "--config", p.f.file, "--id", p.id, "--expect", strconv.Itoa(expect), "--join", strings.Join(join, ","),
		"--gateway", p.at(0), "--admin", p.at(1), "--peer", p.at(2), "--gossip", p.at(3), "--grpc", "none",
	}
	if p.f.logged {
		args = append(args, "--admissions", p.name("jsonl"))
	}
	p.cmd = exec.Command(anteroom(p.f.b), args...)
	p.cmd.Stderr, p.done = log, make(chan struct{})
	if err := p.cmd.Start(); err != nil {
		p.f.b.Fatal(err)
	}
	go func() { _ = p.cmd.Wait(); close(p.done) }()
}

// end ends the process if it runs.
func (p *process) end(s syscall.Signal) {
	if p.cmd != nil {
		p.signal(s)
		<-p.done
	}
}

// ask reads a JSON answer of the admin port.
func (p *process) ask(path string, into any) error {
	client := http.Client{Timeout: 2 * time.Second}
	a, err := client.Get("http://" + p.at(1) + path)
	if err != nil {
		return err
	}
	defer func() { _ = a.Body.Close() }()
	return json.NewDecoder(a.Body).Decode(into)
}

// metric is the value of a metric, named with its labels if it has any.
func (p *process) metric(name string) (v float64) {
	a, err := http.Get("http://" + p.at(1) + "/metrics")
	if err != nil {
		p.f.b.Fatal(err)
	}
	defer func() { _ = a.Body.Close() }()
	for lines := bufio.NewScanner(a.Body); lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), name+" "); ok {
			v, err = strconv.ParseFloat(text, 64)
		}
	}
	if err != nil {
		p.f.b.Fatal(err)
	}
	return v
}

// cpu is the processor time that the process has used, to 10 ms.
func (p *process) cpu() time.Duration {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		p.f.b.Fatal(err)
	}
	fields := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+2:]))
	user, _ := strconv.Atoi(fields[11]) // in hundredths of a second, which proc(5) promises to be numbers
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond
}

// memory is what the process has of it after a collection, in bytes.
type memory struct{ rss, heap, stacks float64 }

func (p *process) memory() (m memory) {
	a, err := http.Get("http://" + p.at(1) + "/debug/pprof/heap?gc=1")
	if err != nil {
		p.f.b.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, a.Body)
	_ = a.Body.Close()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		p.f.b.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(b), "VmRSS:")
	kib, _ := strconv.Atoi(strings.Fields(rest)[0])
	return memory{float64(kib) * 1024, p.metric("go_memstats_heap_alloc_bytes"), p.metric("go_memstats_stack_inuse_bytes")}
}

// admissions are the entries of an event in the logs of all nodes.
func (f *fleet) admissions(event string) (all []history.Entry) {
	f.b.Helper()
	for _, p := range f.nodes {
		file, err := os.Open(p.name("jsonl"))
		if os.IsNotExist(err) {
			continue
		} else if err != nil {
			f.b.Fatal(err)
		}
		for d := json.NewDecoder(file); ; {
			var e history.Entry
			if d.Decode(&e) != nil { // the end, or a line that is being written
				break
			}
			if e.Event == event {
				all = append(all, e)
			}
		}
		_ = file.Close()
	}
	return all
}

// fill has people join, each node the same number, and returns their tickets.
func fill(urls []string, people int) (tickets []string, err error) {
	transport := &http.Transport{MaxIdleConnsPerHost: 64, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} // it is this machine
	defer transport.CloseIdleConnections()
	client := http.Client{Transport: transport, Timeout: 10 * time.Second}
	tickets = make([]string, people)
	var all sync.WaitGroup
	var mu sync.Mutex
	for i, url := range urls {
		for j := range 64 {
			all.Go(func() {
				for k := i + j*len(urls); k < people; k += 64 * len(urls) {
					t, bad := join(&client, url)
					if bad != nil {
						mu.Lock()
						err = bad
						mu.Unlock()
						return
					}
					tickets[k] = t
				}
			})
		}
	}
	all.Wait()
	return tickets, err
}

func join(c *http.Client, url string) (string, error) {
	q, err := http.NewRequest(http.MethodPost, url, nil)
	if err != nil {
		return "", err
	}
	q.Header.Set("Prefer", "respond-async") // the position can wait
	r, err := c.Do(q)
	if err != nil {
		return "", err
	}
	defer func() { _ = r.Body.Close() }()
	var place struct{ State, Ticket string }
	if err := json.NewDecoder(r.Body).Decode(&place); err != nil || place.Ticket == "" {
		return "", fmt.Errorf("join: %s: %+v: %w", r.Status, place, err)
	}
	_, _ = io.Copy(io.Discard, r.Body)
	return place.Ticket, nil
}
