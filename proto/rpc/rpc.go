// Package rpc makes the two gRPC servers of a node: one for the other nodes, and
// one for programs.
//
// The nodes' server answers members of the cluster only. Whoever does not prove
// to be one is told where programs call, before anything of the call is read.
//
// The other one has the public services, health and reflection, behind a Guard
// that asks for tokens. What a caller
// can make it hold is bounded: the size of a message, the calls on a connection,
// and how long a connection may say nothing.
package rpc

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"

	anteroomv1 "github.com/anteroom/anteroom/proto/anteroom/v1"
	"github.com/anteroom/anteroom/proto/auth"
	authv3 "github.com/anteroom/anteroom/proto/envoy/service/auth/v3"
	"github.com/anteroom/anteroom/proto/link"
)

const (
	callsMax  = 10_000   // at a time, of one connection; a proxy may bring many visitors on one
	headerMax = 16 << 10 // bytes of a call's metadata
)

// bounds are what both servers allow a caller.
func bounds() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.MaxRecvMsgSize(link.RequestMax),
		grpc.MaxConcurrentStreams(callsMax),
		grpc.MaxHeaderListSize(headerMax),
		grpc.ConnectionTimeout(10 * time.Second),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: 30 * time.Second, Timeout: 10 * time.Second, MaxConnectionIdle: 15 * time.Minute}),
	}
}

// PeersConfig says what the nodes' server offers.
type PeersConfig struct {
	Policy   auth.Policy                 // the same as the links'
	Links    *link.Links                 // nil: not offered
	Register func(grpc.ServiceRegistrar) // offers more of the peers' services; nil: none
	Options  []grpc.ServerOption         // more of them, for tests
}

// elsewhere is what a program reads that calls the nodes' port.
const elsewhere = "this is node.peer, which answers the nodes of its cluster only; programs call node.grpc of the same node, 127.0.0.1:7002 unless it is set"

// NewPeers returns the server that the other nodes call. Every call is proved
// anew, as soon as its header is there: of a stranger's no message is read, and
// no service hears of it.
func NewPeers(c PeersConfig) *grpc.Server {
	members := func(ctx context.Context, _ *tap.Info) (context.Context, error) {
		if err := c.Policy.Check(ctx); err != nil {
			return nil, status.Errorf(codes.Unimplemented, "%s (%v)", elsewhere, err)
		}
		return ctx, nil
	}
	o := append(bounds(), grpc.Creds(c.Policy.Server()), grpc.InTapHandle(members),
		grpc.UnknownServiceHandler(func(any, grpc.ServerStream) error { return status.Error(codes.Unimplemented, elsewhere) }))
	s := grpc.NewServer(append(o, c.Options...)...)
	if c.Links != nil {
		c.Links.Register(s)
	}
	if c.Register != nil {
		c.Register(s)
	}
	return s
}

// Config says what the programs' server offers. Nil: not offered.
type Config struct {
	WaitingRoom   anteroomv1.WaitingRoomServer
	PriorityQueue anteroomv1.PriorityQueueServer
	Authorization authv3.AuthorizationServer // for Envoys
	Guard         *Guard                     // nil: everybody who reaches it may call
	Options       []grpc.ServerOption        // credentials and interceptors
}

// NewServer returns the server that programs call, and its health. All services
// are NOT_SERVING until the caller says otherwise.
func NewServer(c Config) (*grpc.Server, *health.Server) {
	o := bounds()
	if c.Guard != nil {
		o = append(o, c.Guard.Options()...) // before the interceptors in c.Options
	}
	s := grpc.NewServer(append(o, c.Options...)...)
	h := health.NewServer()
	healthv1.RegisterHealthServer(s, h)
	Serving(h, false)
	if c.WaitingRoom != nil {
		anteroomv1.RegisterWaitingRoomServer(s, c.WaitingRoom)
	}
	if c.Authorization != nil {
		authv3.RegisterAuthorizationServer(s, c.Authorization)
	}
	if c.PriorityQueue != nil {
		anteroomv1.RegisterPriorityQueueServer(s, c.PriorityQueue)
	}
	reflection.Register(s)
	return s, h
}

// Serving says whether the node can serve visitors, as /readyz does over HTTP.
func Serving(h *health.Server, ready bool) {
	is := healthv1.HealthCheckResponse_NOT_SERVING
	if ready {
		is = healthv1.HealthCheckResponse_SERVING
	}
	h.SetServingStatus("", is)
	h.SetServingStatus(anteroomv1.WaitingRoom_ServiceDesc.ServiceName, is)
	h.SetServingStatus(anteroomv1.PriorityQueue_ServiceDesc.ServiceName, is)
}
