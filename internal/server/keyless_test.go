package server

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/config"
	"github.com/anteroom/anteroom/internal/seal"
)

// A node that has no keys yet takes no ticket for a bad one, and no place for one
// that it could not give: whoever brings either is asked to come again.
func TestANodeWithoutKeysAsksToComeAgain(t *testing.T) {
	ring := seal.New(seal.Config{Now: func() int64 { return time.Now().UnixMicro() }})
	s := &Server{c: config.Config{Prefix: "/_anteroom"}, keys: &keys{ring: ring}}
	const room = "/_anteroom/v1/rooms/shop/"
	ask := func(method, path string) int {
		w := httptest.NewRecorder()
		s.roomed(s.keyed(http.NotFoundHandler())).ServeHTTP(w, httptest.NewRequest(method, path, nil))
		return w.Code
	}
	for _, path := range []string{room + "checkin", room + "leave", room + "transfer", room + "bookmark", "/_anteroom/m/shop/ABCDEFGHJKLMNPQR"} {
		if got := ask("POST", path); got != 503 {
			t.Errorf("%s without rooms: %d, want 503", path, got)
		}
	}
	s.hasRooms.Store(true)
	for path, want := range map[string]int{
		room + "checkin": 503, room + "transfer": 503, room + "bookmark": 503, "/_anteroom/m/shop/ABCDEFGHJKLMNPQR": 503, room + "join": 404,
	} {
		if got := ask("POST", path); got != want {
			t.Errorf("%s without keys: %d, want %d", path, got, want)
		}
	}
	if got := ask("GET", "/_anteroom/m/shop/ABCDEFGHJKLMNPQR"); got != 404 {
		t.Errorf("the page of a link: %d, though it needs no keys", got)
	}
	if err := ring.Rotate(); err != nil {
		t.Fatal(err)
	}
	if got := ask("POST", room+"transfer"); got != 404 {
		t.Errorf("with keys: %d, want it to be answered by the gateway", got)
	}
}
