package node

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/ticket"
	"github.com/anteroom/anteroom/qpid"
)

// Node is everything that one node decides. It is not safe for concurrent use.
type Node struct {
	c     Config
	ev    *eviction.Node
	rooms []*room // by name
	dues  dues

	log        []Admission
	taken      []qpid.Answer
	out        []eviction.Message
	saved      *eviction.Record
	stale      bool   // something was installed since saved was compared
	seq        uint64 // of the last deleteMin called here
	used       used
	asked      []askedBy // who asks which of their tickets went on here
	copies     copies
	visitsKept []keptVisits
	kept       []keptHome
	goOnAt     int64             // boot time at which to look at them again
	among      members           // of the last list that was asked about
	hasten     bool              // there is more to go on with than one Tick did
	fresh      []uint64          // used tickets that are not kept yet
	broke      []eviction.Broken // rooms given up that nobody was told of yet
	letGo      []Place           // likewise
	tellAt     int64             // boot time at which former homes are told again
	leaveBy    int64             // boot time at which it says goodbye, whatever it still has; 0: it stays
	leavers    []eviction.Member // who leave as well, as far as this node has heard: they are given nothing
	visitLog   visitLog
}

// New returns a node. The error lists everything that is wrong with c.
func New(c Config, now eviction.Time) (*Node, error) {
	c.RoomsMax = cmp.Or(c.RoomsMax, 1000)
	c.SpentMax = cmp.Or(c.SpentMax, 1_000_000)
	c.UsedMax = cmp.Or(c.UsedMax, UsedMax)
	c.DiskWait = cmp.Or(c.DiskWait, c.Cluster.WithDefaults().Lease)
	if err := validate(c); err != nil {
		return nil, err
	}
	c.Rooms = slices.Clone(c.Rooms)
	for i := range c.Rooms {
		c.Rooms[i] = c.seeded(c.Rooms[i])
		if v := &c.Rooms[i].Version; *v == (eviction.Version{}) {
			v.Stamp = 1 // older than any change, and newer than no room at all
		}
	}
	n := &Node{c: c, seq: uint64(now.Wall), saved: c.Persisted}
	n.ev = eviction.NewNode(c.Cluster, eviction.Start{
		Self: c.Self, Expect: c.Expect, Joins: c.Joins, Kept: c.KeptKeys, Disk: c.Disk, Record: c.Persisted,
	}, c.Rooms, now)
	n.loadUsed(c.Used)
	n.c.Used = nil
	n.openVisits(now)
	n.addRooms(now)
	return n, nil
}

// seeded gives the shuffles of a room their seeds: those of an earlier life of this
// node, whose hashes may be public, and else new ones.
func (c *Config) seeded(r eviction.Room) eviction.Room {
	if c.Persisted != nil {
		for i := range c.Persisted.Rooms {
			if old := &c.Persisted.Rooms[i].Room; old.Name == r.Name {
				r = r.KeepSeeds(old)
			}
		}
	}
	return r.Seeded(c.Secret[:])
}

func validate(c Config) error {
	errs := []error{c.Cluster.Validate()}
	if c.Self.Name == "" {
		errs = append(errs, errors.New("node.id: empty; give the node a name that no other node has"))
	}
	if c.Expect < 0 {
		errs = append(errs, fmt.Errorf("node.expect: %d is negative; give the number of nodes that start together, or 0", c.Expect))
	}
	if n := offeredOf(c.Rooms); n > c.RoomsMax {
		errs = append(errs, fmt.Errorf("rooms: %d are more than the %d that a node may have", n, c.RoomsMax))
	}
	seen := make(map[string]bool, len(c.Rooms))
	for _, r := range c.Rooms {
		errs = append(errs, r.Validate())
		if seen[r.Name] {
			errs = append(errs, fmt.Errorf("room %q: named twice; give each room a name of its own", r.Name))
		}
		seen[r.Name] = true
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("%w:\n%w", ErrInvalid, err)
	}
	return nil
}

// offered is a room for visitors: to them a deleted one is unknown.
func (n *Node) offered(name string) (*room, error) {
	r, err := n.room(name)
	if err == nil && r.gate.Room().Mode == eviction.Deleted {
		return nil, ticket.ErrRoomUnknown
	}
	return r, err
}

// SetView takes in what the failure detector believes.
func (n *Node) SetView(now eviction.Time, v eviction.View) {
	n.ev.SetView(now, v)
	n.advance(now)
}

// SetRoom proposes a room's configuration, new or changed. It takes force
// everywhere with a coming wave.
func (n *Node) SetRoom(now eviction.Time, r eviction.Room) error {
	if err := r.Validate(); err != nil {
		return fmt.Errorf("%w:\n%w", ErrInvalid, err)
	}
	old, err := n.room(r.Name)
	if full := n.full(&r, old); full != nil {
		return full
	}
	if err == nil {
		was := old.gate.Room()
		r = old.gate.KeepDraw(r).KeepSeeds(&was).Seeded(n.c.Secret[:])
		if old.gate.Redraws(&r) {
			return fmt.Errorf("%w: room %q: the draw of the event is over; its seed cannot change, give another start", ErrInvalid, r.Name)
		}
	} else {
		r = r.Seeded(n.c.Secret[:])
	}
	n.ev.SetRoom(now, r)
	n.advance(now)
	return nil
}

// Govern bounds the limit of a room by what its origin bears; 0: not at all. It
// counts while this node is the coordinator, and the room's limit counts as well.
func (n *Node) Govern(now eviction.Time, room string, bound int) {
	if r, err := n.room(room); err == nil {
		n.ev.Govern(r.gate, bound)
		n.advance(now)
	}
}

// full says why there is no place for r, which replaces old unless that is nil.
// Deleted rooms are remembered, or a node that was away would bring them back.
func (n *Node) full(r *eviction.Room, old *room) error {
	var rooms []eviction.Room
	for _, o := range n.rooms {
		if o != old {
			rooms = append(rooms, o.gate.Room())
		}
	}
	switch offered := offeredOf(rooms); {
	case r.Mode != eviction.Deleted && offered >= n.c.RoomsMax:
		return fmt.Errorf("%w: room %q: there are %d rooms already, the most a node may have", ErrInvalid, r.Name, offered)
	case old == nil && len(rooms) >= 2*n.c.RoomsMax:
		return fmt.Errorf("%w: room %q: %d deleted rooms are remembered besides %d others, and no more fit: use the name of one of them",
			ErrInvalid, r.Name, len(rooms)-offered, offered)
	}
	return nil
}

// offeredOf counts the rooms that are not deleted.
func offeredOf(rooms []eviction.Room) (n int) {
	for i := range rooms {
		if rooms[i].Mode != eviction.Deleted {
			n++
		}
	}
	return n
}

// Adopt replaces what all nodes share, the settings of the cluster. It fails
// with eviction.ErrSettled once the node was in a wave.
func (n *Node) Adopt(now eviction.Time, c eviction.Config) error {
	if err := n.ev.Adopt(now, c); err != nil {
		return err
	}
	n.c.Cluster = c // which everything here reads when it needs it
	n.advance(now)
	return nil
}

// Step takes in a message from another node. The error says what was wrong
// with it; the node goes on.
func (n *Node) Step(now eviction.Time, m eviction.Message) error {
	if m.Body == nil {
		return fmt.Errorf("node: empty message from %v", m.From)
	}
	if m.To != n.c.Self.Member || m.From == m.To {
		return fmt.Errorf("node: %s from %v is for %v, this is %v", m.Body.Kind(), m.From, m.To, n.c.Self.Member)
	}
	n.clock(now) // whatever it is: an account may have lapsed since the last input
	var err error
	switch b := m.Body.(type) {
	case *eviction.RoomQPID:
		return n.onQPID(now, m.From, b)
	case *eviction.SyncRequest:
		n.onSyncRequest(now, m.From)
	case *eviction.SyncReply:
		n.onSyncReply(now, m.From, b)
	case *eviction.SyncAck:
		n.onSyncAck(m.From, b)
	case *eviction.Used:
		n.onUsed(now, m.From, b)
	case *eviction.UsedAck:
		n.onUsedAck(now, m.From, b)
	case *eviction.Places:
		n.hearOfLeave(m.From)
		n.onPlaces(now, m.From, b)
	case *eviction.Copies:
		err = n.onCopies(now, m.From, b)
	case *eviction.CopiesAck:
		n.onCopiesAck(now, m.From, b)
	case *eviction.Goodbye:
		n.hearOfLeave(m.From)
		err = n.ev.Step(now, m)
	case *eviction.Slots:
		if len(b.Visits) > 0 {
			n.hearOfLeave(m.From)
		}
		err = n.ev.Step(now, m)
	default:
		err = n.ev.Step(now, m)
	}
	n.advance(now)
	n.takeOffered(now)
	n.giveAway(now)
	return err
}

func (n *Node) onQPID(now eviction.Time, from eviction.Member, b *eviction.RoomQPID) error {
	r, err := n.room(b.Room)
	if err != nil {
		return err
	}
	if b.Msg.From != from.Name {
		return fmt.Errorf("node: qpid message of %s came from %v", b.Msg.From, from)
	}
	err = r.q.Step(b.Msg)
	r.stir()
	n.advance(now)
	return err
}

// clock takes in the clocks before a visitor's request or a message is handled,
// carries out what has lapsed meanwhile, and returns the pass time.
func (n *Node) clock(now eviction.Time) int64 {
	t := n.ev.Now(now)
	if n.ev.Pending() {
		n.advance(now)
	}
	return t
}

// Tick does what is due at now.
func (n *Node) Tick(now eviction.Time) {
	n.noteLate(now)
	n.ev.Tick(now)
	n.advance(now)
	n.goOn(now)
	if n.copies.sweeps > 0 {
		most := sweepMax / (1 + len(n.copies.heirs)/fewMembers)
		for _, r := range n.rooms {
			most = r.sweepOn(most)
		}
	}
	n.tell(now)
	n.tellUsed(now)
	n.forgetUsed(now)
	n.sweepLines(now)
	n.tickRooms(now)
	n.giveAway(now)
}

// Ready drains the work that is to be done. Call it after every input.
func (n *Node) Ready(now eviction.Time) Ready {
	n.copies.follow(n, now)
	n.copyOut(now)
	messages, _ := n.ev.Take()
	r := Ready{Messages: append(n.out, messages...), Log: n.log, Taken: n.taken, Used: n.fresh, Broken: n.broke, LetGo: n.letGo, Kept: n.copies.kept}
	n.copies.kept = nil
	r.Visits = n.batch(now)
	if n.stuck(now) {
		r.Messages = nil
	}
	n.out, n.log, n.taken, n.fresh, n.broke, n.letGo = nil, nil, nil, nil, nil, nil
	if n.c.Disk && (len(r.Messages) > 0 || n.stale) {
		n.stale = false
		if rec := n.ev.Unsaved(n.saved); rec != nil {
			r.Save, n.saved = rec, rec
		}
	}
	r.Deadline = max(now.Boot+1, min(n.ev.Deadline(now), n.leaveDue(), n.copiesDue(now), n.lateAt(), n.dues.agenda.next()))
	return r
}

// Saved notes that a record, the last that Ready has asked for, is durable.
func (n *Node) Saved(r *eviction.Record) { n.ev.Saved(r) }

// Status is what an operator, or an oracle, sees of the node.
func (n *Node) Status() Status {
	s := n.ev.Status()
	return Status{
		Self: n.c.Self.Member, Epoch: s.Epoch, Installed: s.Installed, Grade: s.Grade, LeaseUntil: s.LeaseUntil,
		Line: s.Line, Knows: s.Knows, Voters: s.Voters, List: s.List, Frozen: s.Frozen, Leading: s.Leading,
		Quarantined: s.Quarantined, Left: n.ev.Left(), Unwritten: n.visitLog.fails, Vouched: s.Vouched, Acts: s.Acts, Reckons: s.Reckons, HLC: s.HLC, Clock: s.Clock, ClockAt: s.ClockAt, Waiting: n.waiting(s), Holdout: s.Holdout,
	}
}

// Met returns the members that were in a wave with this node and are not
// forgotten yet.
func (n *Node) Met() []eviction.Member { return n.ev.Met() }

// Absent returns those of them who may be at another side of a split.
func (n *Node) Absent() []eviction.Member { return n.ev.Absent() }

// Installed is the last wave that the node was in, as in Status.
func (n *Node) Installed() qpid.Epoch { return n.ev.Installed() }

func (n *Node) waiting(s eviction.Status) ticket.Pause {
	switch {
	case s.Quarantined:
		return ticket.PausedClock
	case !s.Line.Founded() && n.c.Joins && n.c.Expect == 0:
		return ticket.PausedJoining
	case !s.Line.Founded():
		return ticket.PausedFounding
	case s.Aside:
		return ticket.PausedSplit
	}
	return ""
}

// Rooms returns the rooms' names, sorted.
func (n *Node) Rooms() []string {
	names := make([]string, len(n.rooms))
	for i, r := range n.rooms {
		names[i] = r.name
	}
	return names
}

// Room returns one room's state at this node.
func (n *Node) Room(name string, now eviction.Time) (RoomStatus, bool) {
	r, err := n.room(name)
	if err != nil {
		return RoomStatus{}, false
	}
	g, l := r.gate, r.gate.Ledger()
	active, coming := g.Active()
	missing, wholeAt := g.Missing()
	s := RoomStatus{
		Room: g.Room(), Now: *g.InForce(), Draw: g.Draw(), Account: l.Account(), Line: g.Line(), Minted: l.Minted(), Owned: l.Owned(), Used: l.Used(),
		Free: l.Free(), Peers: l.Peers(), Voided: g.Voids(), Queued: g.Queue.Len() + len(r.due.ids),
		Called: r.called, OnSite: r.onSite, Parked: r.parked, Spent: r.spent, Cut: g.Cut(), Open: g.IsOpen(),
		Closed: g.Closed(), MayAdmit: n.ev.Calls(g, now), LeaseUntil: n.ev.LeaseOf(g), QPIDRoot: r.q.IsRoot(), QPIDFrozen: r.q.Frozen(), QPIDEpoch: r.q.Epoch(), Total: r.waiting(), Counted: int64(g.Counted(n.ev.Grade())), Tokens: g.Tokens(now.Boot),
		Active: active, Coming: coming, Rate: g.Rate(), HeldUntil: g.HeldUntil(), Wanting: len(r.wanting), Shares: g.Shares(), Missing: missing, WholeAt: wholeAt, Bound: g.Bound(), Wait: r.waitOfNext(now),
		Bare: r.bareCount(), Kept: r.keptCount(),
	}
	if r.broken != nil { // what it knows of its visitors is not to be built on
		s.Broken, s.Queued, s.Called, s.OnSite, s.Parked, s.Spent = r.broken.What, 0, 0, 0, 0, 0
	}
	return s, true
}
