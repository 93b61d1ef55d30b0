package queues

import (
	"math/rand/v2"

	"github.com/anteroom/anteroom/internal/broker"
	"github.com/anteroom/anteroom/internal/pqueue"
)

// mixed has lives of nodes that are of an older release, which knows one operation less:
// nodes are upgraded, and put back, one by one. Such a node proposes no command of it,
// and its log stops at the first one of another's, or of its own newer life's: it goes on
// when it is of the newer release again, and nothing is lost or done twice.
type mixed struct {
	rng     *rand.Rand
	unknown pqueue.Op // to the older release
}

// alien is what the older release makes of a command that it does not know.
const alien = "\xffof a newer release"

func (x *mixed) init(seed uint64, bins bool) {
	x.rng = rand.New(rand.NewPCG(seed, 16))
	ops := []pqueue.Op{pqueue.OpUpdate, pqueue.OpExtend, pqueue.OpNack}
	if bins {
		ops = append(ops, pqueue.OpPurge)
	}
	x.unknown = ops[x.rng.IntN(len(ops))]
}

// ofARelease draws of which release the life is that begins.
func (n *node) ofARelease() {
	w := n.w
	n.older, n.stopped = w.o.Mixed && !w.healed && w.mixed.rng.IntN(2) == 0, map[broker.Kind]bool{}
	if n.older {
		w.Reached.Older++
		w.note("%v is of an older release, without operation %d", n.m, w.mixed.unknown)
	}
}

// lacks reports whether the release of n does not know the operation of a command.
func (n *node) lacks(command []byte) bool {
	if !n.older {
		return false
	}
	c, err := pqueue.DecodeCommand(command)
	return err == nil && c.Op == n.w.mixed.unknown
}

// apply applies what a log has, and returns the results of what could be applied. It
// stops at what cannot be read, as a log does (replog.Unreadable), and its node leads it
// no more.
func (n *node) apply(k broker.Kind, commands [][]byte) (results [][]byte) {
	for from := 0; from < len(commands) && !n.stopped[k]; {
		upTo := from
		for upTo < len(commands) && !n.lacks(commands[upTo]) {
			upTo++
		}
		read := commands[from:upTo]
		if upTo == from {
			upTo++
			read = [][]byte{[]byte(alien)}
		}
		rs, err := n.b.Apply(n.time(), k, read)
		switch {
		case err == nil:
			results = append(results, rs...)
		case n.lacks(commands[from]):
			n.w.Reached.Stopped++
			n.w.note("%v: the %v log stops", n.m, k)
			n.stopped[k] = true
			n.b.Leads(n.time(), k, false)
		default:
			n.w.oracle.fail("%v: the %v log has a command that cannot be read: %v", n.m, k, err)
			return make([][]byte, len(commands))
		}
		from = upTo
	}
	return results
}

// upgrade starts the older ones anew, as of the newer release.
func (w *World) upgrade() {
	for _, n := range w.nodes {
		if n.older && n.up {
			n.doomed = second // no disk waits for a write
			w.crash(n, second)
		}
	}
}
