package rpc_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"net"
	"slices"
	"testing"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/ticket"
	peerv1 "github.com/anteroom/anteroom/proto/anteroom/peer/v1"
	anteroomv1 "github.com/anteroom/anteroom/proto/anteroom/v1"
	"github.com/anteroom/anteroom/proto/auth"
	"github.com/anteroom/anteroom/proto/link"
	"github.com/anteroom/anteroom/proto/rpc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type nobody struct{}

func (nobody) Deliver(eviction.Message) {}

func (nobody) Local(context.Context, ticket.Request) (ticket.Answer, error) {
	return ticket.Answer{}, ticket.ErrUnavailable
}

func (nobody) Keys([]byte) ([]byte, error) { return nil, nil }

func (nobody) Settings() []byte { return nil }

func (nobody) Agree(eviction.Member, []byte) error { return nil }

type room struct {
	anteroomv1.UnimplementedWaitingRoomServer
}

func (room) Status(context.Context, *anteroomv1.StatusRequest) (*anteroomv1.StatusResponse, error) {
	return &anteroomv1.StatusResponse{Queued: 3}, nil
}

// serve returns a way to call a node whose peers have a gossip key.
func serve(t *testing.T) (policy auth.Policy, dial func(credentials.TransportCredentials) *grpc.ClientConn, ready func(bool)) {
	t.Helper()
	policy, err := auth.GossipKey(bytes.Repeat([]byte{1}, 32))
	if err != nil {
		t.Fatal(err)
	}
	links := link.New(link.Config{Self: eviction.Member{Name: "b", Boot: 2}, Peer: nobody{}, Policy: policy})
	server, health := rpc.NewServer(rpc.Config{Policy: policy, Links: links, WaitingRoom: room{}})
	l := bufconn.Listen(1 << 20)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(l)
	}()
	t.Cleanup(func() { server.Stop(); <-done })
	dial = func(c credentials.TransportCredentials) *grpc.ClientConn {
		conn, err := grpc.NewClient("passthrough:///node", grpc.WithTransportCredentials(c),
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
	return policy, dial, func(is bool) { rpc.Serving(health, is) }
}

func TestPublicServicesAreForEveryoneAndPeersForPeers(t *testing.T) {
	policy, dial, _ := serve(t)
	stranger := credentials.NewTLS(&tls.Config{InsecureSkipVerify: true})
	for name, test := range map[string]struct {
		credentials credentials.TransportCredentials
		peer        codes.Code
	}{
		"without TLS":                {insecure.NewCredentials(), codes.Unauthenticated},
		"TLS without a certificate":  {stranger, codes.Unauthenticated},
		"TLS with the peers' secret": {policy.Client(), codes.OK},
	} {
		conn := dial(test.credentials)
		r, err := anteroomv1.NewWaitingRoomClient(conn).Status(t.Context(), &anteroomv1.StatusRequest{})
		if r.GetQueued() != 3 || err != nil {
			t.Errorf("%s: Status = %v, %v", name, r, err)
		}
		q := &peerv1.ForwardRequest{To: &peerv1.Member{Name: "b", Boot: 2}, Request: &peerv1.Request{Op: peerv1.Op_OP_JOIN}}
		if _, err := peerv1.NewPeerClient(conn).Forward(t.Context(), q); status.Code(err) != test.peer {
			t.Errorf("%s: Forward = %v, want %v", name, err, test.peer)
		}
	}
}

func TestHealthFollowsReadiness(t *testing.T) {
	_, dial, ready := serve(t)
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
	_, dial, _ := serve(t)
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
	for _, want := range []string{"anteroom.v1.WaitingRoom", "anteroom.peer.v1.Peer", "grpc.health.v1.Health"} {
		if !slices.Contains(names, want) {
			t.Errorf("reflection lists %v, not %s", names, want)
		}
	}
}

func TestLargeRequestsAreRefused(t *testing.T) {
	_, dial, _ := serve(t)
	c := anteroomv1.NewWaitingRoomClient(dial(insecure.NewCredentials()))
	large := &anteroomv1.StatusRequest{Room: string(make([]byte, link.RequestMax))}
	if _, err := c.Status(t.Context(), large); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("Status = %v, want ResourceExhausted", err)
	}
}
