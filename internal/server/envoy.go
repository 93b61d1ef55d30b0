package server

import (
	"net/http"
	"net/url"

	"github.com/anteroom/anteroom/internal/ticket"
	"github.com/anteroom/anteroom/proto/envoy"
	"github.com/anteroom/anteroom/proto/rpc"
)

// envoys answers Envoys over gRPC with what answers them over HTTP.
func (s *Server) envoys(visitors http.Handler) *envoy.Server {
	return envoy.New(envoy.Config{
		Handler: visitors, Prefix: s.c.Prefix, Logger: s.log, Allows: rpc.AllowsRoom,
		Room: func(host string, u *url.URL) (string, error) {
			if !s.hasRooms.Load() {
				return "", ticket.ErrUnavailable // it has not learned them yet
			}
			return s.gateway.RoomAt(host, u), nil
		},
	})
}
