// Package rpc makes the gRPC server of a node: the service of the peers, the
// public ones, health and reflection, all on one port.
//
// Who may call the service of the peers is that service's own business. The
// others are for everyone who reaches the port, so what a caller can make the
// server hold is bounded: the size of a message, the calls on a connection, and
// how long a connection may say nothing.
package rpc

import (
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"

	anteroomv1 "github.com/anteroom/anteroom/proto/anteroom/v1"
	"github.com/anteroom/anteroom/proto/auth"
	authv3 "github.com/anteroom/anteroom/proto/envoy/service/auth/v3"
	"github.com/anteroom/anteroom/proto/link"
)

const (
	callsMax  = 10_000   // at a time, of one connection; a proxy may bring many visitors on one
	headerMax = 16 << 10 // bytes of a call's metadata
)

// Config says what a server offers.
type Config struct {
	Policy auth.Policy // the same as the links'
	// Links are the peers' service, WaitingRoom and Authorization, which is for
	// Envoys, public ones. Nil: not offered.
	Links         *link.Links
	WaitingRoom   anteroomv1.WaitingRoomServer
	Authorization authv3.AuthorizationServer
	PriorityQueue anteroomv1.PriorityQueueServer
	Register      func(grpc.ServiceRegistrar) // offers more of the peers' services; nil: none
	Options       []grpc.ServerOption         // more of them, for tests and interceptors
}

// NewServer returns a server and its health. All services are NOT_SERVING until
// the caller says otherwise; the service of the peers works from the start.
func NewServer(c Config) (*grpc.Server, *health.Server) {
	s := grpc.NewServer(append([]grpc.ServerOption{
		grpc.Creds(c.Policy.Server()),
		grpc.MaxRecvMsgSize(link.RequestMax),
		grpc.MaxConcurrentStreams(callsMax),
		grpc.MaxHeaderListSize(headerMax),
		grpc.ConnectionTimeout(10 * time.Second),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: 30 * time.Second, Timeout: 10 * time.Second, MaxConnectionIdle: 15 * time.Minute}),
	}, c.Options...)...)
	h := health.NewServer()
	healthv1.RegisterHealthServer(s, h)
	Serving(h, false)
	if c.Links != nil {
		c.Links.Register(s)
	}
	if c.WaitingRoom != nil {
		anteroomv1.RegisterWaitingRoomServer(s, c.WaitingRoom)
	}
	if c.Authorization != nil {
		authv3.RegisterAuthorizationServer(s, c.Authorization)
	}
	if c.PriorityQueue != nil {
		anteroomv1.RegisterPriorityQueueServer(s, c.PriorityQueue)
	}
	if c.Register != nil {
		c.Register(s)
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
