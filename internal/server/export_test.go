package server

import (
	"slices"
	"testing"

	"github.com/anteroom/anteroom/internal/config"
)

// Certificate writes a key pair for a node named x.
func Certificate(t *testing.T) config.KeyPair {
	t.Helper()
	return certificate(t)
}

// EndMinute ends the minute of the history that runs, and has it kept by another node
// as well. What happens later in that minute is not counted.
func (s *Server) EndMinute() {
	if m, ok := s.past.live.Last(); ok {
		s.past.keep(m)
	}
}

// KeepsFor reports whether the node keeps minutes of another.
func (s *Server) KeepsFor(node string) bool { return slices.Contains(s.past.kept.Nodes(), node) }
