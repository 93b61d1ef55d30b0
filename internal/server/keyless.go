package server

import (
	"context"
	"encoding/json"
	"net/http"
	"path"
	"slices"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/anteroom/anteroom/gateway"
	anteroomv1 "github.com/anteroom/anteroom/proto/anteroom/v1"
)

// A node that has just started has no keys until it has met another. It cannot
// tell a good ticket from a bad one, and whoever is told that theirs is bad
// throws it away, and their place with it. So it asks them to come again. The
// same goes for the rooms, which a node that has none in its file learns from
// the others within a second or so.

const (
	noKeysYet  = "This node has no signing keys yet. Places and passes are kept. Try again."
	notYet     = "This node is still starting. Places and passes are kept. Try again."
	noRoomsYet = "This node does not know the rooms of its cluster yet. Places and passes are kept. Try again."
)

// roomed hands requests about rooms, and for the sites behind them, to h once
// there is a room.
func (s *Server) roomed(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		own := strings.HasPrefix(r.URL.Path, s.c.Prefix+"/") && !strings.HasPrefix(r.URL.Path, s.c.Prefix+"/v1/rooms/") && !s.movesPlace(r)
		if own || s.hasRooms.Load() {
			h.ServeHTTP(w, r)
			return
		}
		unavailable(w, r, noRoomsYet, s.comeAgain(r))
	})
}

// comeAgain is the status that asks to come again. To a proxy that asks whether
// to let somebody through, a server error is a failure of the check, and may
// mean yes.
func (s *Server) comeAgain(r *http.Request) int {
	about, own := strings.CutPrefix(r.URL.Path, s.c.Prefix+"/v1/rooms/")
	if _, op, _ := strings.Cut(about, "/"); own && (op == "auth" || strings.HasPrefix(op, "auth/") || strings.HasPrefix(op, "auth-only/")) {
		return http.StatusTooManyRequests
	}
	return http.StatusServiceUnavailable
}

// keyed hands requests with tickets and passes to h once there are keys. On the
// pages of a site the gateway does the same by itself: it needs a place to give.
func (s *Server) keyed(h http.Handler) http.Handler {
	carry := []string{"checkin", "leave", "refresh", "end", "abandon", "stream", "transfer", "bookmark", "push", "push.js"}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		own := strings.HasPrefix(r.URL.Path, s.c.Prefix+"/v1/rooms/")
		needed := own && slices.Contains(carry, path.Base(r.URL.Path)) || s.movesPlace(r)
		if !needed || !s.keys.ring.Empty() {
			h.ServeHTTP(w, r)
			return
		}
		unavailable(w, r, noKeysYet, http.StatusServiceUnavailable)
	})
}

// movesPlace reports whether a request takes a place over by its link, of which the
// ticket would be lost with the answer.
func (s *Server) movesPlace(r *http.Request) bool {
	return r.Method == http.MethodPost && strings.HasPrefix(r.URL.Path, s.c.Prefix+"/m/")
}

// unavailable asks a visitor to come again.
func unavailable(w http.ResponseWriter, r *http.Request, detail string, status int) {
	gateway.Hurry(w, r)
	b, _ := json.Marshal(gateway.Problem{ // strings and a number
		Type: "urn:anteroom:problem:unavailable", Title: "Not available just now", Status: status,
		Detail: detail, Code: "unavailable",
	})
	head := w.Header()
	head.Set("Content-Type", "application/problem+json")
	head.Set("Cache-Control", "no-store")
	head.Set("Retry-After", "1")
	w.WriteHeader(status)
	_, _ = w.Write(append(b, '\n'))
}

// keyedCalls are the same for the public gRPC service.
func (s *Server) keyedCalls() []grpc.ServerOption {
	refused := func(method string) error {
		switch {
		case !strings.HasPrefix(method, "/"+anteroomv1.WaitingRoom_ServiceDesc.ServiceName+"/"):
			return nil
		case s.keys.ring.Empty():
			return status.Error(codes.Unavailable, noKeysYet)
		case !s.hasRooms.Load():
			return status.Error(codes.Unavailable, noRoomsYet)
		}
		return nil
	}
	return []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(func(ctx context.Context, q any, i *grpc.UnaryServerInfo, h grpc.UnaryHandler) (any, error) {
			if err := refused(i.FullMethod); err != nil {
				return nil, err
			}
			return h(ctx, q)
		}),
		grpc.ChainStreamInterceptor(func(v any, stream grpc.ServerStream, i *grpc.StreamServerInfo, h grpc.StreamHandler) error {
			if err := refused(i.FullMethod); err != nil {
				return err
			}
			return h(v, stream)
		}),
	}
}
