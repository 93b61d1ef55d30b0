package growth

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
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
}

// heard is what it says at last: when people heard of their call, Unix µs.
type heard struct{ First, Median, P99, Last int64 }

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
	tickets, err := fill([]string{"http://" + c.Addr + "/_anteroom/v1/rooms/shop/join"}, c.People)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "joined")
	turn.Scan()
	streams := make([]*stream, len(tickets))
	if err := each(streams, func(i int) (err error) { streams[i], err = open(c.Addr, tickets[i]); return err }); err != nil {
		return err
	}
	fmt.Fprintln(out, "open")
	turn.Scan() // all listen from here on
	fmt.Fprintln(out, "listening")
	at := make([]int64, len(streams))
	var all sync.WaitGroup
	var failed error
	var once sync.Once
	for i, s := range streams {
		all.Go(func() {
			if err := s.until([]byte(`"state":"called"`)); err != nil {
				once.Do(func() { failed = fmt.Errorf("stream %d: %w", i, err) })
			}
			at[i] = time.Now().UnixMicro()
		})
	}
	all.Wait()
	if failed != nil {
		return failed
	}
	slices.Sort(at)
	turn.Scan()
	return json.NewEncoder(out).Encode(heard{at[0], at[len(at)/2], at[len(at)*99/100], at[len(at)-1]})
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
	conn net.Conn
	buf  []byte // what was read last
}

func open(addr, ticket string) (*stream, error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	s := &stream{conn: conn}
	_, err = fmt.Fprintf(conn, "GET /_anteroom/v1/rooms/shop/stream?ticket=%s HTTP/1.1\r\nHost: shop.example\r\n\r\n", url.QueryEscape(ticket))
	if err != nil {
		return nil, err
	}
	return s, s.until([]byte(`"state":"waiting"`))
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
