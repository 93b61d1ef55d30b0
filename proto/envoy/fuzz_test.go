package envoy_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/anteroom/anteroom/proto/envoy"
	authv3 "github.com/anteroom/anteroom/proto/envoy/service/auth/v3"
)

// FuzzCheck: whatever comes, the answer is one that Envoy shows, and nothing goes
// on that the gateway has not let through, or that is in no room. What the
// gateway is asked is about the room.
func FuzzCheck(f *testing.F) {
	for _, q := range []*authv3.CheckRequest{
		nil,
		asked("GET", "/", nil, nil),
		asked("POST", "/../../join?x=%zz", map[string][]byte{"": nil, "a\nb": []byte("c\r\nd"), ":path": []byte("/")}, nil),
		asked("\x00", "//evil.example/%2e%2e/%2e%2e", nil, map[string]string{"room": "../x?y"}),
	} {
		b, err := proto.Marshal(q)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var q authv3.CheckRequest
		if proto.Unmarshal(b, &q) != nil {
			return
		}
		let := false
		mux := http.NewServeMux()
		mux.HandleFunc("/_anteroom/v1/rooms/{room}/auth/{path...}", func(w http.ResponseWriter, r *http.Request) {
			let = len(r.Header) == 0
			if let {
				w.WriteHeader(http.StatusOK)
				return
			}
			w.WriteHeader(http.StatusServiceUnavailable)
		})
		h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !strings.HasPrefix(r.URL.Path, "/_anteroom/v1/rooms/") || !strings.Contains(r.URL.Path, "/auth/") {
				t.Errorf("asked for %s", r.URL)
			}
			mux.ServeHTTP(w, r)
		})
		a, err := envoy.New(envoy.Config{Handler: h, Room: func(string, *url.URL) (string, error) { return "shop", nil }}).Check(t.Context(), &q)
		if err != nil {
			t.Fatal(err)
		}
		if (a.GetStatus().GetCode() == 0) != let || (a.GetOkResponse() != nil) != let {
			t.Errorf("let through: %v; %v", let, a)
		}
		if s := a.GetDeniedResponse().GetStatus().GetCode(); !let && (s < 300 || s > 499) {
			t.Errorf("denied with %d", s)
		}
		if _, err := proto.Marshal(a); err != nil {
			t.Error(err)
		}
	})
}
