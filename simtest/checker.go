package simtest

import (
	"slices"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/node"
	"github.com/anteroom/anteroom/qpid"
)

// samplePeriod is how often the oracles look at everything, in µs.
const samplePeriod = 100_000

// checker is what the oracles know.
type checker struct {
	rooms      []roomCheck
	sessions   []session
	commits    []decided   // the last few epochs
	gathers    []waveOf    // the last few epochs, a ring
	named      []namedWave // the last few waves
	waves      []waveOf    // those that entitled clean tickets
	gatherNext int
	alone      []qpid.Epoch    // of the last few waves of one node, which sends no gather
	gatherer   eviction.Member // whose gather was the last
	leads      int32           // how often that has changed
	takes      []take
	ops        [ops]int64
	crashes    int
	lead       qpid.NodeID // coordinator of the newest commit
	newest     qpid.Epoch
	line       eviction.Line // of the newest primary commit
	open       []bool        // by room: what the newest commit said
	lastCall   []int64       // by room: true time of the newest call, or when none was due
	installs   []int64       // by host: true time of the newest install
	offAt      []int64       // by host: true time at which its pass clock was last found near its bounds
	offLed     int64         // true time at which a node whose pass clock was so last led
	makes      map[making]made
	newestT    map[uint64]uint64 // by epoch number: the latest T of a wave of it
	gray       grayCheck
	quorums    quorumCheck
	storm      stormCheck
}

// roomCheck is what the oracles know of one room.
type roomCheck struct {
	name      string
	hard      int           // the highest limit that the room ever had
	session   time.Duration // the longest session, events aside
	over      int
	activeMax int
	active    int
	live      int   // sessions
	rose      bool  // somebody was called or let in by the input at hand,
	roseAt    int32 // at this host
	expiries  []expiry
	accounts  []account
	index     map[eviction.Account]int32
	sent      map[transfer]int // the most that was ever sent
	lines     []eviction.Line  // that its ledgers ever belonged to
	voids     []lineVoids
	settled   []eviction.Void
	relied    []lineVoids // that all nodes of a wave held for void in which slots were made
	sides     int         // survivor lines ever
	shares    bool        // its sides went on with the slots that they had, ever
	pace      pace
	census    censusCheck
	claimed   map[eviction.Void]int // slots of the newest claim of these accounts, the first of it
}

// lineVoids is what the nodes of a line ever held for void.
type lineVoids struct {
	line  eviction.Line
	voids []eviction.Void
}

// session is one visit, from the moment a node issued its pass. A person who
// takes the pass to another node is on the same visit.
type session struct {
	ticket  int32
	next    int32 // older session of the same ticket
	account int32 // place in accounts of its room
	room    uint8
	live    bool
	ended   bool
	taken   bool // by a node that went on with it, and has given no pass of its own yet
	nobodys bool // its slot is used by a node at which something else is under its id
	expires int64
	key     uint64
}

// expiry is a place in a heap of sessions by the time at which they end.
type expiry struct {
	at      int64
	session int32
}

// account is the last that was seen of one ledger.
type account struct {
	eviction.Account
	line   eviction.Line
	life   int32
	closed bool // its node has opened another, or none
	live   int  // sessions that it backs
	owned  int
	minted int
	until  int64 // true time at which its lease ends
	peers  []eviction.PeerAccount
}

// seen is what the oracles last saw of a host's node.
type seen struct {
	status   node.Status
	rooms    []node.RoomStatus
	acted    []bool // by room: the input at hand called somebody or let somebody in
	gather   qpid.Epoch
	gatherT  uint64
	gatherAt int64  // boot time at which it came
	promised uint64 // nothing may be stamped at or before it
	vouched  bool   // this life was in a primary wave: a quorum has measured its clock
	leasedBy qpid.Epoch
	asked    []bool             // by room: that gather asks about it
	lease    []int64            // by room: boot time until which its account may act
	covered  []eviction.Account // by room: of which it has said so, see S26
}

func (c *checker) init(o Options) {
	for _, r := range o.Rooms {
		c.rooms = append(c.rooms, roomCheck{name: r.Name, hard: r.Target, session: r.Session, index: map[eviction.Account]int32{}, sent: map[transfer]int{}, shares: r.OnPartition == eviction.Share})
	}
	c.storm.init(len(o.Rooms), o.hostsEver())
	c.makes, c.newestT = map[making]made{}, map[uint64]uint64{}
	c.open = make([]bool, len(o.Rooms))
	c.lastCall = make([]int64, len(o.Rooms))
	c.installs, c.offAt = make([]int64, hostsMax), make([]int64, hostsMax)
}

func (c *checker) born(h *host) {
	n := len(c.rooms)
	h.seen = seen{rooms: make([]node.RoomStatus, n), acted: make([]bool, n), asked: make([]bool, n), lease: make([]int64, n), covered: make([]eviction.Account, n)}
}

func (c *checker) died(w *world, h *host) {
	c.crashes++
	w.look(h) // what it was in the middle of counts
	w.checkAllOnDisk(h)
}

// observe looks at a node after an input.
func (w *world) observe(h *host) {
	w.look(h)
	for r := range w.checker.rooms {
		w.checkCapacity(r)
		h.seen.acted[r] = false
	}
}

// look refreshes what is known of one node and checks what one node alone can
// break.
func (w *world) look(h *host) {
	before := h.seen.status
	s := h.n.Status()
	h.seen.status = s
	w.checkEpochs(h, &before, &s)
	if s.Installed != before.Installed {
		w.uncovered(h, &s)
	}
	w.followStatus(h, &before, &s)
	for r := range w.checker.rooms {
		rs, ok := h.n.Room(w.checker.rooms[r].name, h.clock.read(w.now))
		if !ok {
			continue
		}
		c := &w.checker.rooms[r]
		old := h.seen.rooms[r]
		h.seen.rooms[r] = rs
		c.hard = max(c.hard, rs.Now.Target)
		w.checkLedger(h, &rs)
		w.checkBooks(h, r, &old, &rs)
		w.checkCut(h, &old, &rs)
		w.checkDraw(h, &old, &rs)
		w.followLine(h, c, &old, &rs)
		if h.seen.acted[r] || s.Installed != before.Installed && w.mayAct(h, r) {
			w.checkVoid(h, r, &rs)
		}
		c.voids = keepVoids(c.voids, rs.Line, rs.Voided)
		w.keepAccount(h, r, &old, &rs)
		if len(h.offered) > 0 {
			w.visitsCame(h, c, &rs)
		}
		if rs.Minted > old.Minted && rs.Account == old.Account {
			w.checkMint(h, r, &rs)
			w.checkMintAlone(h, &s, r, &rs)
			w.relies(h, r)
		}
		w.followRoom(r, &old, &rs)
	}
	if s.Line == before.Line && s.Voters.Version > before.Voters.Version || s.Knows && !before.Knows && s.Grade >= eviction.Primary { // what it knows from its disk may be long ago
		w.checkHeard(h)
	}
}

// followStatus counts what a node went through.
func (w *world) followStatus(h *host, before, s *node.Status) {
	n := &w.reached.n
	if s.Installed != before.Installed {
		if before.Installed.Num > 0 && w.outOfWaves(h) {
			w.mishap(h) // it was in no wave for so long that others may have taken over from it
		}
		w.checker.installs[h.index] = w.now
		if lead := &w.hosts[w.lives[w.lifeOf(s.List[0])].host]; lead.up() {
			w.share(h, lead)
		}
		w.note('i', uint64(h.index), s.Installed.Num)
		w.waveOfGray(h, s)
		w.checker.installed(s.Installed, s.List)
		w.checkNames(h, s)
		w.learns(h, s)
		if s.Grade >= eviction.Primary {
			w.checker.storm.primary[h.index] = w.now
			h.since = max(h.since, s.Installed.Num)
		}
		w.checkBounds(h, before, s)
		if len(s.List) == 1 { // its gather went to nobody
			w.checker.gatheredUpTo(s.Installed.Num, s.HLC)
		}
		w.leftOut(before.List, s.List)
		w.meets(h, before.List, s.List)
		w.metIn(h, s.List)
		if s.Grade == eviction.Side {
			n[reachSide]++
		}
		if s.Grade >= eviction.Primary && w.isTwin(h) {
			n[reachTwinInWaves]++
		}
		h.seen.vouched = h.seen.vouched || s.Grade >= eviction.Primary
		if s.Grade == eviction.Unanimous {
			n[reachUnanimous]++
		}
	}
	if s.Frozen && !before.Frozen {
		n[reachFrozen]++
	}
	if s.Quarantined && !before.Quarantined {
		n[reachQuarantine]++
		w.mishap(h)
		w.printf("%s is in quarantine, its clock %v off", h.name, micros(h.clock.ahead))
	}
	if before.Voters.Version > 0 && s.Voters.Version > before.Voters.Version {
		n[reachVoters]++
	}
}

// followLine notes survivors: a node that was on one line, or never was on any,
// goes on on another that nobody was on before. A room whose survivor_after is 0
// has none: if it follows the nodes to another line, it brings its slots along.
func (w *world) followLine(h *host, c *roomCheck, old, rs *node.RoomStatus) {
	if rs.Line == old.Line || !rs.Line.Founded() || slices.Contains(c.lines, rs.Line) {
		return
	}
	c.lines = append(c.lines, rs.Line)
	switch {
	case old.Line.Founded() && rs.Room.Survivor == 0:
	case old.Line.Founded() || rs.Room.Survivor != 0 && h.seen.status.Voters.From.Founded():
		c.sides++
		w.reached.n[reachSurvivor]++
		w.printf("%s goes on alone with room %s", h.name, c.name)
	case len(c.lines) == 1:
		w.reached.n[reachFounding]++
		if len(h.seen.status.List) < w.o.Nodes {
			w.reached.n[reachExpectFew]++
		}
	default:
		w.reached.n[reachSecondFounding]++
		if w.beganBeside(h, w.roomIndex(c.name), rs.Line) {
			c.sides++
			w.printf("%s begins with room %s beside nodes that remember", h.name, c.name)
		}
		w.outlived(c, rs.Line)
	}
}

// beganBeside reports whether a room began on a line by a founding of nodes that have
// forgotten everything, keys included, while one that remembers an older line lives on and
// none of them hears of it. There nothing can be held: operating.md says so.
func (w *world) beganBeside(h *host, r int, line eviction.Line) bool {
	if w.o.Faults.KeepKeys {
		return false // they wait for D
	}
	beside := false
	for i := range w.hosts {
		o := &w.hosts[i]
		if !o.up() || !o.seen.rooms[r].Line.Founded() || o.seen.rooms[r].Line == line {
			continue
		}
		for _, m := range h.seen.status.List {
			f := w.lives[w.lifeOf(m)].host
			if w.gossip.pair(f, o.index).life == o.life && !w.wires.dead(f, o.index) && !w.wires.dead(o.index, f) {
				return false
			}
		}
		beside = true
	}
	return beside
}

// leftOut notes who lives and is in waves no longer, as one node sees it.
func (w *world) leftOut(before, list []eviction.Member) {
	if slices.Equal(before, list) {
		return
	}
	for _, m := range before {
		l := &w.lives[w.lifeOf(m)]
		if !l.over && !slices.Contains(list, m) {
			w.mishap(&w.hosts[l.host])
			w.reached.n[reachLeftOut]++
		}
	}
}

func (w *world) followRoom(r int, old, rs *node.RoomStatus) {
	n := &w.reached.n
	if rs.Closed && !old.Closed {
		n[reachClosed]++
	}
	if rs.Minted > old.Minted && rs.Account == old.Account && old.Minted > 0 {
		n[reachTopUp]++
	}
	if rs.Wanting > 0 && old.Wanting == 0 {
		n[reachWanting]++
	}
	if rs.QPIDRoot != old.QPIDRoot {
		n[reachRootMoved]++
	}
	if rs.Cut.Keying > old.Cut.Keying {
		n[reachRekeyed]++
	}
	w.followEvent(old, rs)
}

// accountOf finds or opens the checker's file on an account.
func (c *roomCheck) accountOf(a eviction.Account) int32 {
	i, ok := c.index[a]
	if !ok {
		i = int32(len(c.accounts))
		c.accounts = append(c.accounts, account{Account: a, life: none})
		c.index[a] = i
	}
	return i
}

// keepAccount files the state of a node's ledger.
func (w *world) keepAccount(h *host, r int, before, rs *node.RoomStatus) {
	c := &w.checker.rooms[r]
	if before.Account != rs.Account && before.Account.Born != 0 {
		c.accounts[c.accountOf(before.Account)].closed = true
	}
	if rs.Account.Born == 0 {
		return
	}
	a := &c.accounts[c.accountOf(rs.Account)]
	a.line, a.life, a.owned, a.minted, a.peers = rs.Line, h.life, rs.Owned, rs.Minted, rs.Peers
	a.until = w.now + rs.LeaseUntil - h.clock.boot(w.now)
}

// leased reports whether the host's node may still act on its last lease.
func (w *world) leased(h *host) bool {
	return h.up() && h.clock.boot(w.now) < h.seen.status.LeaseUntil
}

// mayAct reports whether the lease of the host's account of room r is good: by a clock
// that nobody doubts. In quarantine a node lets nobody in and extends nothing. If its
// lease is still good afterwards it counts again, with all that it has; one by a clock
// that stood still is not, which is for checkLease.
func (w *world) mayAct(h *host, r int) bool {
	return h.up() && !h.stopped && !h.seen.status.Quarantined && h.clock.boot(w.now) < h.seen.rooms[r].LeaseUntil
}

// slowest is the pass time of the slowest node that may judge a pass: a quorum has
// measured its clock in this life, and it is not in quarantine. One that stands
// still counts: when it goes on it answers by its own clock. That no other answers
// is for checkJudge. ok is false if there is none.
func (w *world) slowest() (clock int64, ok bool) {
	for i := range w.hosts {
		h := &w.hosts[i]
		if !h.up() || h.stopped || h.seen.status.Quarantined || !h.seen.vouched {
			continue
		}
		if c := h.seen.status.Clock + h.clock.boot(w.now) - h.seen.status.ClockAt; !ok || c < clock {
			clock, ok = c, true
		}
	}
	return clock, ok
}

// sample looks at everything that is too expensive for every event.
func (w *world) sample() {
	for i := range w.hosts {
		if h := &w.hosts[i]; h.up() {
			w.look(h)
		}
	}
	for r := range w.checker.rooms {
		w.checkCapacity(r)
		w.checkSupply(r)
		w.checkRoots(r)
	}
	w.checkProgress()
	w.checkStorm()
	w.checkGray()
	w.checkKept()
	w.agenda.push(w.now+samplePeriod, evSample, 0, 0)
}
