package server

import (
	"net/http"
	"net/url"
	"time"
)

// Before is the waiting room in front of a handler of the same process, see
// gateway.Before. Until the node knows the rooms of its cluster nobody gets to
// next. It may be called once the server is Ready.
func (s *Server) Before(next http.Handler) http.Handler {
	front := s.front(s.gateway.Before(next))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		front.ServeHTTP(w, r)
		// What we allowed for our own answer must not cut off another's, later on the
		// same connection.
		_ = http.NewResponseController(w).SetWriteDeadline(time.Time{}) // a writer without deadlines is a test's
	})
}

// RoomAt returns the name of the room that an address of a site is in, see
// gateway.RoomAt. It may be called once the server is Ready.
func (s *Server) RoomAt(host string, u *url.URL) string { return s.gateway.RoomAt(host, u) }

// front is what a visitor's request comes to before g.
func (s *Server) front(g http.Handler) http.Handler { return s.roomed(s.keyed(g)) }

// Unavailable asks a visitor to come again, for a server that is not Ready.
func Unavailable(w http.ResponseWriter, r *http.Request) {
	unavailable(w, r, notYet, http.StatusServiceUnavailable)
}
