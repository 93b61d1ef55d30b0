package envoy_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/anteroom/anteroom/proto/envoy"
	authv3 "github.com/anteroom/anteroom/proto/envoy/service/auth/v3"
	"github.com/anteroom/anteroom/proto/rpc"
)

// asked is a check for a request of a visitor at 192.0.2.7.
func asked(method, target string, header map[string][]byte, extensions map[string]string) *authv3.CheckRequest {
	return &authv3.CheckRequest{Attributes: &authv3.AttributeContext{
		Source: &authv3.AttributeContext_Peer{Address: &authv3.Address{SocketAddress: &authv3.SocketAddress{Address: "192.0.2.7"}}},
		Request: &authv3.AttributeContext_Request{Http: &authv3.AttributeContext_HttpRequest{
			Method: []byte(method), Path: []byte(target), Host: []byte("shop.example.com"), Scheme: []byte("https"), Headers: header,
		}},
		ContextExtensions: extensions,
	}}
}

// rooms knows one, of one host.
func rooms(host string, u *url.URL) (string, error) {
	if host == "shop.example.com" && u.Path != "/open" {
		return "shop", nil
	}
	return "", nil
}

func check(t *testing.T, c envoy.Config, q *authv3.CheckRequest) *authv3.CheckResponse {
	t.Helper()
	if c.Room == nil {
		c.Room = rooms
	}
	ctx := peer.NewContext(t.Context(), &peer.Peer{Addr: &net.TCPAddr{IP: net.IPv4(10, 0, 0, 9), Port: 4711}})
	r, err := envoy.New(c).Check(ctx, q)
	if err != nil {
		t.Fatalf("Check = %v", err)
	}
	return r
}

// A check becomes the request that Envoy sends over HTTP, with Envoy's word for
// who the visitor is and not the visitor's own.
func TestCheckBecomesTheRequestOverHTTP(t *testing.T) {
	var got *http.Request
	h := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r })
	check(t, envoy.Config{Handler: h}, asked("POST", "/cart//a%2Fb?x=1&proxy=nginx", map[string][]byte{
		":path": []byte("/cart"), "cookie": []byte("anteroom_shop=E1; b=\xff"), "content-length": []byte("5"), "x-forwarded-for": []byte("203.0.113.1"),
		"x-forwarded-proto": []byte("https"),
	}, nil))
	if got == nil {
		t.Fatal("nobody was asked")
	}
	want := http.Header{"Cookie": {"anteroom_shop=E1; b=\xff"}, "X-Forwarded-For": {"192.0.2.7"}, "X-Forwarded-Proto": {"https"}}
	if diff := cmp.Diff(want, got.Header); diff != "" {
		t.Errorf("header (-want +got):\n%s", diff)
	}
	line := fmt.Sprint(got.Method, " ", got.URL.RequestURI(), " ", got.Host, " ", got.RemoteAddr, " ", got.ContentLength)
	if line != "POST /_anteroom/v1/rooms/shop/auth/cart//a%2Fb?x=1&proxy=nginx shop.example.com 10.0.0.9:4711 0" {
		t.Errorf("asked with %s", line)
	}
	raw := asked("GET", "/", nil, map[string]string{"room": "a b"})
	raw.Attributes.Request.Http.HeaderMap = &authv3.HeaderMap{Headers: []*authv3.HeaderValue{{Key: "accept", RawValue: []byte("text/html")}}}
	check(t, envoy.Config{Handler: h, Prefix: "/_w"}, raw)
	if got.URL.RequestURI() != "/_w/v1/rooms/a%20b/auth/" || got.Header.Get("Accept") != "text/html" || got.Header.Get("X-Forwarded-Proto") != "https" {
		t.Errorf("asked with %s %v", got.URL.RequestURI(), got.Header)
	}
}

// What is said to Envoy is a status that it shows as it is, and never an error.
func TestAnswerIsWhatEnvoyShows(t *testing.T) {
	for _, c := range []struct {
		status int
		want   int32 // 0: the request goes on
	}{{200, 0}, {0, 429}, {204, 429}, {302, 302}, {303, 303}, {403, 403}, {404, 404}, {429, 429}, {500, 429}, {503, 429}, {599, 429}} {
		h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Set-Cookie", "anteroom_shop=I2")
			w.Header().Set("X-Anteroom-Pass", "a.b.c")
			w.Header().Set("Content-Length", "7")
			if c.status != 0 {
				w.WriteHeader(c.status)
				w.WriteHeader(200) // too late
				_, _ = w.Write([]byte("a page\xff"))
			}
		})
		r := check(t, envoy.Config{Handler: h}, asked("GET", "/", nil, nil))
		if c.want == 0 {
			ok := r.GetOkResponse()
			if r.GetStatus().GetCode() != 0 || headers(ok.GetHeaders()) != "x-anteroom-pass=a.b.c " ||
				headers(ok.GetResponseHeadersToAdd()) != "set-cookie+=anteroom_shop=I2 " || len(ok.GetHeadersToRemove()) != 0 {
				t.Errorf("%d: %v", c.status, r)
			}
			continue
		}
		d := r.GetDeniedResponse()
		if r.GetStatus().GetCode() == 0 || d.GetStatus().GetCode() != c.want || headers(d.GetHeaders()) != "set-cookie=anteroom_shop=I2 x-anteroom-pass=a.b.c " ||
			c.status != 0 && d.GetBody() != "a page\uFFFD" {
			t.Errorf("%d: %v", c.status, r)
		}
	}
}

func headers(all []*authv3.HeaderValueOption) (s string) {
	for _, h := range all {
		s += h.GetHeader().GetKey()
		if h.GetAppend().GetValue() {
			s += "+"
		}
		s += "=" + string(h.GetHeader().GetValue()) + " "
	}
	return s
}

func TestWhatIsNoRoomsBusinessGoesOnWithoutAPass(t *testing.T) {
	never := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the gateway was asked") })
	r := check(t, envoy.Config{Handler: never}, asked("GET", "/open", nil, nil))
	if r.GetStatus().GetCode() != 0 || len(r.GetOkResponse().GetHeadersToRemove()) != 1 || r.GetOkResponse().GetHeadersToRemove()[0] != "x-anteroom-pass" {
		t.Errorf("of no room: %v", r)
	}
	for _, target := range []string{"", "*", "shop.example.com:443", "http://%zz/", "/%zz"} {
		if r := check(t, envoy.Config{Handler: never}, asked("GET", target, nil, nil)); r.GetDeniedResponse().GetStatus().GetCode() != 400 {
			t.Errorf("%q: %v", target, r)
		}
	}
	unknown := func(string, *url.URL) (string, error) { return "", errors.New("no rooms yet") }
	if r := check(t, envoy.Config{Handler: never, Room: unknown}, asked("GET", "/", nil, nil)); r.GetDeniedResponse().GetStatus().GetCode() != 429 {
		t.Errorf("before there are rooms: %v", r)
	}
}

func TestOneCheckThatBreaksBreaksNoOther(t *testing.T) {
	h := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	if r := check(t, envoy.Config{Handler: h}, asked("GET", "/", nil, nil)); r.GetDeniedResponse().GetStatus().GetCode() != 429 {
		t.Errorf("%v", r)
	}
}

func TestMoreChecksThanTheBoundAreToldToComeAgain(t *testing.T) {
	began, end, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	h := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { close(began); <-end })
	s := envoy.New(envoy.Config{Handler: h, Room: rooms, RequestsMax: 1})
	go func() {
		_, _ = s.Check(context.Background(), asked("GET", "/", nil, nil))
		close(done)
	}()
	<-began
	r, err := s.Check(t.Context(), asked("GET", "/", nil, nil))
	if err != nil || r.GetDeniedResponse().GetStatus().GetCode() != 429 || headers(r.GetDeniedResponse().GetHeaders()) != "cache-control=no-store retry-after=2 " {
		t.Errorf("%v %v", r, err)
	}
	close(end)
	<-done
}

// The bytes are those of Envoy's own messages: field numbers as its documentation
// has them, written by hand.
func TestWireIsEnvoys(t *testing.T) {
	field := func(n protowire.Number, b ...byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, n, protowire.BytesType), b)
	}
	join := func(parts ...[]byte) (all []byte) {
		for _, p := range parts {
			all = append(all, p...)
		}
		return all
	}
	text := func(n protowire.Number, s string) []byte { return field(n, []byte(s)...) }
	pair := func(n protowire.Number, k, v string) []byte { return field(n, join(text(1, k), text(2, v))...) }
	q := field(1, join( // attributes
		field(1, join(field(1, field(1, join(text(2, "192.0.2.7"), protowire.AppendVarint(protowire.AppendTag(nil, 3, protowire.VarintType), 5))...)...), text(4, "principal"))...),
		field(2, field(1, field(1, text(2, "10.0.0.1")...)...)...),
		field(4, join(
			field(1, protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), 1700000000)...),
			field(2, join(text(1, "id"), text(2, "GET"), pair(3, "cookie", "a=b"), text(4, "/x"), text(5, "h"), text(6, "http"), text(10, "HTTP/2"))...),
		)...),
		pair(10, "room", "shop"),
	)...)
	var got authv3.CheckRequest
	if err := proto.Unmarshal(q, &got); err != nil {
		t.Fatal(err)
	}
	a := got.GetAttributes()
	h := a.GetRequest().GetHttp()
	if a.GetSource().GetAddress().GetSocketAddress().GetAddress() != "192.0.2.7" || a.GetContextExtensions()["room"] != "shop" ||
		string(h.GetMethod()) != "GET" || string(h.GetHeaders()["cookie"]) != "a=b" || string(h.GetPath()) != "/x" || string(h.GetHost()) != "h" || string(h.GetScheme()) != "http" {
		t.Errorf("read %v", &got)
	}
	denial := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "/w")
		w.WriteHeader(303)
		_, _ = w.Write([]byte("p"))
	})
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(check(t, envoy.Config{Handler: denial}, &got))
	if err != nil {
		t.Fatal(err)
	}
	number := func(n protowire.Number, v uint64) []byte {
		return protowire.AppendVarint(protowire.AppendTag(nil, n, protowire.VarintType), v)
	}
	want := join(
		field(1, number(1, 7)...), // PERMISSION_DENIED
		field(2, join(field(1, number(1, 303)...), field(2, join(pair(1, "location", "/w"), field(2))...), text(3, "p"))...),
	)
	if diff := cmp.Diff(want, b); diff != "" {
		t.Errorf("written (-want +got):\n%s", diff)
	}
}

// Envoy calls the method by its own name, with no TLS and without being a peer.
func TestEnvoyFindsTheServiceOnThePeerPort(t *testing.T) {
	h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	server, _ := rpc.NewServer(rpc.Config{Authorization: envoy.New(envoy.Config{Handler: h, Room: rooms})})
	l := bufconn.Listen(1 << 16)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	defer func() {
		server.Stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	conn, err := grpc.NewClient("passthrough:///node", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	var r authv3.CheckResponse
	if err := conn.Invoke(t.Context(), "/envoy.service.auth.v3.Authorization/Check", asked("GET", "/", nil, nil), &r); err != nil {
		t.Fatal(err)
	}
	if r.GetOkResponse() == nil || r.GetStatus().GetCode() != 0 {
		t.Errorf("%v", &r)
	}
}
