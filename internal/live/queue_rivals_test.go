package live

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/anteroom/anteroom/client"
)

// hand is one connection of one worker to a queue. None of them is empty: a
// take that finds nothing is an error.
type hand interface {
	put(payload []byte) error
	take() (job any, err error) // and ack says that it is done
	ack(job any) error
}

// rival is a queue's server that others have made, on a port of its own.
type rival struct {
	name   string
	debian string // of Debian
	args   func(port int, dir string, durable bool) []string
	dial   func(c net.Conn) (hand, error)
}

func rivals() []rival {
	return []rival{
		{
			name: "beanstalkd", debian: "beanstalkd",
			args: func(port int, dir string, durable bool) []string {
				a := []string{"-l", "127.0.0.1", "-p", strconv.Itoa(port)}
				if durable {
					a = append(a, "-b", dir, "-f", "0") // fsync before each answer
				}
				return a
			},
			dial: func(c net.Conn) (hand, error) { return &stalk{c, bufio.NewReader(c)}, nil },
		},
		{
			name: "redis-server", debian: "redis-server",
			args: func(port int, dir string, durable bool) []string {
				a := []string{"--bind", "127.0.0.1", "--port", strconv.Itoa(port), "--dir", dir, "--save", ""}
				if durable {
					a = append(a, "--appendonly", "yes", "--appendfsync", "always")
				}
				return a
			},
			dial: newSorted,
		},
	}
}

// start runs it, and returns its address. It is skipped where it is not installed.
func (r rival) start(t testing.TB, durable bool) string {
	t.Helper()
	if _, err := exec.LookPath(r.name); err != nil {
		t.Skipf("NOT RUN: there is no %s here; apt-get install %s", r.name, r.debian)
	}
	port := freePorts(t)
	cmd := exec.Command(r.name, r.args(port, t.TempDir(), durable)...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	address := fmt.Sprintf("127.0.0.1:%d", port)
	for range 100 {
		if c, err := net.Dial("tcp", address); err == nil {
			_ = c.Close()
			return address
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("%s does not answer at %s", r.name, address)
	return ""
}

// hands connects n workers.
func (r rival) hands(t testing.TB, address string, n int) []hand {
	t.Helper()
	all := make([]hand, n)
	for i := range all {
		c, err := net.Dial("tcp", address)
		if err == nil {
			t.Cleanup(func() { _ = c.Close() })
			all[i], err = r.dial(c)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// stalk speaks beanstalkd's protocol.
type stalk struct {
	c net.Conn
	r *bufio.Reader
}

func (s *stalk) ask(want, format string, args ...any) (rest string, err error) {
	if _, err = fmt.Fprintf(s.c, format, args...); err != nil {
		return "", err
	}
	line, err := s.r.ReadString('\n')
	rest, ok := strings.CutPrefix(strings.TrimSpace(line), want)
	if err == nil && !ok {
		err = fmt.Errorf("beanstalkd: %q, want %s", line, want)
	}
	return strings.TrimSpace(rest), err
}

func (s *stalk) put(payload []byte) error {
	_, err := s.ask("INSERTED", "put 5 0 60 %d\r\n%s\r\n", len(payload), payload)
	return err
}

func (s *stalk) take() (any, error) {
	rest, err := s.ask("RESERVED", "reserve-with-timeout 0\r\n")
	if err != nil {
		return nil, err
	}
	id, size, _ := strings.Cut(rest, " ")
	n, err := strconv.Atoi(size)
	if err == nil {
		_, err = io.CopyN(io.Discard, s.r, int64(n)+2)
	}
	return id, err
}

func (s *stalk) ack(job any) error {
	_, err := s.ask("DELETED", "delete %s\r\n", job)
	return err
}

// sorted speaks Redis's protocol, and keeps a queue with leases as people do: a
// sorted set of what is ready, one of what is leased, and a hash of payloads.
type sorted struct {
	c    net.Conn
	r    *bufio.Reader
	sums [3]string // of the scripts
}

// The scripts put, take and acknowledge an item, each in one step. A score is
// the priority, then the number of the item: first come, first served.
func sortedScripts() [3]string {
	return [3]string{
		`local n = redis.call('INCR', KEYS[4]) redis.call('HSET', KEYS[2], n, ARGV[1]) redis.call('ZADD', KEYS[1], 5e12 + n, n) return n`,
		`local i = redis.call('ZPOPMIN', KEYS[1]) if #i == 0 then return false end redis.call('ZADD', KEYS[3], ARGV[1], i[1]) return {i[1], redis.call('HGET', KEYS[2], i[1])}`,
		`redis.call('HDEL', KEYS[2], ARGV[1]) return redis.call('ZREM', KEYS[3], ARGV[1])`,
	}
}

func newSorted(c net.Conn) (hand, error) {
	s := &sorted{c: c, r: bufio.NewReader(c)}
	for i, script := range sortedScripts() {
		sum, err := s.ask("SCRIPT", "LOAD", script)
		if err != nil {
			return nil, err
		}
		s.sums[i], _ = sum.(string)
	}
	return s, nil
}

func (s *sorted) ask(words ...string) (any, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(words))
	for _, w := range words {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(w), w)
	}
	if _, err := io.WriteString(s.c, b.String()); err != nil {
		return nil, err
	}
	return s.answer()
}

// answer reads a string, a number as it is written, a list, or nil.
func (s *sorted) answer() (any, error) {
	line, err := s.r.ReadString('\n')
	if err != nil {
		return nil, err
	}
	text := strings.TrimSpace(line[1:])
	n, _ := strconv.Atoi(text)
	switch line[0] {
	case '-':
		return nil, errors.New("redis: " + text)
	case '$':
		if n < 0 {
			return nil, nil
		}
		b := make([]byte, n+2)
		_, err := io.ReadFull(s.r, b)
		return string(b[:n]), err
	case '*':
		var list []any
		for range n {
			v, err := s.answer()
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		return list, nil
	}
	return text, nil
}

func (s *sorted) eval(script int, arg string) (any, error) {
	return s.ask("EVALSHA", s.sums[script], "4", "ready", "payload", "leased", "number", arg)
}

func (s *sorted) put(payload []byte) error {
	_, err := s.eval(0, string(payload))
	return err
}

func (s *sorted) take() (any, error) {
	v, err := s.eval(1, strconv.FormatInt(time.Now().Add(time.Minute).Unix(), 10))
	list, _ := v.([]any)
	if err == nil && len(list) != 2 {
		err = errors.New("redis: nothing to take")
	}
	if err != nil {
		return nil, err
	}
	return list[0], nil
}

func (s *sorted) ack(job any) error {
	id, _ := job.(string)
	n, err := s.eval(2, id)
	if err == nil && n != "1" {
		err = fmt.Errorf("redis: %s was not leased", id)
	}
	return err
}

// ours is a worker of ours.
type ours struct {
	queue *client.Queue
}

func (o ours) put(payload []byte) error {
	_, err := o.queue.Put(context.Background(), client.New{Priority: 5, Payload: payload})
	return err
}

func (o ours) take() (any, error) {
	t, err := o.queue.Take(context.Background(), client.Want{Lease: time.Minute, Wait: 10 * time.Second})
	if err == nil && len(t.Leases) != 1 {
		err = errors.New("anteroom: nothing to take")
	}
	if err != nil {
		return nil, err
	}
	return t.Leases[0], nil
}

func (o ours) ack(job any) error {
	l, _ := job.(*client.Lease)
	return l.Ack(context.Background())
}

// bare makes calls that ask a node for nothing but whether it serves: what gRPC
// costs by itself.
type bare struct {
	health healthv1.HealthClient
}

func newBare(t testing.TB, address string) bare {
	t.Helper()
	c, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return bare{healthv1.NewHealthClient(c)}
}

func (b bare) put([]byte) error {
	_, err := b.health.Check(context.Background(), &healthv1.HealthCheckRequest{})
	return err
}

func (b bare) take() (any, error) { return nil, b.put(nil) }
func (b bare) ack(any) error      { return b.put(nil) }
