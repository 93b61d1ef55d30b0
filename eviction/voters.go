package eviction

import (
	"slices"

	"github.com/anteroom/anteroom/qpid"
)

// Voters are the names whose majority makes a wave primary. While Next is
// set a majority of it is needed too. Names are sorted.
type Voters struct {
	Version uint64
	Names   []qpid.NodeID
	Next    []qpid.NodeID // proposed as Version+1; nil: no change under way
	At      qpid.Epoch    // of the last primary wave that carried them; zero: there was none yet
	// Founders are the lives that the line began with. One of them cannot have
	// forgotten anything of the line, so it counts as knowing from the start:
	// a founding that reaches one node only is not lost.
	Founders []Member
	// From is the line that survivors left when they went on alone, the oldest if
	// they did so more than once; zero: the line began with a founding. A room
	// that was never on a line is on that one: others may have it there.
	From Line
}

// newer reports whether v was decided after o: as in Paxos, of two proposals
// the one that a later wave carried.
func (v Voters) newer(o Voters) bool {
	if v.Version != o.Version {
		return v.Version > o.Version
	}
	return v.At.Compare(o.At) > 0
}

// begun reports whether the line had a primary wave.
func (v Voters) begun() bool { return v.At != qpid.Epoch{} }

// Spared reports whether those whom this node believes alive are a quorum without it.
func (n *Node) Spared() bool {
	var others []qpid.NodeID
	for _, p := range n.view {
		if p.Member != n.self.Member {
			others = append(others, p.Member.Name)
		}
	}
	return n.voters.quorum(others)
}

// quorum reports whether the nodes that know carry v. Half of an even number
// is enough if it holds the lowest name: two halves cannot both.
func (v Voters) quorum(know []qpid.NodeID) bool {
	return v.Version > 0 && half(v.Names, know) && (v.Next == nil || half(v.Next, know))
}

// mayBe reports whether some may be a quorum with all voters but those who know, also where
// the next ones count and nobody here has heard of it.
func (v Voters) mayBe(know, some []qpid.NodeID) bool {
	for _, name := range slices.Concat(v.Names, v.Next) {
		if !slices.Contains(know, name) {
			some = append(some, name)
		}
	}
	return half(v.Names, some) || v.Next != nil && half(v.Next, some)
}

func half(voters, know []qpid.NodeID) bool {
	n := 0
	for _, v := range voters {
		if slices.Contains(know, v) {
			n++
		}
	}
	return 2*n > len(voters) || 2*n == len(voters) && n > 0 && slices.Contains(know, voters[0])
}

// all reports whether every voter is among the nodes that know.
func (v Voters) all(know []qpid.NodeID) bool {
	for _, names := range [][]qpid.NodeID{v.Names, v.Next} {
		for _, name := range names {
			if !slices.Contains(know, name) {
				return false
			}
		}
	}
	return true
}

// heard is of which rooms a majority of the voters, and of the next ones, is seen to have heard since those were proposed.
type heard struct {
	wave  qpid.Epoch      // the last primary one of this coordinator,
	spoke []string        // the rooms of which that spoke,
	rooms map[string]bool // and those of which it is known, or one before
}

// since forgets all if the wave that carried the voters is not the last one of this coordinator: nobody knows of which rooms others
// spoke, nor whom they proposed meanwhile.
func (h *heard) since(wave qpid.Epoch) {
	if wave != h.wave {
		h.rooms, h.spoke = nil, nil
	}
}

// hear takes in that a majority has heard of that wave.
func (h *heard) hear() {
	if h.rooms == nil {
		h.rooms = make(map[string]bool, len(h.spoke))
	}
	for _, name := range h.spoke {
		h.rooms[name] = true
	}
}

// speak notes that a wave has been decided, and of which rooms it speaks.
func (h *heard) speak(w *wave, v Voters) {
	if v.Next == nil {
		h.rooms = nil
	}
	h.wave, h.spoke = w.epoch, h.spoke[:0]
	for _, r := range w.Rooms {
		h.spoke = append(h.spoke, r.Room)
	}
}

// heardAll reports whether that is so of every room that anybody in the wave has.
func (n *Node) heardAll(w *wave) bool {
	for _, g := range n.gates {
		if !n.lead.heard.rooms[g.cfg.Name] {
			return false
		}
	}
	return n.hasAll(w)
}

// hasAll reports whether this node has every room that anybody in the wave has. One that was never agreed on is none:
// nobody has slots of it.
func (n *Node) hasAll(w *wave) bool {
	for _, r := range w.sum.Rooms {
		if r.Newest != nil && n.Gate(r.Room) == nil {
			return false
		}
	}
	for _, r := range w.sum.Nodes {
		if r.More || slices.ContainsFunc(r.Busy, func(name string) bool { return n.Gate(name) == nil }) {
			return false
		}
	}
	return true
}

// change moves the voters one name further. A change is proposed only when a
// majority is seen to hold the present voters, and takes force only when a
// majority of both the old and the new is seen to hold the proposal, so that
// any two quorums of neighbouring versions meet in a node that knows.
//
// What that knows of a room, it knows by commits that spoke of the room. So a majority of both has to have heard of each room since
// the proposal, too. Proof that whatever a quorum knew of a room then, one of every quorum of the next voters knows: until they are
// in force each primary wave has a quorum of both. What became known after the proposal, and is relied on, such a quorum has
// said in its replies. What was known before, one has said in the wave that spoke of the room, as that had a quorum of the old ones, and
// a majority of the next ones has installed its commit, which is on their disks before they say so.
func (n *Node) change(w *wave, line Line, v voice) Voters {
	n.lead.heard.since(v.voters.At)
	holders := holdersOf(w, line, v.voters)
	if !half(v.voters.Names, holders) {
		return v.voters
	}
	if v.voters.Next != nil {
		if !half(v.voters.Next, holders) {
			return v.voters
		}
		n.lead.heard.hear()
		if !n.heardAll(w) {
			return v.voters
		}
		return Voters{Version: v.voters.Version + 1, Names: v.voters.Next, Founders: v.voters.Founders, From: v.voters.From}
	}
	next := n.nextNames(w, v)
	if next == nil {
		return v.voters
	}
	return Voters{Version: v.voters.Version, Names: v.voters.Names, Next: next, Founders: v.voters.Founders, From: v.voters.From}
}

// holdersOf names those whose reply carries exactly these voters, by the same
// wave.
func holdersOf(w *wave, line Line, v Voters) (holders []qpid.NodeID) {
	for _, r := range w.sum.Nodes {
		if w.votes(&r, line) && r.remembers(line) && r.Voters.Version == v.Version && r.Voters.At == v.At {
			holders = append(holders, w.list[r.Index].Name)
		}
	}
	return holders
}

// nextNames adds a listed name, or removes one that left or has been gone for
// D while a majority of the rest is here. Nil: nothing to change.
func (n *Node) nextNames(w *wave, v voice) []qpid.NodeID {
	here := namesOf(w.list)
	for _, r := range w.sum.Nodes {
		if name := w.list[r.Index].Name; r.Leaving {
			here = slices.DeleteFunc(here, func(h qpid.NodeID) bool { return h == name })
		}
	}
	for i, name := range v.voters.Names {
		if slices.Contains(here, name) || !n.goneForGood(w, name) {
			continue
		}
		if rest := slices.Delete(slices.Clone(v.voters.Names), i, i+1); len(rest) > 0 && half(rest, v.know) {
			return rest
		}
	}
	for _, name := range here {
		if i, ok := slices.BinarySearch(v.voters.Names, name); !ok {
			if next := slices.Insert(slices.Clone(v.voters.Names), i, name); half(next, v.know) {
				return next // else the next wave would be none of theirs, if this commit is lost on the way to that one
			}
		}
	}
	return nil
}

func (n *Node) goneForGood(w *wave, name qpid.NodeID) bool {
	wait := int64(0)
	for _, g := range n.gates {
		wait = max(wait, g.delay())
	}
	for _, r := range w.sum.Nodes {
		if w.list[r.Index].Name == name && !r.Leaving {
			return false
		}
	}
	var last Sighting
	for _, m := range w.sum.Met {
		if m.Member.Name != name {
			continue
		}
		if !m.Left && m.Age < wait {
			return false
		}
		if m.Epoch >= last.Epoch {
			last = m
		}
	}
	return last.Left || !n.stopsFor(last.Member)
}

func namesOf(list []Member) []qpid.NodeID {
	names := make([]qpid.NodeID, len(list))
	for i, m := range list {
		names[i] = m.Name
	}
	slices.Sort(names)
	return slices.Compact(names)
}
