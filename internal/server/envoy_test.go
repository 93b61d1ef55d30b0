package server

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/anteroom/anteroom/internal/seal"
	authv3 "github.com/anteroom/anteroom/proto/envoy/service/auth/v3"
)

// To a proxy that asks, a node without rooms never answers with a server error,
// which might let everybody in.
func TestANodeThatIsNotReadyLetsNobodyThroughAnotherProxy(t *testing.T) {
	s := New(oneNode(), Options{})
	s.keys = &keys{ring: seal.New(seal.Config{Now: s.passTime})}
	front := s.roomed(s.keyed(http.NotFoundHandler()))
	for path, want := range map[string]int{
		"/_anteroom/v1/rooms/shop/auth": 429, "/_anteroom/v1/rooms/shop/auth/": 429, "/_anteroom/v1/rooms/shop/auth/join": 429,
		"/_anteroom/v1/rooms/shop/join": 503, "/_anteroom/v1/rooms/auth": 503, "/auth": 503, "/a/auth/": 503,
	} {
		w := httptest.NewRecorder()
		front.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if w.Code != want || w.Header().Get("Retry-After") == "" {
			t.Errorf("%s: %d %v, want %d", path, w.Code, w.Header(), want)
		}
	}
	for _, extensions := range []map[string]string{nil, {"room": "shop"}} {
		r, err := s.envoys(front).Check(t.Context(), &authv3.CheckRequest{Attributes: &authv3.AttributeContext{
			Request:           &authv3.AttributeContext_Request{Http: &authv3.AttributeContext_HttpRequest{Path: []byte("/")}},
			ContextExtensions: extensions,
		}})
		if err != nil || r.GetStatus().GetCode() == 0 || r.GetDeniedResponse().GetStatus().GetCode() != 429 {
			t.Errorf("over gRPC, %v: %v %v", extensions, r, err)
		}
	}
}
