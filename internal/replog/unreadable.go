package replog

import "fmt"

// Unreadable is an entry of the log that this release cannot read: a newer one wrote
// it. To skip it would be to have another state than the other replicas, and to say
// nothing. So nothing from it on is applied, this node does not lead, and takes no
// snapshot, which would let go of the entry. A release that can read it goes on from
// there.
type Unreadable struct {
	Index uint64 // of the entry
	Err   error  // why it cannot be read
}

func (u *Unreadable) Error() string {
	return fmt.Sprintf("entry %d of the log cannot be read by this release, and nothing from it on is applied here: %v; "+
		"run the release that wrote it, or a later one, on this node", u.Index, u.Err)
}

func (u *Unreadable) Unwrap() error { return u.Err }

// passOn gives up the leadership of a group whose entries this node cannot read. If
// nobody takes it now, it is elected again, and tries again.
func (l *Log) passOn() {
	if l.group != nil {
		_ = l.raft.LeadershipTransfer().Error()
	}
}
