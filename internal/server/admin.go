package server

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/gateway/admin"
	"github.com/anteroom/anteroom/internal/fairness"
	"github.com/anteroom/anteroom/internal/node"
	"github.com/anteroom/anteroom/internal/ticket"
	"github.com/anteroom/anteroom/internal/tokens"
	"github.com/anteroom/anteroom/proto/link"
	"github.com/anteroom/anteroom/qpid"
)

// source is the node as the admin port shows it.
type source struct{ s *Server }

var _ admin.Source = source{}

func (a source) Cluster() admin.Cluster {
	snap := a.s.loop.Snapshot()
	st := &snap.Status
	c := admin.Cluster{
		Node: string(st.Self.Name), Boot: strconv.FormatUint(st.Self.Boot, 10), Version: a.s.o.Version, Epoch: st.Installed.Num,
		Grade: st.Grade.String(), Lease: max(0, float64(st.LeaseUntil-snap.At.Boot)/1e6), Quarantined: st.Quarantined, Waiting: a.waiting().text,
		Voters: []string{},
	}
	c.WaitingSince = a.s.waitingSince.Load()
	if m, ok := a.s.loop.RelayedBy(); ok {
		c.Relay = string(m.Name)
	}
	if w := a.s.gateway.Warning(); w != "" {
		c.Warnings = append(c.Warnings, w)
	}
	c.Warnings = append(c.Warnings, a.s.queues.storageWarnings()...)
	if st.Line.Founded() {
		c.ClusterID = fmt.Sprintf("%s-%d", st.Line.By, st.Line.Stamp)
		c.Founded = time.UnixMicro(int64(st.Line.Stamp)).UTC()
	}
	for _, v := range st.Voters.Names {
		c.Voters = append(c.Voters, string(v))
	}
	place := make(map[eviction.Member]int, len(st.List))
	for i, m := range st.List {
		place[m] = i
	}
	if len(st.List) > 0 {
		c.Coordinator = string(st.List[0].Name)
	}
	measured := make(map[eviction.Member]link.Stats)
	for _, l := range a.s.links.Stats() {
		measured[l.Member] = l
	}
	for _, m := range a.s.members.Members() {
		i, in := place[m.Member]
		parent := ""
		if in && i > 0 {
			parent = string(st.List[(i-1)/a.s.settings.now().Fanout].Name)
		}
		c.Members = append(c.Members, admin.Member{
			Name: string(m.Name), Boot: strconv.FormatUint(m.Boot, 10), Address: m.Addr, Version: m.Version, Started: time.UnixMicro(m.Start).UTC(),
			Parent: parent, InWave: in,
			RoundTrip: measured[m.Member].RTT.Seconds(), ClockAhead: measured[m.Member].Offset.Seconds(),
		})
	}
	return c
}

// release is the part of a program's version that says which release and commit it
// is, without the program's name and what it was built with.
func release(version string) string {
	version = strings.TrimPrefix(version, "anteroom ")
	return version[:max(0, strings.LastIndex(version, ", "))]
}

func (a source) Rooms() []admin.Room {
	snap := a.s.loop.Snapshot()
	rooms := make([]admin.Room, 0, len(snap.Rooms))
	for i := range snap.Rooms {
		rs := &snap.Rooms[i]
		if rs.Room.Mode == eviction.Deleted {
			continue
		}
		g, _ := a.s.queue().Room(rs.Room.Name)
		served, _ := settingsOf(rs.Room) // what is wrong with it is in the log
		origin := originHealth{}
		if served.Health != nil {
			origin = *served.Health
		}
		r := admin.Room{
			Name: rs.Room.Name, TotalActiveUsers: rs.Room.Target, NewUsersPerMinute: rs.Room.NewPerMinute,
			QueueingMethod: rs.Room.Method.String(), Algorithm: rs.Room.Algorithm.String(), QueueAll: rs.Room.QueueAll,
			Suspended: served.Suspended, Mode: modeOf(byHand(rs.Room)), SessionSeconds: rs.Room.Session.Seconds(),
			Queued: g.Queued, Called: g.Called, Active: g.Active, AdmittedPerMinute: g.AdmittedPerMinute,
			EstimatedWaitSeconds: g.Wait.P50.Seconds(), Open: g.Open, Paused: g.Paused.Text(), OriginHealth: admin.HealthText(string(origin.status())), OriginHolds: origin.Holds, Here: here(rs, &snap.Status),
		}
		if v := origin.worst(); v != nil {
			since := time.UnixMicro(v.Since).UTC()
			r.OriginSince, r.OriginReason = &since, v.Check+": "+v.Reason
			if v.Code != 0 {
				r.OriginReason += ", " + strconv.Itoa(v.Code)
			}
		}
		r.Governed = a.s.outflow.governed(rs)
		r.ModeBy, r.ModeSince = a.s.audits.modeOf(r.Name)
		r.Event = eventOf(rs, snap.Status.Clock)
		if g.Counted > 0 {
			at := time.UnixMicro(g.Counted).UTC()
			r.CountedAt = &at
		}
		if g.HeldUntil > 0 {
			at := time.UnixMicro(g.HeldUntil).UTC()
			r.HeldUntil = &at
		}
		if r.SlotsMissing = rs.Missing; rs.Missing > 0 {
			at := time.UnixMicro(snap.PassTime(rs.WholeAt)).UTC()
			r.WholeAt = &at
		}
		r.WaitsFor = waitsFor(rs, snap.Absent)
		if rs.QPIDRoot {
			r.Root = string(snap.Status.Self.Name)
		}
		rooms = append(rooms, r)
	}
	return rooms
}

// waitsFor returns the names of those who are absent and for whom a room waits until an
// operator says that they will not return.
func waitsFor(rs *node.RoomStatus, absent []eviction.Member) (names []string) {
	r := &rs.Room
	if r.OnPartition == eviction.Majority && !rs.Shares {
		return nil
	}
	for _, m := range absent {
		if !slices.Contains(r.Reclaimed, m) && !slices.Contains(names, string(m.Name)) {
			names = append(names, string(m.Name))
		}
	}
	return names
}

// eventOf is the event of a room that holds at now, Unix microseconds, or the one
// that comes next; nil: there is none.
func eventOf(r *node.RoomStatus, now int64) *admin.Event {
	e := r.Now.Event
	if e.Start == 0 {
		i := slices.IndexFunc(r.Room.Events, func(e eviction.Event) bool { return e.Start > now })
		if i < 0 {
			return nil
		}
		e = r.Room.Events[i]
	}
	set := r.Room.At(uint64(e.Start))
	shown := &admin.Event{
		Name: e.Name, Prequeue: time.UnixMicro(e.Prequeue).UTC(), StartsAt: time.UnixMicro(e.Start).UTC(), Shuffle: e.Shuffle,
		Drawn: r.Draw.Start == e.Start && r.Draw.Over(), TotalActiveUsers: set.Target, NewUsersPerMinute: set.NewPerMinute,
	}
	if e.End > 0 {
		end := time.UnixMicro(e.End).UTC()
		shown.EndsAt = &end
	}
	return shown
}

func here(r *node.RoomStatus, s *node.Status) admin.RoomHere {
	return admin.RoomHere{
		SlotsOwned: r.Owned, SlotsUsed: r.Used, SlotsFree: r.Free, Queued: r.Queued, Called: r.Called,
		OnSite: r.OnSite, Parked: r.Parked, Bare: r.Bare, Kept: r.Kept, MayAdmit: r.MayAdmit, IsRoot: r.QPIDRoot, Broken: r.Broken, Unwritten: s.Unwritten,
	}
}

// Fairness is measured over the people whom this node has called.
func (a source) Fairness(room string) (fairness.Report, bool) {
	if r, ok := a.s.loop.Snapshot().Room(room); !ok || r.Room.Mode == eviction.Deleted {
		return fairness.Report{}, false
	}
	return a.s.book.report(room), true
}

func (a source) Ready() string { return a.ready().text }

// reason is why a node does not do something; the zero value: it does. The key
// stays while the figures in the text change.
type reason struct {
	key, text string
	fault     bool // it does not pass unless somebody mends something
}

func because(text string) reason { return reason{key: text, text: text} }

// noKeys is for a cluster that was founded just now, and for who comes to one.
func noKeys() reason { return because("waiting for signing keys") }

// ready says why a load balancer should send nobody here. A side without a
// quorum is no reason: passes are honoured there, and who waits keeps the place.
// But a node that was restarted there judges no pass, since nobody can say that
// its clock is right.
func (a source) ready() reason {
	switch s := &a.s.loop.Snapshot().Status; {
	case a.s.leaving.Load():
		return because("this node is leaving")
	case s.Quarantined, !s.Vouched, !s.Line.Founded(), s.Installed == qpid.Epoch{}:
		return cmp.Or(a.waiting(), because("waiting for the first wave"))
	case a.s.keys.ring.Empty():
		return noKeys()
	case !a.s.hasRooms.Load():
		return because("waiting for the rooms of the cluster")
	}
	return reason{}
}

// waiting says why the node calls nobody, as far as it can tell.
func (a source) waiting() reason {
	status := a.s.loop.Snapshot().Status
	code := status.Waiting
	switch {
	case code == "" && a.s.keys.ring.Empty():
		return noKeys()
	case code == "":
		return reason{}
	}
	why := code.Text()
	if code == ticket.PausedFounding {
		why = fmt.Sprintf("waiting for %d nodes to start a cluster together", a.s.c.Node.Expect)
	}
	if m := status.Holdout; m != (eviction.Member{}) {
		text := fmt.Sprintf("%s knows of a cluster and does not answer in time to be part of it, so none is founded beside it: see to its network, its load and its clock, or stop it for good", m.Name)
		return reason{"held up by " + string(m.Name), text, true}
	}
	if off, ok := a.off(); ok {
		side := "behind"
		if off < 0 {
			side = "ahead of"
		}
		text := fmt.Sprintf("this node's clock is %.1f s %s the others': set it right (chrony, NTP); it is left out until then", off.Abs().Seconds(), side)
		return reason{"clock " + side, text, true}
	}
	there := map[eviction.Member]bool{}
	for _, m := range a.s.members.Members() {
		there[m.Member] = true
	}
	if differing := a.s.settings.differing(func(m eviction.Member) bool { return there[m] }); differing != "" {
		return reason{differing, why + ": " + differing, true}
	}
	return because(why)
}

// off returns by how much this node's clock is behind most others', if that is
// more than a node of the cluster may be.
func (a source) off() (time.Duration, bool) {
	var ahead []time.Duration
	for _, l := range a.s.links.Stats() {
		if l.Up && l.RTT > 0 {
			ahead = append(ahead, l.Offset)
		}
	}
	if len(ahead) == 0 {
		return 0, false
	}
	slices.Sort(ahead)
	n := len(ahead)
	middle := ahead[n/2]
	if low := ahead[(n-1)/2]; low.Abs() < middle.Abs() { // of two the one that says less
		middle = low
	}
	return middle, middle.Abs() > a.s.settings.now().MaxSkew
}

// bearers are the tokens that count on the admin port, which shows all rooms; nil:
// none does.
func (s *Server) bearers() admin.Bearers {
	all := s.c.Tokens()
	look, do := tokens.RightsOf(tokens.View), tokens.Rights(1<<tokens.Operate)
	if !s.c.TokensForAdmin() {
		return nil
	}
	return func(secret string) (name string, view, operate bool) {
		t := all.Find(secret)
		if t == nil {
			return "", false, false
		}
		return t.Name, t.May.Any(look) && t.Rooms.All(), t.May.Any(do) && t.Rooms.All()
	}
}
