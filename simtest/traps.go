package simtest

import "github.com/anteroom/anteroom/internal/node"

// moment is a place in a node's work at which a trap can close.
type moment uint8

const (
	beforeStep moment = iota
	afterStep
	beforeSave
	beforeSend
	afterSend
	moments
	inAnswer // after an operation that called someone or let someone in
	inSave
)

// trap waits for a node to be in the middle of something.
type trap struct {
	fault  Fault
	kind   msgKind
	when   moment
	host   int32 // none: any
	count  int   // the how manieth time
	last   int64
	step   saveStep // of CrashInSave
	closed bool
}

// setTrap picks what to wait for.
func (w *world) setTrap(f Fault, h *host, last int64) {
	r := w.rngFaults
	kinds := [...]msgKind{mGather, mReply, mCommit, mCommit, mSlots, mSlots, mSlotsAck, mProbe, mSyncReply, mQPID}
	t := trap{fault: f, kind: kinds[r.IntN(len(kinds))], when: moment(r.IntN(int(moments))), host: none, count: 1 + r.IntN(4), last: last}
	if chance(r, 1, 2) {
		t.host = h.index
	}
	switch f {
	case CrashAfterFirst:
		t.kind, t.when, t.host, t.count = mCommit, afterSend, h.index, 1
	case PauseInAnswer:
		t.when = inAnswer
	case CrashInSave:
		t.when, t.host, t.step = inSave, h.index, saveStep(r.IntN(int(sendAll)+1))
	default:
	}
	w.nemesis.traps = append(w.nemesis.traps, t)
}

// trap closes the first trap that waits for this moment at h, and reports
// whether the node went down over it.
func (w *world) trap(h *host, kind msgKind, when moment) bool {
	for i := range w.nemesis.traps {
		t := &w.nemesis.traps[i]
		if t.closed || t.when != when || t.kind != kind && when != inAnswer || t.host != none && t.host != h.index || !h.running() {
			continue
		}
		t.count--
		if t.count > 0 {
			continue
		}
		t.closed = true
		w.reached.n[reachTrap]++
		w.printf("TRAP %v at %s, %s, moment %d", t.fault, h.name, kind, when)
		if t.fault == PauseInWave || t.fault == PauseInAnswer {
			w.reached.n[reachPause]++
			w.pause(h, t.last)
			return false
		}
		w.crashFor(h, t.last, t.fault.String())
		if t.fault == CrashAfterFirst { // and whoever gets that message, once it has
			w.nemesis.traps = append(w.nemesis.traps, trap{fault: CrashInWave, kind: mCommit, when: afterStep, host: none, count: 1, last: t.last})
		}
		return true
	}
	return false
}

// trapped closes a trap that waits for a node to have decided something that
// is neither saved nor sent.
func (w *world) trapped(h *host, when moment, r *node.Ready) bool {
	if len(w.nemesis.traps) == 0 {
		return false
	}
	for i := range r.Messages {
		if w.trap(h, kindOf(r.Messages[i].Body), when) {
			return true
		}
	}
	return false
}
