package server

import (
	"encoding/binary"
	"math/bits"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/anteroom/anteroom/internal/node"
	"github.com/anteroom/anteroom/internal/ticket"
	"github.com/anteroom/anteroom/qpid"
)

// tellingsMax bounds the people of whom a node remembers what they were told. Where
// more wait they are a sample of them.
const tellingsMax = 1 << 14

// tellings are what people were told of their waits, one estimate of each, until they
// are called and the truth is known. Of all that somebody was told it is a random
// one, so that everybody counts once, and estimates far from the front as much as
// those near it. Safe for concurrent use.
type tellings struct {
	mu     sync.Mutex
	rng    *rand.Rand
	max    int // tellingsMax but for tests
	sample int // people are remembered whose random id ends in so many zero bits
	of     map[told]telling
}

type told struct {
	room string
	id   qpid.ItemID
}

type telling struct {
	at        int64            // Unix µs
	quartiles [3]time.Duration // p25, p50, p75
	heard     int              // estimates, so far
}

func newTellings() *tellings {
	return &tellings{rng: rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())), max: tellingsMax, of: make(map[told]telling)}
}

func (t *tellings) takes(id *qpid.ItemID) bool {
	return bits.TrailingZeros64(binary.BigEndian.Uint64(id[8:])) >= t.sample
}

// told remembers an answer to somebody who waits.
func (t *tellings) told(now int64, a *ticket.Answer) {
	if a.State != ticket.Waiting || a.Wait == (ticket.Wait{}) {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.takes(&a.Ticket.ID) {
		return
	}
	key := told{a.Ticket.Room, a.Ticket.ID}
	had := t.of[key]
	had.heard++
	if t.rng.IntN(had.heard) == 0 {
		had.at, had.quartiles = now, [3]time.Duration{a.Wait.P25, a.Wait.P50, a.Wait.P75}
	}
	t.of[key] = had
	t.fit()
}

// fit keeps half of the people where there are too many, and takes in more of those
// who come when few are left.
func (t *tellings) fit() {
	for len(t.of) > t.max {
		t.sample++
		for key := range t.of {
			if !t.takes(&key.id) {
				delete(t.of, key)
			}
		}
	}
	if t.sample > 0 && len(t.of) < t.max/8 {
		t.sample--
	}
}

// cameTrue takes in what has happened to somebody. When they are called it tells under
// which quartiles the wait was; false: they were told nothing, or are of no sample.
func (t *tellings) cameTrue(now int64, a *node.Admission) (under [3]bool, ok bool) {
	if a.Event == node.Entitled || a.Event == node.AdmittedO {
		return under, false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	key := told{a.Room, a.Weight.ID}
	had, ok := t.of[key]
	if !ok {
		return under, false
	}
	delete(t.of, key) // whatever it was: the place is gone, elsewhere, or waits anew
	t.fit()
	took := time.Duration(now-had.at) * time.Microsecond
	if a.Event != node.CalledIn || took < 0 {
		return under, false
	}
	for i, q := range had.quartiles {
		under[i] = took <= q
	}
	return under, true
}
