package gateway_test

import (
	"bufio"
	"bytes"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/anteroom/anteroom/gateway"
	"github.com/anteroom/anteroom/internal/rules"
	"github.com/anteroom/anteroom/internal/ticket"
)

// exchange is a request of a proxy that does not run here, as its documentation
// and source say that it sends it, and what the answer must be.
type exchange struct {
	what     string
	request  string
	expected []string // the status, then "Name: beginning of the value", or "!Name"
}

// recorded reads a file of testdata/proxies.
func recorded(t *testing.T, name string) (all []exchange) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "proxies", name))
	if err != nil {
		t.Fatal(err)
	}
	for part := range strings.SplitSeq(string(b), "\n### ") {
		what, rest, _ := strings.Cut(part, "\n")
		request, expected, ok := strings.Cut(rest, "\n\n> ")
		if !ok {
			continue // what stands before the first
		}
		all = append(all, exchange{what, request + "\n\n", strings.Split(strings.TrimSpace(expected), "\n> ")})
	}
	if len(all) == 0 {
		t.Fatalf("%s: nothing recorded", name)
	}
	return all
}

// read is the request as a server gets it from the proxy's address.
func (e exchange) read(t *testing.T, pass, ticket string) *http.Request {
	t.Helper()
	text := strings.NewReplacer("{pass}", pass, "{ticket}", ticket, "\n", "\r\n").Replace(e.request)
	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(text)))
	if err != nil {
		t.Fatalf("%s: %v", e.what, err)
	}
	r.RemoteAddr = "127.0.0.1:4711"
	return r
}

func (e exchange) check(t *testing.T, got *http.Response) {
	t.Helper()
	if want := e.expected[0]; !strings.HasPrefix(got.Status, want+" ") {
		t.Errorf("%s: %s, want %s; %v", e.what, got.Status, want, got.Header)
	}
	for _, want := range e.expected[1:] {
		name, value, _ := strings.Cut(strings.TrimPrefix(want, "!"), ": ")
		has := got.Header.Values(name)
		if strings.HasPrefix(want, "!") != (len(has) == 0) || len(has) > 1 || len(has) == 1 && !strings.HasPrefix(has[0], value) {
			t.Errorf("%s: %s is %q, want %s", e.what, name, has, want)
		}
	}
}

// wired is a site that is full, with one on it and one who waits.
func wired(t *testing.T) (w *world, pass, ticket string) {
	t.Helper()
	set, err := rules.NewSet([]rules.Rule{{Expression: `http.request.uri.path eq "/healthz"`}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	w = newWorld(t, func(c *gateway.Config) { c.TrustedProxies, c.Rooms[0].Bypass = loopback, set }, shop())
	return w, w.join().Pass, w.join().Ticket
}

func TestWhatProxiesSendIsAnsweredAsTheyNeed(t *testing.T) {
	for _, name := range []string{"traefik.http", "envoy.http", "ingress-nginx.http"} {
		t.Run(strings.TrimSuffix(name, ".http"), func(t *testing.T) {
			for _, e := range recorded(t, name) {
				w, pass, ticket := wired(t)
				answer := httptest.NewRecorder()
				w.ServeHTTP(answer, e.read(t, pass, ticket))
				e.check(t, answer.Result())
			}
		})
	}
}

// example reads a file of examples/ for YAML.
func example(t *testing.T, name string, into any) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "examples", filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.NewDecoder(bytes.NewReader(b)).Decode(into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// target is what a proxy asks for: the URI of an address.
func target(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u.RequestURI()
}

// The examples ask for what was recorded, and pass on what is answered.
func TestTraefiksExampleFits(t *testing.T) {
	var c struct {
		HTTP struct {
			Middlewares map[string]struct {
				ForwardAuth struct {
					Address                  string
					TrustForwardHeader       bool     `yaml:"trustForwardHeader"`
					AuthResponseHeaders      []string `yaml:"authResponseHeaders"`
					AddAuthCookiesToResponse []string `yaml:"addAuthCookiesToResponse"`
				} `yaml:"forwardAuth"`
			}
		}
	}
	example(t, "traefik/dynamic.yml", &c)
	a := c.HTTP.Middlewares["anteroom"].ForwardAuth
	if a.TrustForwardHeader || !slices.Contains(a.AuthResponseHeaders, "X-Anteroom-Pass") {
		t.Errorf("%+v", a)
	}
	for _, e := range recorded(t, "traefik.http") {
		if r := e.read(t, "", ""); r.RequestURI != target(t, a.Address) {
			t.Errorf("recorded %s, the example asks for %s", r.RequestURI, a.Address)
		}
	}
	for _, proto := range []string{"http", "https"} { // a newcomer walks in, and gets one cookie that Traefik passes on
		w := newWorld(t, func(c *gateway.Config) { c.TrustedProxies = loopback }, shop())
		r := w.send("GET", target(t, a.Address), "", append([]string{"X-Forwarded-Uri: /", "X-Forwarded-Proto: " + proto}, navigation...)...)
		if set := r.Cookies(); r.StatusCode != 200 || len(set) != 1 || !slices.Contains(a.AddAuthCookiesToResponse, set[0].Name) {
			t.Errorf("%s: %d %v", proto, r.StatusCode, set)
		}
	}
}

func TestIngressNginxsExampleFits(t *testing.T) {
	var c struct {
		Metadata struct{ Annotations map[string]string }
	}
	example(t, "ingress-nginx/ingress.yaml", &c)
	annotation := func(name string) string { return c.Metadata.Annotations["nginx.ingress.kubernetes.io/"+name] }
	for _, e := range recorded(t, "ingress-nginx.http") {
		if r := e.read(t, "", ""); r.RequestURI != target(t, annotation("auth-url")) {
			t.Errorf("recorded %s, the example asks for %s", r.RequestURI, annotation("auth-url"))
		}
	}
	if annotation("auth-response-headers") != "X-Anteroom-Pass" || annotation("auth-always-set-cookie") != "true" {
		t.Errorf("%v", c.Metadata.Annotations)
	}
	w, _, _ := wired(t)
	page := strings.NewReplacer("$host", "shop.example.com", "$escaped_request_uri", "%2Ftea%3Fkind%3Dgreen").Replace(annotation("auth-signin"))
	r := w.send("GET", target(t, page), "", append([]string{"X-Forwarded-Proto: https"}, navigation...)...)
	var v gateway.View
	r.json(t, &v)
	if v.Kind != gateway.PageWaiting || v.HereURL != "/tea?kind=green" || len(r.Cookies()) != 1 || r.Cookies()[0].Name != "__Host-anteroom_shop" {
		t.Errorf("the page: %d %+v %v", r.StatusCode, v, r.Header)
	}
}

// patterns are Envoy's, of which the examples use two.
type patterns struct {
	Patterns []struct{ Exact, Prefix string }
}

func (p patterns) match(name string) bool {
	name = strings.ToLower(name)
	for _, o := range p.Patterns {
		if o.Exact != "" && o.Exact == name || o.Prefix != "" && strings.HasPrefix(name, o.Prefix) {
			return true
		}
	}
	return false
}

func TestEnvoysExampleFits(t *testing.T) {
	var c struct {
		Static struct {
			Listeners []struct {
				Chains []struct {
					Filters []struct {
						Config struct {
							HTTP []struct {
								Config struct {
									FailureModeAllow bool     `yaml:"failure_mode_allow"`
									AllowedHeaders   patterns `yaml:"allowed_headers"`
									Service          struct {
										PathPrefix string `yaml:"path_prefix"`
										Response   struct {
											Upstream  patterns `yaml:"allowed_upstream_headers"`
											Client    patterns `yaml:"allowed_client_headers"`
											OnSuccess patterns `yaml:"allowed_client_headers_on_success"`
										} `yaml:"authorization_response"`
									} `yaml:"http_service"`
								} `yaml:"typed_config"`
							} `yaml:"http_filters"`
						} `yaml:"typed_config"`
					}
				} `yaml:"filter_chains"`
			}
		} `yaml:"static_resources"`
	}
	example(t, "envoy/envoy-http.yaml", &c)
	f := c.Static.Listeners[0].Chains[0].Filters[0].Config.HTTP[0].Config
	r := f.Service.Response
	if f.FailureModeAllow || !r.Upstream.match("X-Anteroom-Pass") || !r.OnSuccess.match("Set-Cookie") || r.Client.Patterns != nil {
		t.Errorf("%+v", f)
	}
	for _, e := range recorded(t, "envoy.http") {
		asked := e.read(t, "", "")
		if !strings.HasPrefix(asked.RequestURI, f.Service.PathPrefix+"/") {
			t.Errorf("recorded %s, the example asks below %s", asked.RequestURI, f.Service.PathPrefix)
		}
		for name := range asked.Header {
			if name != "Content-Length" && !f.AllowedHeaders.match(name) {
				t.Errorf("%s: Envoy does not send %s", e.what, name)
			}
		}
	}
	// A visitor's word about these is not believed, so it does not come.
	for _, name := range []string{"X-Forwarded-Host", "X-Forwarded-Uri", "X-Forwarded-Method", "X-Original-Uri", "X-Anteroom-Pass"} {
		if f.AllowedHeaders.match(name) {
			t.Errorf("Envoy passes %s on", name)
		}
	}
}

// Should such headers come all the same, they are no help.
func TestHeadersThatAProxyDoesNotSetAreTheVisitorsOwn(t *testing.T) {
	own := "/_anteroom/v1/rooms/shop/"
	forged := []string{
		"X-Forwarded-Uri: /healthz", "X-Forwarded-Method: OPTIONS", "X-Original-Uri: /healthz", "X-Original-Url: http://shop.example.com/healthz",
		"X-Original-Method: OPTIONS",
	}
	for _, c := range []struct {
		proxy, path string
		sets        []string // what the proxy writes, over what the visitor wrote
		status      int
	}{
		{"envoy", "auth/basket", nil, 429},
		{"envoy's first page", "auth/", nil, 429},
		{"the Gateway API's", "auth-only/basket", nil, 429},
		{"the Gateway API's, the first page", "auth-only/", nil, 429},
		{"traefik", "auth?proxy=traefik", []string{"X-Forwarded-Uri: /basket", "X-Forwarded-Method: GET"}, 429},
		{"caddy", "auth?proxy=caddy", []string{"X-Forwarded-Uri: /basket", "X-Forwarded-Method: GET"}, 429},
		{"nginx", "auth?proxy=nginx", []string{"X-Forwarded-Uri: /basket", "X-Forwarded-Method: GET"}, 401},
		{"nginx, another way", "auth?proxy=nginx", []string{"X-Original-Uri: /basket", "X-Original-Method: GET"}, 401},
		{"ingress-nginx", "auth?proxy=ingress-nginx", []string{"X-Original-Url: http://shop.example.com/basket", "X-Original-Method: GET"}, 401},
		{"ingress-nginx that says nothing", "auth?proxy=ingress-nginx", []string{"X-Original-Url: /healthz", "X-Original-Method: GET"}, 401},
		{"haproxy", "auth?proxy=haproxy", []string{"X-Forwarded-Uri: /basket", "X-Forwarded-Method: GET"}, 302},
		{"an unnamed one", "auth", []string{"X-Forwarded-Uri: /basket", "X-Forwarded-Method: GET"}, 429},
	} {
		for i := range forged {
			for j := range forged { // by ones and twos
				headers := slices.Concat([]string{"Origin: http://a.example", "Access-Control-Request-Method: GET", forged[i], forged[j]}, c.sets)
				w, _, _ := wired(t)
				r := w.send("GET", own+c.path, "", headers...)
				if r.StatusCode != c.status {
					t.Errorf("%s, %s, %s: %d", c.proxy, forged[i], forged[j], r.StatusCode)
				}
			}
		}
	}
}

// A path that climbs out of the one it stands behind would come to a request of
// ours that anybody may send, and Envoy takes its 200 for a yes.
func TestNobodyClimbsOutOfTheQuestion(t *testing.T) {
	for _, visitors := range []string{
		"/../status", "/./../status", "//../status", "/a/../../status", "/%2e%2e/status", "/..%2fstatus", "/../../shop/status", "/../../../../.well-known/jwks.json",
		"/../page", "/..", "/../", "/../auth/healthz/../../status", "/../../shop/auth/../status",
	} {
		for _, ask := range []string{"auth", "auth-only"} {
			w, _, _ := wired(t)
			r := w.send("GET", "/_anteroom/v1/rooms/shop/"+ask+visitors, "", navigation...)
			if r.StatusCode != 429 || w.count(ticket.Join) != 3 {
				t.Errorf("%s%s: %d %s", ask, visitors, r.StatusCode, r.body)
			}
		}
	}
}
