package proxies

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"

	authv3 "github.com/anteroom/anteroom/proto/envoy/service/auth/v3"
)

// envoy asks over gRPC for one visitor, and keeps the cookie as the visitor's
// browser would.
type envoy struct {
	t      *testing.T
	checks authv3.AuthorizationClient
	room   string // of context_extensions
	cookie string // name=value
}

func (e *envoy) check(method, path string, headers ...string) *authv3.CheckResponse {
	e.t.Helper()
	h := map[string][]byte{
		":method": []byte(method), ":path": []byte(path), "accept": []byte("text/html"), "sec-fetch-mode": []byte("navigate"), "sec-fetch-dest": []byte("document"),
		"x-forwarded-for": []byte("203.0.113.9"), "x-forwarded-proto": []byte("https"),
	}
	if e.cookie != "" {
		h["cookie"] = []byte("basket=gyokuro; " + e.cookie)
	}
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ": ")
		h[name] = []byte(value)
	}
	r, err := e.checks.Check(e.t.Context(), &authv3.CheckRequest{Attributes: &authv3.AttributeContext{
		Source: &authv3.AttributeContext_Peer{Address: &authv3.Address{SocketAddress: &authv3.SocketAddress{Address: "203.0.113.9"}}},
		Request: &authv3.AttributeContext_Request{Http: &authv3.AttributeContext_HttpRequest{
			Method: []byte(method), Path: []byte(path), Host: []byte("shop.example.com"), Scheme: []byte("https"), Headers: h,
		}},
		ContextExtensions: map[string]string{"room": e.room},
	}}, grpc.WaitForReady(true))
	if err != nil {
		e.t.Fatalf("Check = %v", err)
	}
	all := append(r.GetOkResponse().GetResponseHeadersToAdd(), r.GetDeniedResponse().GetHeaders()...)
	if set := once(e.t, all, "set-cookie"); set != "" {
		e.cookie, _, _ = strings.Cut(set, ";")
	}
	return r
}

// once returns a header that is there at most once.
func once(t *testing.T, all []*authv3.HeaderValueOption, name string) (value string) {
	t.Helper()
	for _, h := range all {
		if h.GetHeader().GetKey() != name {
			continue
		}
		if value != "" {
			t.Errorf("%s is there twice", name)
		}
		value = string(h.GetHeader().GetValue())
	}
	return value
}

// pass is what the origin gets; empty: the request does not get there.
func pass(t *testing.T, r *authv3.CheckResponse) string {
	t.Helper()
	if (r.GetStatus().GetCode() == int32(codes.OK)) != (r.GetOkResponse() != nil) {
		t.Errorf("the status does not fit: %v", r)
	}
	return once(t, r.GetOkResponse().GetHeaders(), "x-anteroom-pass")
}

// The same journey as before the proxies that run here, told by a client that
// speaks as an Envoy does, to both nodes of a cluster by turns.
func TestEnvoyAsksOverGRPC(t *testing.T) {
	wanted(t)
	nodes := startNodes(t, room(t, "anteroom.yaml", time.Minute))
	var checks []authv3.AuthorizationClient
	for _, n := range nodes {
		conn, err := grpc.NewClient(n.GRPC, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		checks = append(checks, authv3.NewAuthorizationClient(conn))
	}
	first, second := &envoy{t: t, checks: checks[0], room: "shop"}, &envoy{t: t, checks: checks[1]} // whose room is found by its address
	eventually(t, "the first is in", func() bool {                                                  // the slot may be at the other node just now
		return pass(t, first.check("GET", "/")) != ""
	})
	if !strings.HasPrefix(first.cookie, "__Host-anteroom_shop=I") {
		t.Fatalf("the first has %.30s", first.cookie)
	}
	first.checks = checks[1]
	if r := first.check("POST", "/basket"); pass(t, r) == "" || len(r.GetOkResponse().GetResponseHeadersToAdd()) != 0 {
		t.Errorf("with a pass, at the other node: %v", r)
	}
	r := second.check("GET", "/tea/gyokuro?a=b")
	d := r.GetDeniedResponse()
	if r.GetStatus().GetCode() == 0 || d.GetStatus().GetCode() != http.StatusTooManyRequests || !strings.Contains(d.GetBody(), "You are in line") ||
		!strings.HasPrefix(second.cookie, "__Host-anteroom_shop=E") || once(t, d.GetHeaders(), "cache-control") != "no-store" {
		t.Fatalf("the second: %v", r)
	}
	r = second.check("POST", "/checkout", "referer: https://shop.example.com/basket")
	if d := r.GetDeniedResponse(); d.GetStatus().GetCode() != http.StatusSeeOther || once(t, d.GetHeaders(), "location") != "https://shop.example.com/basket" {
		t.Errorf("a form: %v", r)
	}
	r = second.check("GET", "/api", "sec-fetch-mode: cors", "sec-fetch-dest: empty", "accept: */*")
	if d := r.GetDeniedResponse(); d.GetStatus().GetCode() != http.StatusTooManyRequests || !strings.Contains(d.GetBody(), `"state":"waiting"`) {
		t.Errorf("a script: %v", r)
	}
	bypass(t, &envoy{t: t, checks: checks[0], room: "shop"})

	q, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+nodes[0].Gateway+"/_anteroom/v1/rooms/shop/end", nil)
	if err != nil {
		t.Fatal(err)
	}
	_, sealed, _ := strings.Cut(first.cookie, "=")
	q.Header.Set("Authorization", "Bearer "+sealed)
	resp, err := http.DefaultClient.Do(q)
	if err != nil || resp.StatusCode != http.StatusNoContent {
		t.Fatalf("end: %v %v", resp, err)
	}
	_ = resp.Body.Close()
	eventually(t, "the second is in", func() bool {
		return pass(t, second.check("GET", "/tea/gyokuro")) != "" && strings.HasPrefix(second.cookie, "__Host-anteroom_shop=I")
	})
}

// bypass is what need not wait, and what passes itself off as that in vain.
func bypass(t *testing.T, stranger *envoy) {
	t.Helper()
	r := stranger.check("GET", "/healthz", "x-anteroom-pass: a.b.c")
	want := &authv3.CheckResponse{
		Status:       &authv3.Status{},
		HttpResponse: &authv3.CheckResponse_OkResponse{OkResponse: &authv3.OkHttpResponse{HeadersToRemove: []string{"x-anteroom-pass"}}},
	}
	if !proto.Equal(r, want) {
		t.Errorf("a health check: %v", r)
	}
	for _, forged := range []string{"x-forwarded-uri: /healthz", "x-original-url: /healthz", "x-forwarded-method: OPTIONS", "x-forwarded-for: 198.51.100.7"} {
		r := stranger.check("POST", "/webhooks/payment", forged, "access-control-request-method: GET", "origin: http://a.example")
		if r.GetStatus().GetCode() == 0 {
			t.Errorf("%s is in: %v", forged, r)
		}
	}
}
