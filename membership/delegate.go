package membership

import (
	"log/slog"
	"time"

	"github.com/hashicorp/memberlist"
)

// delegate is what memberlist calls, holding its locks: nothing here waits, and
// nothing calls back.
type delegate struct {
	meta   []byte
	roster *roster
	log    *slog.Logger
	told   *limiter // of lines about other names
	own    *limiter // about this node's own
}

var (
	_ memberlist.Delegate         = (*delegate)(nil)
	_ memberlist.EventDelegate    = (*delegate)(nil)
	_ memberlist.AliveDelegate    = (*delegate)(nil)
	_ memberlist.ConflictDelegate = (*delegate)(nil)
)

func (d *delegate) NodeMeta(int) []byte { return d.meta } // New has checked that it fits

func (d *delegate) NotifyJoin(n *memberlist.Node)   { d.roster.alive(n, time.Now()) }
func (d *delegate) NotifyUpdate(n *memberlist.Node) { d.roster.alive(n, time.Now()) }
func (d *delegate) NotifyLeave(n *memberlist.Node)  { d.roster.gone(n, time.Now()) }

// NotifyAlive may refuse a member; memberlist logs why.
func (d *delegate) NotifyAlive(n *memberlist.Node) error { return d.roster.admits(n, time.Now()) }

// NotifyConflict hears of a second address for a name, at those two and at
// everyone who sees both.
func (d *delegate) NotifyConflict(old, n *memberlist.Node) {
	switch {
	case n.Name != string(d.roster.self.Name):
		d.told.write(d.log, slog.LevelWarn, "two addresses under one name", "name", n.Name, "kept", old.Address(), "ignored", n.Address())
	case d.roster.conflict(n, time.Now()):
		d.own.write(d.log, slog.LevelError, usesName, "name", n.Name, "here", old.Address(), "there", n.Address())
	}
}

// Nothing else travels by gossip.
func (d *delegate) NotifyMsg([]byte)                {}
func (d *delegate) GetBroadcasts(int, int) [][]byte { return nil }
func (d *delegate) LocalState(bool) []byte          { return nil }
func (d *delegate) MergeRemoteState([]byte, bool)   {}
