package waitingroom_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/ticket"
	anteroomv1 "github.com/anteroom/anteroom/proto/anteroom/v1"
	"github.com/anteroom/anteroom/proto/rpc"
	"github.com/anteroom/anteroom/proto/waitingroom"
	"github.com/anteroom/anteroom/qpid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// queue answers as it is told to, in the room "shop".
type queue struct {
	mu     sync.Mutex
	state  waitingroom.RoomState
	answer ticket.Answer
	err    error
	asked  []ticket.Request
	hold   chan struct{}
	news   chan struct{}
	watch  int // streams that watch
}

func (q *queue) Do(ctx context.Context, r ticket.Request) (ticket.Answer, error) {
	q.mu.Lock()
	q.asked = append(q.asked, r)
	hold, a, err := q.hold, q.answer, q.err
	q.mu.Unlock()
	if hold != nil {
		select {
		case <-hold:
		case <-ctx.Done():
			return ticket.Answer{}, ctx.Err()
		}
	}
	return a, err
}

func (q *queue) Room(name string) (waitingroom.RoomState, bool) { return q.state, name == "shop" }

func (q *queue) Called(string, qpid.ItemID) (<-chan struct{}, func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.watch++
	return q.news, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.watch--
	}
}

func (q *queue) Clock() int64 { return 5_000_000 }

func (q *queue) will(a ticket.Answer, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.answer, q.err = a, err
}

func (q *queue) requests() []ticket.Request {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.asked
}

// sealer seals by writing the stamp.
type sealer struct{}

func (sealer) Ticket(t ticket.Ticket) (string, error) {
	return fmt.Sprintf("t:%s:%d", t.Room, t.Stamp), nil
}

func (sealer) Pass(p ticket.Pass) (string, error) {
	return fmt.Sprintf("p:%s:%d", p.Room, p.Stamp), nil
}

func (sealer) JWT(p ticket.Pass, issuer string) (string, error) {
	return fmt.Sprintf("%s:%d", issuer, p.Stamp), nil
}

func (sealer) OpenTicket(room, s string) (t ticket.Ticket, err error) {
	t.Room = room
	_, err = fmt.Sscanf(s, "t:"+room+":%d", &t.Stamp)
	return t, err
}

func (sealer) OpenPass(room, s string) (p ticket.Pass, err error) {
	p.Room = room
	_, err = fmt.Sscanf(s, "p:"+room+":%d", &p.Stamp)
	return p, err
}

// serve offers q, and returns a client.
func serve(t *testing.T, q *queue, change func(*waitingroom.Config)) anteroomv1.WaitingRoomClient {
	t.Helper()
	c := waitingroom.Config{Queue: q, Sealer: sealer{}, Rand: bytes.NewReader(bytes.Repeat([]byte{7}, 1600))}
	if change != nil {
		change(&c)
	}
	service := waitingroom.New(c)
	server, _ := rpc.NewServer(rpc.Config{WaitingRoom: service})
	l := bufconn.Listen(1 << 16)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(l)
	}()
	conn, err := grpc.NewClient("passthrough:///node", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		service.Close()
		server.GracefulStop()
		_ = conn.Close()
		<-done
	})
	return anteroomv1.NewWaitingRoomClient(conn)
}

func shop() *queue {
	return &queue{
		state: waitingroom.RoomState{Room: eviction.Room{Name: "shop", Target: 200}, Queued: 9, Active: 150, Called: 50, AdmittedPerMinute: 12},
		news:  make(chan struct{}, 1),
	}
}

func waiting(position int) ticket.Answer {
	return ticket.Answer{
		State: ticket.Waiting, Ticket: ticket.Ticket{Room: "shop", Stamp: 3_000_000}, Position: position, Queued: 9,
		Wait: ticket.Wait{P25: 1500 * time.Millisecond, P50: 2 * time.Second, P75: 3 * time.Second}, Refresh: 2 * time.Second,
	}
}

func admitted() ticket.Answer {
	return ticket.Answer{State: ticket.Admitted, Pass: ticket.Pass{Room: "shop", Stamp: 3_000_000, Expires: 305_000_000}}
}
