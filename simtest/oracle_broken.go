package simtest

import "github.com/anteroom/anteroom/internal/node"

// S20, what the nodes themselves see. What must be true of a room is looked at in
// production too, and a node that finds it is not gives the room up. No fault that the
// world makes may lead to that: they are all outside the node.
func (w *world) givenUp(h *host, r *node.Ready) {
	for i := range r.Broken {
		w.printf("%s gives up a room: %v", h.name, &r.Broken[i])
		if !w.spoilt {
			w.fail("S20", "%s gives up a room: %v", h.name, &r.Broken[i])
		}
	}
}
