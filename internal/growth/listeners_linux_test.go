package growth

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"sync"
	"testing"
	"time"
)

// listenersEnv makes this program the client of BenchmarkStreams: a process of
// its own, with file descriptors and processor time of its own. It takes its
// next step when it reads a line, and says a line when that is done.
const listenersEnv = "ANTEROOM_LISTENERS"

// crowd is what the client is told, as the value of listenersEnv.
type crowd struct {
	Addr   string // of the gateway
	People int
	Called int    // of them
	Over   string // "": HTTP/1.1; https: the same by TLS; http2: HTTP/2 by TLS, a connection each as browsers have it
}

// heard is what it says at last of each who was called: when they joined, which tells
// them apart, and when they heard of it, Unix µs.
type heard struct{ Joined, At int64 }

// client is the client, seen from the benchmark.
type client struct {
	b   *testing.B
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func engage(b *testing.B, c crowd) *client {
	b.Helper()
	order, _ := json.Marshal(c) // strings and numbers
	k := &client{b: b, cmd: exec.Command(os.Args[0])}
	k.cmd.Env, k.cmd.Stderr = append(os.Environ(), listenersEnv+"="+string(order)), os.Stderr
	in, bad := k.cmd.StdinPipe()
	out, err := k.cmd.StdoutPipe()
	if err = errors.Join(bad, err); err == nil {
		err = k.cmd.Start()
	}
	if err != nil {
		b.Fatal(err)
	}
	k.in, k.out = in, bufio.NewReader(out)
	b.Cleanup(func() { _ = in.Close(); _ = k.cmd.Process.Kill(); _ = k.cmd.Wait() })
	return k
}

// step has the client do what comes next, and returns what it says to it.
func (k *client) step() []byte {
	k.b.Helper()
	_, err := io.WriteString(k.in, "\n")
	line, bad := k.out.ReadBytes('\n')
	if err = errors.Join(err, bad); err != nil {
		k.b.Fatalf("client: %v", err)
	}
	return line
}

// listen is the client: people join, open their streams, and hear of their call.
func listen(in io.Reader, out io.Writer) error {
	var c crowd
	if err := json.Unmarshal([]byte(os.Getenv(listenersEnv)), &c); err != nil {
		return err
	}
	turn := bufio.NewScanner(in)
	turn.Scan()
	scheme := "http://"
	if c.Over != "" {
		scheme = "https://"
	}
	tickets, err := fill([]string{scheme + c.Addr + "/_anteroom/v1/rooms/shop/join"}, c.People)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "joined")
	turn.Scan()
	streams := make([]*stream, len(tickets))
	if err := each(streams, func(i int) (err error) { streams[i], err = c.open(i, tickets[i]); return err }); err != nil {
		return err
	}
	fmt.Fprintln(out, "open")
	turn.Scan() // all listen from here on
	fmt.Fprintln(out, "listening")
	type outcome struct {
		heard
		err error
	}
	outcomes := make(chan outcome, len(streams))
	for i, s := range streams {
		go func() {
			joined, err := s.called()
			if err != nil {
				err = fmt.Errorf("stream %d: %w", i, err)
			}
			outcomes <- outcome{heard{joined, time.Now().UnixMicro()}, err}
		}()
	}
	all := make([]heard, c.Called)
	for i := range all {
		o := <-outcomes
		if o.err != nil {
			return o.err
		}
		all[i] = o.heard
	}
	turn.Scan()
	return json.NewEncoder(out).Encode(all)
}

// each does something for all streams, some at a time.
func each(streams []*stream, do func(i int) error) (err error) {
	var all sync.WaitGroup
	var mu sync.Mutex
	const hands = 64
	for h := range hands {
		all.Go(func() {
			for i := h; i < len(streams); i += hands {
				if bad := do(i); bad != nil {
					mu.Lock()
					err = bad
					mu.Unlock()
					return
				}
			}
		})
	}
	all.Wait()
	return err
}

// stream is one event stream, read without a parser.
type stream struct {
	conn io.Reader
	buf  []byte // what was read last
}

func (c crowd) open(i int, ticket string) (*stream, error) {
	// Of one address there are some 28,000 ports. All of 127.0.0.0/8 is this machine.
	from := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(1+i/20_000))}}
	own := &tls.Config{InsecureSkipVerify: true} // it is this machine
	path := "/_anteroom/v1/rooms/shop/stream?ticket=" + url.QueryEscape(ticket)
	if c.Over == "http2" {
		t := &http.Transport{DialContext: from.DialContext, TLSClientConfig: own, ForceAttemptHTTP2: true}
		a, err := (&http.Client{Transport: t}).Get("https://" + c.Addr + path)
		if err != nil {
			return nil, err
		}
		if a.ProtoMajor != 2 {
			return nil, fmt.Errorf("it came over %s", a.Proto)
		}
		s := &stream{conn: a.Body}
		return s, s.until([]byte(`"state":"waiting"`))
	}
	conn, err := from.Dial("tcp", c.Addr)
	if err != nil {
		return nil, err
	}
	if c.Over == "https" {
		conn = tls.Client(conn, own)
	}
	s := &stream{conn: conn}
	if _, err = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: shop.example\r\n\r\n", path); err != nil {
		return nil, err
	}
	return s, s.until([]byte(`"state":"waiting"`))
}

// called reads until the stream tells of the call, and returns when its person joined.
func (s *stream) called() (joined int64, err error) {
	events := bufio.NewScanner(io.MultiReader(bytes.NewReader(s.buf), s.conn))
	for events.Scan() {
		data, ok := bytes.CutPrefix(events.Bytes(), []byte("data: "))
		var p struct {
			State  string
			Joined time.Time `json:"joined_at"`
		}
		if !ok || !bytes.Contains(data, []byte(`"state":"called"`)) {
			continue
		}
		err := json.Unmarshal(data, &p)
		return p.Joined.UnixMicro(), err
	}
	return 0, fmt.Errorf("the stream ended: %w", events.Err())
}

// until reads until the stream has said a word.
func (s *stream) until(word []byte) error {
	const length = 4096 // of the longest event
	s.buf = slices.Grow(s.buf, length)
	for {
		n, err := s.conn.Read(s.buf[len(s.buf):cap(s.buf)])
		if s.buf = s.buf[:len(s.buf)+n]; bytes.Contains(s.buf, word) {
			s.buf = s.buf[:0]
			return nil
		}
		if err != nil {
			return fmt.Errorf("%w after %.300q", err, s.buf)
		}
		if len(s.buf) > cap(s.buf)/2 { // a word may be cut in two
			s.buf = append(s.buf[:0], s.buf[len(s.buf)-len(word):]...)
		}
	}
}
