package simtest

// S18, no room is overlooked. A node looks only at rooms in which it takes something
// to be due; after each input nothing is to be done, lapses or is to be saved in any
// other before that.
func (w *world) lookOver(h *host) {
	if err := h.n.Overlooked(); err != nil {
		w.fail("S18", "%s: %v", h.name, err)
	}
}
