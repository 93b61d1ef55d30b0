package loop

import (
	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/node"
)

// Spoil breaks a room.
func (l *Loop) Spoil(room string) (spoilt bool) {
	_ = l.order(func(n *node.Node, _ eviction.Time) { spoilt = n.Spoil(room) })
	return spoilt
}

// Listened is of how many tickets other nodes are told.
func (l *Loop) Listened() int {
	l.remote.mu.Lock()
	defer l.remote.mu.Unlock()
	return len(l.remote.of)
}
