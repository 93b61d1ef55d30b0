package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"
)

// strain is what a client of its own process does to a server for a while, so
// that the processor time of the two can be told apart.
type strain struct {
	Addr     string
	Requests string        // a file: whole requests, one after the other, each with its length in front as 4 digits
	Conns    int           // kept alive
	During   time.Duration //
	Rate     float64       // requests a second, spread evenly; 0: each connection sends when it has its answer
	Answer   string        // not empty: be the server, and answer every request so
}

// strained is what came of it.
type strained struct {
	Answers   int
	Bad       int           // answers other than 200, and broken connections
	Took      time.Duration //
	CPU       time.Duration // of the client
	Median    time.Duration // from when a request was due to the end of its answer
	P99       time.Duration
	serverCPU time.Duration
}

func (s strained) rate() float64 { return float64(s.Answers) / s.Took.Seconds() }

// perAnswer is the processor time that the server took for one, in µs.
func (s strained) perAnswer() float64 {
	return float64(s.serverCPU.Nanoseconds()) / 1e3 / float64(s.Answers)
}

const strainEnv = "ANTEROOM_STRAIN"

// strainMain is what the test's program does when it is started as a client.
func strainMain(order string) error {
	var s strain
	if err := json.Unmarshal([]byte(order), &s); err != nil {
		return err
	}
	if s.Answer != "" {
		return answer(s.Answer)
	}
	r, err := s.pull()
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(r)
}

// run runs the client and measures this process meanwhile.
func (s strain) run(b *testing.B) (r strained) {
	b.Helper()
	order, _ := json.Marshal(s) // strings and numbers
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), strainEnv+"="+string(order), "GOMAXPROCS=1")
	c.Stderr = os.Stderr
	before := cpuTime()
	out, err := c.Output()
	r.serverCPU = cpuTime() - before
	if err == nil {
		err = json.Unmarshal(out, &r)
	}
	if err != nil {
		b.Fatalf("client: %v: %s", err, out)
	}
	if r.Bad > 0 || r.Answers == 0 {
		b.Fatalf("client: %d answers, %d bad ones", r.Answers, r.Bad)
	}
	return r
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // it cannot fail
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// wire is a connection of the client.
type wire struct {
	fd    int
	buf   []byte
	n     int // bytes of buf that were read
	busy  bool
	began time.Time // when the request was due
}

// pull is the client's hot loop: one thread, no goroutines, a read and a write
// for each request.
func (s strain) pull() (r strained, err error) {
	requests, err := readRequests(s.Requests)
	if err != nil {
		return r, err
	}
	poll, err := syscall.EpollCreate1(0)
	if err != nil {
		return r, err
	}
	wires := map[int32]*wire{}
	var idle []*wire
	for range s.Conns {
		fd, err := dial(s.Addr)
		if err != nil {
			return r, err
		}
		if err := syscall.EpollCtl(poll, syscall.EPOLL_CTL_ADD, fd, &syscall.EpollEvent{Events: syscall.EPOLLIN, Fd: int32(fd)}); err != nil {
			return r, err
		}
		w := &wire{fd: fd, buf: make([]byte, 16<<10)}
		wires[int32(fd)] = w
		idle = append(idle, w)
	}
	next := 0
	send := func(w *wire, due time.Time) {
		w.busy, w.began = true, due
		if _, err := syscall.Write(w.fd, requests[next%len(requests)]); err != nil {
			r.Bad++
		}
		next++
	}
	began, before := time.Now(), cpuTime()
	took := make([]time.Duration, 0, 1<<20)
	if s.Rate == 0 {
		for _, w := range idle {
			send(w, began)
		}
	}
	events := make([]syscall.EpollEvent, 256)
	for now := began; now.Sub(began) < s.During && r.Bad == 0; now = time.Now() {
		wait := 1000
		if s.Rate > 0 {
			wait = 1
			for due := began.Add(time.Duration(float64(next) / s.Rate * 1e9)); len(idle) > 0 && !now.Before(due); due = began.Add(time.Duration(float64(next) / s.Rate * 1e9)) {
				send(idle[len(idle)-1], due)
				idle = idle[:len(idle)-1]
			}
		}
		n, err := syscall.EpollWait(poll, events, wait)
		if err != nil && err != syscall.EINTR {
			return r, err
		}
		for _, e := range events[:max(0, n)] {
			w := wires[e.Fd]
			whole, ok := w.read()
			if !ok {
				r.Bad++
			}
			if !whole {
				continue
			}
			now := time.Now()
			took = append(took, now.Sub(w.began))
			if s.Rate == 0 {
				send(w, now)
			} else {
				idle = append(idle, w)
			}
		}
	}
	r.Took, r.CPU, r.Answers = time.Since(began), cpuTime()-before, len(took)
	if len(took) > 0 {
		slices.Sort(took)
		r.Median, r.P99 = took[len(took)/2], took[len(took)*99/100]
	}
	return r, nil
}

// read takes in what has come, and reports whether an answer is whole.
func (w *wire) read() (whole, ok bool) {
	n, err := syscall.Read(w.fd, w.buf[w.n:])
	if err == syscall.EAGAIN {
		return false, true
	}
	if err != nil || n <= 0 {
		return false, false
	}
	w.n += n
	b := w.buf[:w.n]
	end := bytes.Index(b, []byte("\r\n\r\n"))
	if end < 0 {
		return false, true
	}
	const length = "\r\nContent-Length: "
	at := bytes.Index(b[:end+2], []byte(length))
	if at < 0 || !bytes.HasPrefix(b, []byte("HTTP/1.1 200 ")) {
		return false, false
	}
	size := 0
	for _, c := range b[at+len(length):] {
		if c < '0' || c > '9' {
			break
		}
		size = 10*size + int(c-'0')
	}
	if w.n < end+4+size {
		return false, true
	}
	w.n, w.busy = 0, false
	return true, true
}

func dial(addr string) (int, error) {
	a, err := net.ResolveTCPAddr("tcp4", addr)
	if err != nil {
		return 0, err
	}
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	if err := syscall.Connect(fd, &syscall.SockaddrInet4{Port: a.Port, Addr: [4]byte(a.IP.To4())}); err != nil {
		return 0, fmt.Errorf("connect: %w", err)
	}
	_ = syscall.SetsockoptInt(fd, syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1)
	return fd, syscall.SetNonblock(fd, true)
}

func readRequests(file string) (all [][]byte, err error) {
	b, err := os.ReadFile(file)
	for len(b) > 4 && err == nil {
		var n int
		if _, err = fmt.Sscanf(string(b[:4]), "%04d", &n); err == nil {
			all, b = append(all, b[4:4+n]), b[4+n:]
		}
	}
	if err == nil && len(all) == 0 {
		err = io.ErrUnexpectedEOF
	}
	return all, err
}

func writeRequests(b *testing.B, all [][]byte) (file string) {
	b.Helper()
	var text []byte
	for _, q := range all {
		text = append(fmt.Appendf(text, "%04d", len(q)), q...)
	}
	file = b.TempDir() + "/requests"
	if err := os.WriteFile(file, text, 0o600); err != nil {
		b.Fatal(err)
	}
	return file
}
