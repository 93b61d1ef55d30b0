// Package envoy answers an Envoy's ext_authz filter over gRPC, as the gateway
// answers it over HTTP: the service envoy.service.auth.v3.Authorization.
//
// A check becomes the request that Envoy would send over HTTP, and whatever
// answers those decides; nothing is decided here. What a gRPC check can say and
// HTTP cannot is used: the visitor's address as Envoy has it, the room's name
// from the route's context_extensions, and which headers an origin must not see.
//
// Envoy takes an error of the call, and a status of 500 or more, for a failure
// of the check, and may then let everybody through. So a visitor who waits is
// never told so by either.
package envoy

import (
	"bytes"
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/protobuf/types/known/wrapperspb"

	authv3 "github.com/anteroom/anteroom/proto/envoy/service/auth/v3"
)

// roomKey is the key of context_extensions that names the room of a route.
const roomKey = "room"

// passHeader brings the pass to the origin; nobody else may send it.
const passHeader = "X-Anteroom-Pass"

// Config is what the service needs.
type Config struct {
	Handler http.Handler // the gateway's
	Prefix  string       // of its paths [/_anteroom]
	// Room names the room of an address, for routes that do not name one; empty:
	// it is in none, and the request goes on. An error: it is not known yet.
	Room func(host string, u *url.URL) (string, error)
	// Allows refuses a caller who may not ask about a room; nil: everybody may.
	Allows      func(ctx context.Context, room string) error
	RequestsMax int          // under way at a time [4096]
	Logger      *slog.Logger // nil: none
}

// Server is the service.
type Server struct {
	authv3.UnimplementedAuthorizationServer
	c        Config
	requests atomic.Int64
}

// New returns the service. Register it with rpc.NewServer.
func New(c Config) *Server {
	c.Prefix = cmp.Or(c.Prefix, "/_anteroom")
	c.RequestsMax = cmp.Or(c.RequestsMax, 4096)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return &Server{c: c}
}

// Check says whether a visitor's request may go on to the site. An error is one
// of the Envoy's: it may not ask about this room.
func (s *Server) Check(ctx context.Context, q *authv3.CheckRequest) (*authv3.CheckResponse, error) {
	defer s.requests.Add(-1)
	if s.requests.Add(1) > int64(s.c.RequestsMax) {
		return later(), nil
	}
	asked := q.GetAttributes()
	visitor, err := url.ParseRequestURI(string(asked.GetRequest().GetHttp().GetPath()))
	if err != nil || !strings.HasPrefix(visitor.Path, "/") {
		return denied(http.StatusBadRequest, nil, nil), nil
	}
	room := asked.GetContextExtensions()[roomKey]
	if room == "" {
		if room, err = s.c.Room(string(asked.GetRequest().GetHttp().GetHost()), visitor); err != nil {
			return later(), nil
		}
	}
	if room == "" {
		return allowed(nil), nil
	}
	if s.c.Allows != nil {
		if err := s.c.Allows(ctx, room); err != nil {
			return nil, err
		}
	}
	own := s.c.Prefix + "/v1/rooms/" + url.PathEscape(room) + "/auth"
	target, err := url.ParseRequestURI(own + visitor.RequestURI())
	if err != nil {
		return denied(http.StatusBadRequest, nil, nil), nil
	}
	r := (&http.Request{
		Method: cmp.Or(string(asked.GetRequest().GetHttp().GetMethod()), http.MethodGet), URL: target, RequestURI: target.RequestURI(),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Body: http.NoBody,
		Host: string(asked.GetRequest().GetHttp().GetHost()), Header: headerOf(asked), RemoteAddr: caller(ctx),
	}).WithContext(ctx)
	return s.ask(r), nil
}

// ask has the gateway answer. What breaks there breaks this request only, as it
// would in a server of HTTP.
func (s *Server) ask(r *http.Request) (answered *authv3.CheckResponse) {
	defer func() {
		if broken := recover(); broken != nil {
			s.c.Logger.LogAttrs(r.Context(), slog.LevelError, "a check for an Envoy broke off",
				slog.Any("panic", broken), slog.String("stack", string(debug.Stack())))
			answered = later()
		}
	}()
	a := answer{header: http.Header{}}
	s.c.Handler.ServeHTTP(&a, r)
	return a.response(r.Method)
}

// caller is the address of the Envoy: what it says of a visitor counts if that
// is a trusted proxy's.
func caller(ctx context.Context) string {
	if p, ok := peer.FromContext(ctx); ok {
		return p.Addr.String()
	}
	return ""
}

// headerOf is the visitor's header, with what Envoy itself knows in the place of
// what a visitor may have written about it.
func headerOf(a *authv3.AttributeContext) http.Header {
	h := http.Header{}
	for name, value := range a.GetRequest().GetHttp().GetHeaders() {
		add(h, name, string(value))
	}
	for _, v := range a.GetRequest().GetHttp().GetHeaderMap().GetHeaders() {
		add(h, v.GetKey(), cmp.Or(string(v.GetRawValue()), string(v.GetValue())))
	}
	if from, err := netip.ParseAddr(a.GetSource().GetAddress().GetSocketAddress().GetAddress()); err == nil {
		h.Set("X-Forwarded-For", from.String())
	}
	if scheme := string(a.GetRequest().GetHttp().GetScheme()); scheme != "" && h.Get("X-Forwarded-Proto") == "" {
		h.Set("X-Forwarded-Proto", scheme)
	}
	return h
}

// add takes over a header unless it is of HTTP/2's own, or about a body, of which
// none comes along.
func add(h http.Header, name, value string) {
	if strings.HasPrefix(name, ":") || strings.EqualFold(name, "Content-Length") || strings.EqualFold(name, "Transfer-Encoding") {
		return
	}
	h.Add(name, value)
}

// answer is a ResponseWriter that keeps what is written.
type answer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (a *answer) Header() http.Header { return a.header }

func (a *answer) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
	}
}

func (a *answer) Write(b []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.body.Write(b)
}

// response is the same in Envoy's words. Who asked with another method than a
// preflight's is never shown a success that is a refusal.
func (a *answer) response(method string) *authv3.CheckResponse {
	switch {
	case a.status == http.StatusOK:
		return allowed(a.header)
	case a.status == http.StatusNoContent && method == http.MethodOptions: // to a preflight
		return denied(a.status, a.header, nil)
	case a.status >= http.StatusMultipleChoices && a.status < http.StatusInternalServerError:
		return denied(a.status, a.header, a.body.Bytes())
	default:
		return denied(http.StatusTooManyRequests, a.header, a.body.Bytes())
	}
}

// allowed lets a request through. To its origin goes the pass of h, or none: not
// one that the visitor made up. To the visitor goes the cookie, beside those that
// the origin sets.
func allowed(h http.Header) *authv3.CheckResponse {
	ok := &authv3.OkHttpResponse{}
	if pass := h.Get(passHeader); pass != "" {
		ok.Headers = []*authv3.HeaderValueOption{header(passHeader, pass, false)}
	} else {
		ok.HeadersToRemove = strings.Split(cmp.Or(h.Get("X-Envoy-Auth-Headers-To-Remove"), strings.ToLower(passHeader)), ",")
	}
	for _, c := range h["Set-Cookie"] {
		ok.ResponseHeadersToAdd = append(ok.ResponseHeadersToAdd, header("Set-Cookie", c, true))
	}
	return &authv3.CheckResponse{
		Status:       &authv3.Status{Code: int32(codes.OK)},
		HttpResponse: &authv3.CheckResponse_OkResponse{OkResponse: ok},
	}
}

// denied shows the visitor an answer instead of the site's.
func denied(status int, h http.Header, body []byte) *authv3.CheckResponse {
	d := &authv3.DeniedHttpResponse{
		Status: &authv3.HttpStatus{Code: int32(status)},     //nolint:gosec // of three digits
		Body:   strings.ToValidUTF8(string(body), "\uFFFD"), // else the whole answer would not parse
	}
	names := make([]string, 0, len(h))
	for name := range h {
		if name != "Content-Length" { // Envoy's to say
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		for i, v := range h[name] {
			d.Headers = append(d.Headers, header(name, v, i > 0))
		}
	}
	return &authv3.CheckResponse{
		Status:       &authv3.Status{Code: int32(codes.PermissionDenied)},
		HttpResponse: &authv3.CheckResponse_DeniedResponse{DeniedResponse: d},
	}
}

// later asks a visitor to come again.
func later() *authv3.CheckResponse {
	return denied(http.StatusTooManyRequests, http.Header{"Retry-After": {"2"}, "Cache-Control": {"no-store"}}, nil)
}

func header(name, value string, more bool) *authv3.HeaderValueOption {
	return &authv3.HeaderValueOption{
		Header: &authv3.HeaderValue{Key: strings.ToLower(name), Value: []byte(value)},
		Append: wrapperspb.Bool(more),
	}
}
