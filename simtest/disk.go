package simtest

import (
	"slices"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/node"
)

// disk is a host's directory, as package internal/store keeps it, and what the loop
// around the node has for it. A record is written beside the old one, synced, renamed
// over it, and the directory is synced: before that a crash may bring the old one back.
type disk struct {
	kept    *eviction.Record     // what the next life finds for certain; nil: nothing
	renamed *eviction.Record     // in its place, but the directory is not synced
	used    []eviction.UsedBatch // tickets
	failing bool                 // no save gets through
	well    int64                // true time at which saves got through again; 0: they always did
	unsaved *eviction.Record     // nothing is sent before it is saved
	held    []eviction.Message   // until then
	saveAt  int64                // boot time of the next try
	spent   []eviction.UsedBatch // what could not be added to used
	lost    []int32              // tickets in spent: none of a later life's business
	visits  visitsDisk
	spares  bool // visits get through while no save does: as when the record is another user's
}

// saveStep is a step of a save, which may fail, and before which a host may crash.
type saveStep int

const (
	writeFile saveStep = iota
	syncFile
	renameFile
	syncDirectory
	sendAll // all is done but to send what waited for it
)

// A save that failed is tried again so much later, in µs, and so many messages wait
// for it at most; see package internal/loop.
const (
	saveAgain = 100_000
	heldMost  = 4096
)

// passOn returns what may be sent now: nothing that follows from a record which is not
// durable. The host may be down afterwards.
func (w *world) passOn(h *host, r *node.Ready) []eviction.Message {
	d := &h.disk
	if r.Save != nil && w.o.Faults.Disk {
		d.unsaved = r.Save
	}
	if d.unsaved == nil {
		return r.Messages
	}
	life := h.life
	if !w.save(h) {
		if h.life == life {
			d.held = append(d.held, r.Messages...)
			d.held = d.held[max(0, len(d.held)-heldMost):]
		}
		return nil
	}
	out := slices.Concat(d.held, r.Messages)
	d.unsaved, d.held = nil, nil
	return out
}

// save goes through the steps of a save and reports whether all was well.
func (w *world) save(h *host) bool {
	d := &h.disk
	if h.clock.boot(w.now) < d.saveAt {
		return false
	}
	fails := sendAll
	if d.failing {
		fails = saveStep(w.rngFaults.IntN(int(sendAll)))
	}
	for step := writeFile; step <= sendAll; step++ {
		if step == sendAll {
			d.kept, d.renamed = d.unsaved, nil
			h.n.Saved(d.kept)
			w.saved(h)
		}
		if w.trapSave(h, step) {
			return false
		}
		switch {
		case step == sendAll:
		case step == fails:
			w.reached.n[reachSaveFailed]++
			w.printf("%s cannot save: step %d", h.name, step)
			d.saveAt = h.clock.boot(w.now) + saveAgain
			return false
		case step == renameFile:
			d.renamed = d.unsaved
		}
	}
	d.saveAt = 0
	w.reached.n[reachSave]++
	return true
}

// sends reports whether what h says gets out, and has since true time since.
func (h *host) sends(since int64) bool {
	return !h.disk.failing && (h.disk.well == 0 || h.disk.well < since)
}

// trapSave closes a trap that waits for h to be in the middle of a save.
func (w *world) trapSave(h *host, step saveStep) bool {
	for i := range w.nemesis.traps {
		t := &w.nemesis.traps[i]
		if t.closed || t.fault != CrashInSave || t.step != step || t.host != h.index {
			continue
		}
		t.count--
		if t.count > 0 {
			continue
		}
		t.closed = true
		w.reached.n[reachSaveCrash]++
		w.crashFor(h, t.last, t.fault.String())
		return true
	}
	return false
}

// lose is what a crash leaves of a host's disk, and nothing of what waited for it.
func (w *world) lose(h *host) {
	d := &h.disk
	if d.renamed != nil && chance(w.rngFaults, 1, 2) {
		d.kept = d.renamed
	}
	if !h.leaving {
		for _, t := range d.lost {
			w.crowd.tickets[t].usedBy = 0
		}
	}
	w.loseVisits(&d.visits)
	*d = disk{kept: d.kept, used: d.used, failing: d.failing, well: d.well, visits: d.visits, spares: d.spares}
	if !w.o.Faults.Disk {
		*d = disk{}
	}
}
