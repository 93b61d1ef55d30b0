package gateway_test

import (
	"bufio"
	"context"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/anteroom/anteroom/gateway"
	"github.com/anteroom/anteroom/internal/rules"
)

func TestTrailersBringNothingOfOurs(t *testing.T) {
	got := http.Header{}
	w := newWorld(t, withOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		got = r.Trailer
		w.Header().Set("Trailer", "X-Sum, X-Anteroom-Room")
		_, _ = io.WriteString(w, "ok")
		w.Header().Set("X-Sum", "42")
		w.Header().Set("X-Anteroom-Room", "forged")
		w.Header().Set(http.TrailerPrefix+"Anteroom-Command", "revoke")
		w.Header().Set(http.TrailerPrefix+"Grpc-Status", "0")
	}), shop())
	bad := []string{
		"X-Anteroom-Pass", "x_anteroom_pass", "Anteroom-Command", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-Ip", "Forwarded", "Cookie", "Authorization", "Set-Cookie",
		"X-Original-Url", "X-Rewrite-Url", "X-Http-Method-Override", "Host", "Content-Type", "Connection", "Te", "Upgrade", "Expect", "Cf-Connecting-Ip", "True-Client-Ip",
	}
	lines := []string{
		"POST / HTTP/1.1", "Host: x", "Transfer-Encoding: chunked", "Te: trailers", "Trailer: X-Check, " + strings.Join(bad, ", "), cookie(w.join().Pass), "", "4", "data", "0", "X-Check: 7", "X-Late: 8",
	}
	for _, name := range bad {
		lines = append(lines, name+": forged")
	}
	u, _ := url.Parse(w.url)
	c, err := net.Dial("tcp", u.Host)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	_, _ = io.WriteString(c, strings.Join(lines, "\r\n")+"\r\n\r\n")
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(res.Body); err != nil || res.StatusCode != 200 {
		t.Fatalf("%d, %v", res.StatusCode, err)
	}
	if len(got) != 1 || got.Get("X-Check") != "7" {
		t.Errorf("the origin got the trailers %v", got)
	}
	if res.Trailer.Get("X-Sum") != "42" || res.Trailer.Get("Grpc-Status") != "0" || len(res.Trailer) != 2 {
		t.Errorf("the visitor got the trailers %v", res.Trailer)
	}
}

func TestNoHeaderSaysWhatWasAskedFor(t *testing.T) {
	overriding := []string{"X-Original-URL: /checkout", "X-Original-Uri: /checkout", "X-Rewrite-URL: /checkout", "X_Original_Url: /checkout", "x_rewrite_url: /checkout", "HTTP2-Settings: AAMA"}
	methods := []string{"X-HTTP-Method-Override: POST", "X-HTTP-Method: POST", "X-Method-Override: POST", "X_HTTP_Method_Override: POST"}
	for _, trusted := range []bool{false, true} {
		got := passed(t, trusted, slices.Concat(overriding, methods, []string{"Connection: close, X-Anteroom-Pass, X-Forwarded-For", "Proxy-Connection: keep-alive"})...)
		for name := range got {
			if n := strings.ToLower(strings.ReplaceAll(name, "_", "-")); strings.HasPrefix(n, "x-original") || strings.HasPrefix(n, "x-rewrite") || n == "http2-settings" || n == "connection" {
				t.Errorf("trusted %v: the origin got %s", trusted, name)
			}
		}
		if got.Get("X-Http-Method-Override") != "POST" || got.Get("X-Forwarded-For") == "" {
			t.Errorf("trusted %v: %v", trusted, got)
		}
	}
	// A rule about methods is met by the method.
	set, err := rules.NewSet([]rules.Rule{{Expression: `method in {"GET"}`}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var seen http.Header
	w := newWorld(t, withOrigin(t, func(_ http.ResponseWriter, r *http.Request) { seen = r.Header }, func(c *gateway.Config) { c.Rooms[0].Bypass = set }), shop())
	w.join()
	w.send("GET", "/order", "", methods...)
	for name := range seen {
		if strings.Contains(strings.ToLower(name), "method") {
			t.Errorf("a request without a pass brought %s", name)
		}
	}
}

// TestGRPCGoesThrough calls a real service behind the gateway: metadata, status and
// trailers arrive, of single answers and of streams.
func TestGRPCGoesThrough(t *testing.T) {
	service := health.NewServer()
	service.SetServingStatus("tea", healthv1.HealthCheckResponse_SERVING)
	var te []string
	g := grpc.NewServer(grpc.UnaryInterceptor(func(ctx context.Context, q any, _ *grpc.UnaryServerInfo, h grpc.UnaryHandler) (any, error) {
		_ = grpc.SetTrailer(ctx, metadata.Pairs("x-cost", "7", "x-anteroom-forged", "1"))
		return h(ctx, q)
	}))
	healthv1.RegisterHealthServer(g, service)
	origin := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		te = r.Header["Te"]
		g.ServeHTTP(w, r)
	}))
	origin.EnableHTTP2 = true
	origin.StartTLS()
	t.Cleanup(origin.Close)
	w := newWorld(t, func(c *gateway.Config) {
		u, err := url.Parse(origin.URL)
		if err != nil {
			t.Fatal(err)
		}
		c.Rooms[0].Origin, c.Rooms[0].Routes = u, []gateway.Route{{Host: "*", Path: "/"}}
	}, shop())
	roots := x509.NewCertPool()
	roots.AddCert(origin.Certificate())
	w.TrustOrigins(roots)
	door := httptest.NewUnstartedServer(w.Gateway)
	door.EnableHTTP2 = true
	door.StartTLS()
	t.Cleanup(door.Close)
	trust := x509.NewCertPool()
	trust.AddCert(door.Certificate())
	conn, err := grpc.NewClient(door.Listener.Addr().String(), grpc.WithTransportCredentials(credentials.NewClientTLSFromCert(trust, "example.com")))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+w.join().Pass)
	client := healthv1.NewHealthClient(conn)
	var trailer metadata.MD
	a, err := client.Check(ctx, &healthv1.HealthCheckRequest{Service: "tea"}, grpc.Trailer(&trailer))
	if err != nil || a.GetStatus() != healthv1.HealthCheckResponse_SERVING || strings.Join(trailer["x-cost"], "") != "7" || trailer["x-anteroom-forged"] != nil {
		t.Errorf("%v, %v, trailers %v", a, err, trailer)
	}
	if strings.Join(te, "") != "trailers" {
		t.Errorf("the origin got te: %q", te)
	}
	if _, err := client.Check(ctx, &healthv1.HealthCheckRequest{Service: "coffee"}); status.Code(err) != codes.NotFound {
		t.Errorf("an unknown service: %v", err)
	}
	watch, err := client.Watch(ctx, &healthv1.HealthCheckRequest{Service: "tea"})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []healthv1.HealthCheckResponse_ServingStatus{healthv1.HealthCheckResponse_SERVING, healthv1.HealthCheckResponse_NOT_SERVING} {
		if a, err := watch.Recv(); err != nil || a.GetStatus() != want {
			t.Fatalf("%v, %v, want %v", a, err, want)
		}
		service.SetServingStatus("tea", healthv1.HealthCheckResponse_NOT_SERVING)
	}
}
