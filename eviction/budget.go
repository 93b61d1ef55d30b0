package eviction

import (
	"cmp"
	"slices"

	"github.com/anteroom/anteroom/qpid"
)

// Sizes of what a wave says of a room, in bytes: about what they take in the
// protocol buffers of package wire, where a test compares them.
const (
	roomBytes   = 200 // its name, numbers, the cut
	nodeBytes   = 150 // a RoomNode, and the node's part of the commit
	netBytes    = 30
	voidBytes   = 40
	markBytes   = 9
	firstBytes  = 20 // on the way up, a node's first ticket beyond the cut
	tagBytes    = 34
	sampleBytes = 38
	voterBytes  = 12 // a name, of a line that the room or its node has left
)

// plainSize estimates the bytes that the largest message of a wave over so many
// nodes takes for the room, without position digests.
func (g *Gate) plainSize(nodes int) int {
	size := roomBytes + len(g.cfg.Settings) + nodes*nodeBytes + max(nodes, len(g.ledger.peers))*netBytes + len(g.voids)*voidBytes
	size += nodes * g.names() * voterBytes
	waiting := g.total + g.Queue.Len() // some have come since the last wave
	if g.hint > g.c.Exact {
		return size + min(waiting, nodes*g.c.Samples)*sampleBytes
	}
	return size + min(waiting, g.hint)*tagBytes
}

// digestSize estimates what the room's position digest adds.
func (g *Gate) digestSize() (size int) {
	return marks(g.total)*markBytes + len(g.waiting)*firstBytes
}

// dueRooms lists the rooms that this wave asks about: those where something
// happens, and every other once a second, or while the voters change: what a room
// knows of its slots counts among the voters who learned it. If that is too much for one message,
// rooms take turns, and more reports that some are left: who was asked about
// longest ago goes first, and slots before digests. One room and one room's
// digests go however large they are.
func (n *Node) dueRooms(now Time) (rooms []RoomGather, more bool) {
	var due []*Gate
	for _, g := range n.gates {
		if g.busy || g.total > 0 || n.voters.Next != nil || now.Boot-g.asked >= micros(roomsEvery) {
			due = append(due, g)
		}
	}
	slices.SortStableFunc(due, func(a, b *Gate) int { return cmp.Compare(a.asked, b.asked) })
	left, nodes := n.c.WaveBytes, max(1, len(n.list))
	for i, g := range due {
		left -= g.plainSize(nodes)
		more = i > 0 && left < 0
		if more {
			due = due[:i]
			break
		}
		g.asked = now.Boot
	}
	n.dueDigests(now, due, left)
	next := n.nextEpoch()
	slices.SortFunc(due, func(a, b *Gate) int { return cmp.Compare(a.cfg.Name, b.cfg.Name) })
	for _, g := range due {
		keying, seed := g.keying, g.seed
		if g.told > keying {
			keying, seed = g.told, g.toldSeed
		}
		key := qpid.Epoch{}
		if g.cfg.At(max(g.at, n.clock.hlc)).Method == Random {
			key = next
		}
		rooms = append(rooms, RoomGather{
			Room: g.cfg.Name, Version: g.cfg.Version, Want: g.hint, UpTo: g.upTo(), Cut: g.cut, Key: key, Keying: keying, Seed: seed,
			Digest: g.digested == now.Boot,
		})
	}
	for _, name := range n.lead.asks {
		if n.Gate(name) == nil {
			rooms = append(rooms, RoomGather{Room: name, Key: next})
		}
	}
	return rooms, more
}

// dueDigests marks the rooms whose digests go with this wave, as far as the
// bytes that are left allow.
func (n *Node) dueDigests(now Time, asked []*Gate, left int) {
	slices.SortStableFunc(asked, func(a, b *Gate) int { return cmp.Compare(a.digested, b.digested) })
	first := true
	for _, g := range asked {
		if g.total == 0 && !n.lead.urgent || now.Boot-g.digested < n.digestEvery() {
			continue
		}
		left -= g.digestSize()
		if left < 0 && !first {
			return
		}
		g.digested, first = now.Boot, false
	}
}

// digestEvery is how often a wave carries position digests: so seldom that those
// of many nodes, which go to all of them, stay small beside the rest, and at
// least once a second.
func (n *Node) digestEvery() int64 {
	return min(max(int64(len(n.list))*60_000, micros(n.c.Period)), 1_000_000)
}

// upTo is a stamp that by the digest about as many of the room's tickets precede as the
// next gather wants, so that all nodes together report about as many, not each of
// them. The digest is a little old, and those before it may have left: who gets fewer
// than it could call asks the next time without a bound.
func (g *Gate) upTo() uint64 {
	if g.digest == nil || g.short {
		return 0
	}
	called := g.digest.rank(keyOf(g.cut.Value).next())
	stamp, ok := g.digest.at(int(called) + g.hint)
	if !ok {
		return 0
	}
	return stamp
}
