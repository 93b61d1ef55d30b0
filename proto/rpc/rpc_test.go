package rpc_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"net"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/ticket"
	peerv1 "github.com/anteroom/anteroom/proto/anteroom/peer/v1"
	anteroomv1 "github.com/anteroom/anteroom/proto/anteroom/v1"
	"github.com/anteroom/anteroom/proto/auth"
	authv3 "github.com/anteroom/anteroom/proto/envoy/service/auth/v3"
	"github.com/anteroom/anteroom/proto/link"
	"github.com/anteroom/anteroom/proto/rpc"
	"github.com/anteroom/anteroom/qpid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type nobody struct{}

func (nobody) Deliver(eviction.Message) {}

func (nobody) Local(context.Context, ticket.Request) (ticket.Answer, error) {
	return ticket.Answer{}, ticket.ErrUnavailable
}

func (nobody) Relay(context.Context, ticket.Request) (ticket.Answer, error) {
	return ticket.Answer{}, ticket.ErrUnavailable
}

func (nobody) Hint(string, qpid.ItemID) {}

func (nobody) Keys([]byte) ([]byte, error) { return nil, nil }

func (nobody) Settings() []byte { return nil }

func (nobody) Agree(eviction.Member, []byte) error { return nil }

func (nobody) Identify(eviction.Peer, string) (eviction.Peer, bool) { return eviction.Peer{}, false }

type room struct {
	anteroomv1.UnimplementedWaitingRoomServer
}

func (room) Status(context.Context, *anteroomv1.StatusRequest) (*anteroomv1.StatusResponse, error) {
	return &anteroomv1.StatusResponse{Queued: 3}, nil
}

// dialer is how to call a server that serves until the test ends.
type dialer func(credentials.TransportCredentials) *grpc.ClientConn

func listen(t *testing.T, server *grpc.Server) dialer { return listenAt(t, server, nil) }

// listenAt is for callers from an address.
func listenAt(t *testing.T, server *grpc.Server, address net.Addr) dialer {
	t.Helper()
	l := bufconn.Listen(1 << 20)
	var at net.Listener = l
	if address != nil {
		at = from{l, address}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(at)
	}()
	t.Cleanup(func() { server.Stop(); <-done })
	return func(c credentials.TransportCredentials) *grpc.ClientConn {
		conn, err := grpc.NewClient("passthrough:///node", grpc.WithTransportCredentials(c),
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
}

// peers serves the nodes of a cluster that has a gossip key.
func peers(t *testing.T) (auth.Policy, dialer) {
	t.Helper()
	policy, err := auth.GossipKey(bytes.Repeat([]byte{1}, 32))
	if err != nil {
		t.Fatal(err)
	}
	links := link.New(link.Config{Self: eviction.Member{Name: "b", Boot: 2}, Peer: nobody{}, Policy: policy})
	return policy, listen(t, rpc.NewPeers(rpc.PeersConfig{Policy: policy, Links: links}))
}

// programs serves programs.
func programs(t *testing.T) (dial dialer, ready func(bool)) {
	t.Helper()
	server, health := rpc.NewServer(rpc.Config{WaitingRoom: room{}})
	return listen(t, server), func(is bool) { rpc.Serving(health, is) }
}

// The port of the nodes has nothing for anybody else: neither the peers'
// service, nor what programs call, nor a list of either.
func TestPeersAnswerMembersOnly(t *testing.T) {
	policy, dial := peers(t)
	forward := func(conn *grpc.ClientConn) error {
		q := &peerv1.ForwardRequest{To: &peerv1.Member{Name: "b", Boot: 2}, Request: &peerv1.Request{Op: peerv1.Op_OP_JOIN}}
		_, err := peerv1.NewPeerClient(conn).Forward(t.Context(), q)
		return err
	}
	reflect := func(conn *grpc.ClientConn) error {
		s, err := reflectionv1.NewServerReflectionClient(conn).ServerReflectionInfo(t.Context())
		if err != nil {
			return err
		}
		_, err = s.Recv()
		return err
	}
	calls := map[string]func(conn *grpc.ClientConn) error{
		"Forward": forward, "reflection": reflect,
		"Join": func(conn *grpc.ClientConn) error {
			_, err := anteroomv1.NewWaitingRoomClient(conn).Join(t.Context(), &anteroomv1.JoinRequest{Room: "shop"})
			return err
		},
		"Insert": func(conn *grpc.ClientConn) error {
			_, err := anteroomv1.NewPriorityQueueClient(conn).Insert(t.Context(), &anteroomv1.InsertRequest{Queue: "jobs", Payload: make([]byte, link.RequestMax)})
			return err
		},
		"Check": func(conn *grpc.ClientConn) error {
			_, err := authv3.NewAuthorizationClient(conn).Check(t.Context(), &authv3.CheckRequest{})
			return err
		},
		"health": func(conn *grpc.ClientConn) error {
			_, err := healthv1.NewHealthClient(conn).Check(t.Context(), &healthv1.HealthCheckRequest{})
			return err
		},
	}
	for name, call := range calls {
		if err := call(dial(insecure.NewCredentials())); status.Code(err) != codes.Unimplemented || !strings.Contains(status.Convert(err).Message(), "node.grpc") {
			t.Errorf("%s without TLS = %v, want Unimplemented that names node.grpc", name, err)
		}
		if err := call(dial(credentials.NewTLS(&tls.Config{InsecureSkipVerify: true}))); status.Code(err) != codes.Unavailable {
			t.Errorf("%s with TLS and no certificate = %v, want no connection", name, err)
		}
		want := codes.Unimplemented
		if name == "Forward" {
			want = codes.OK
		}
		if err := call(dial(policy.Client())); status.Code(err) != want {
			t.Errorf("%s of a member = %v, want %v", name, err, want)
		}
	}
}

// A stranger without TLS has no connection that lasts, whatever it says on it.
func TestStrangersOfThePeersAreCutOff(t *testing.T) {
	_, dial := peers(t)
	c := healthv1.NewHealthClient(dial(insecure.NewCredentials()))
	large := metadata.AppendToOutgoingContext(t.Context(), "x", strings.Repeat("x", 10<<10))
	cut := false
	for range 20 { // 128 KiB are said after a few
		_, err := c.Check(large, &healthv1.HealthCheckRequest{})
		cut = cut || status.Code(err) == codes.Unavailable
	}
	if !cut {
		t.Error("a stranger said 200 kB on one connection")
	}
}

func TestHealthFollowsReadiness(t *testing.T) {
	dial, ready := programs(t)
	c := healthv1.NewHealthClient(dial(insecure.NewCredentials()))
	for _, service := range []string{"", "anteroom.v1.WaitingRoom"} {
		for _, want := range []healthv1.HealthCheckResponse_ServingStatus{healthv1.HealthCheckResponse_NOT_SERVING, healthv1.HealthCheckResponse_SERVING} {
			ready(want == healthv1.HealthCheckResponse_SERVING)
			got, err := c.Check(t.Context(), &healthv1.HealthCheckRequest{Service: service})
			if err != nil || got.GetStatus() != want {
				t.Errorf("Check(%q) = %v, %v, want %v", service, got.GetStatus(), err, want)
			}
		}
	}
}

func TestReflectionListsTheServices(t *testing.T) {
	dial, _ := programs(t)
	s, err := reflectionv1.NewServerReflectionClient(dial(insecure.NewCredentials())).ServerReflectionInfo(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Send(&reflectionv1.ServerReflectionRequest{MessageRequest: &reflectionv1.ServerReflectionRequest_ListServices{}}); err != nil {
		t.Fatal(err)
	}
	r, err := s.Recv()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range r.GetListServicesResponse().GetService() {
		names = append(names, s.GetName())
	}
	for _, want := range []string{"anteroom.v1.WaitingRoom", "grpc.health.v1.Health"} {
		if !slices.Contains(names, want) {
			t.Errorf("reflection lists %v, not %s", names, want)
		}
	}
	if slices.Contains(names, "anteroom.peer.v1.Peer") {
		t.Errorf("reflection lists %v", names)
	}
}

func TestLargeRequestsAreRefused(t *testing.T) {
	dial, _ := programs(t)
	c := anteroomv1.NewWaitingRoomClient(dial(insecure.NewCredentials()))
	large := &anteroomv1.StatusRequest{Room: string(make([]byte, link.RequestMax))}
	if _, err := c.Status(t.Context(), large); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("Status = %v, want ResourceExhausted", err)
	}
}
