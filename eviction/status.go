package eviction

import "github.com/anteroom/anteroom/qpid"

// Status is what an operator, or an oracle, sees of a node's part in the waves.
type Status struct {
	Epoch, Installed     qpid.Epoch
	Grade                Grade
	LeaseUntil           int64 // boot time, µs
	Line                 Line
	Knows                bool
	Voters               Voters
	List                 []Member // never changed: another takes its place
	Frozen               bool
	Leading              bool // its waves are those that are installed, or it is about to send the first
	Quarantined, Leaving bool
	Aside                bool // see Node.Aside
	Vouched              bool // a quorum has taken the clock for right in this life
	HLC                  uint64
	Clock                int64 // pass time, µs
	ClockAt              int64 // boot time, µs, of that reading
	Following            Member
	Holdout              Member // knows of a cluster and is in no wave, so that this coordinator founds none
	Acts, Reckons        Bounds // by which the node acts, and with which it reckons of others
}

// Status returns the node's state.
func (n *Node) Status() Status {
	s := Status{
		Epoch: n.epoch, Installed: n.installed, Grade: n.grade, LeaseUntil: n.leaseUntil, Line: n.line, Knows: n.knows && !n.forgot,
		Voters: n.voters, List: n.list, Frozen: n.wave != nil,
		Leading:     n.lead.active && (len(n.list) == 0 || n.list[0] == n.self.Member), // a more senior node may stand by
		Quarantined: n.clock.quarantined, Aside: n.IsAside(), Vouched: n.clock.vouched, Leaving: n.leaving, HLC: n.clock.hlc, Clock: n.clock.now, ClockAt: n.clock.last.Boot, Following: n.follow.Member,
		Acts: n.c.bounds(), Reckons: n.c.reckons,
	}
	if n.grade < Primary && n.lead.active {
		s.Holdout = n.lead.holdout
	}
	return s
}

// Grade says what the last commit allows, as Status does.
func (n *Node) Grade() Grade { return n.grade }

// Installed is the last wave that the node was in, as in Status.
func (n *Node) Installed() qpid.Epoch { return n.installed }
