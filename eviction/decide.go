package eviction

import (
	"slices"

	"github.com/anteroom/anteroom/qpid"
)

// decision is what a coordinator knows when every listed node has replied.
type decision struct {
	now     Time
	epoch   qpid.Epoch
	t       uint64 // the gather's T
	list    []Member
	grade   Grade
	line    Line
	met     []Sighting // members that are not in the list
	awaited []Member   // of them those that a new coordinator has not had the time to hear of
	votes   []bool     // by index: the life that its name votes in
	voters  Voters     // whose quorum makes the wave a primary one; none: of a line that begins with it

	origins []origin // by index: where rooms stand that were never on a line
}

// conclude decides about one room, and keeps what the next decision goes by.
func (g *Gate) conclude(d *decision, r *RoomReply) RoomCommit {
	c, next := g.decide(d, r)
	g.told, g.toldSeed, g.mints, g.hint, g.short, g.pacer = next.told, next.toldSeed, next.mints, next.hint, next.short, next.pacer
	return c
}

// sequel is what a decision leaves to those after it.
type sequel struct {
	told     uint64   // the newest keying that anyone holds, for the next gather to tell everybody,
	toldSeed [32]byte // and its seed
	mints    bool     // a next wave will mint
	hint     int
	short    bool
	pacer    pacer
}

// decide turns the replies about one room into a commit. It changes nothing: the gate is
// as this coordinator knows it, and what comes of the decision is in what it returns.
func (g *Gate) decide(d *decision, r *RoomReply) (RoomCommit, sequel) {
	next := sequel{told: g.told, toldSeed: g.toldSeed, mints: g.mints, hint: g.hint, short: g.short, pacer: g.pacer.clone()}
	rs := newRoomSums(d, g, r)
	for _, rn := range r.Nodes {
		if rn.Keying == rs.keying && rs.keying > g.keying {
			next.told, next.toldSeed = rn.Keying, rn.Seed
			break
		}
	}
	c := RoomCommit{Room: g.cfg.Name, Agreed: rs.agreed, TTL: rs.ttl, Born: rs.born, Supply: r.Supply.left(), Cut: g.cut}
	if !rs.agreed {
		c.Config = &rs.plan
	}
	c.Rate, c.Active, c.Called, c.Queued, c.Waiting, c.Digest, c.First = rs.calls, rs.used, rs.called, rs.queued+rs.due, rs.waiting, r.Digest, rs.first
	c.Bound = g.bound
	c.Closed = c.Supply > rs.target // on a side too: back among the others, a lease from before the split may last still
	if d.grade < Side {
		return c, next
	}
	next.mints = false
	admits := rs.cfg.OnPartition.admits(d.grade)
	if d.grade >= Primary {
		if !g.chooseLine(d, rs, &c) {
			return c, next
		}
		next.mints = g.account(d, rs, r, &c)
	} else if admits {
		rs.hold(&c)
	}
	rs.back = g.awaitLost(d.list, d.now.Boot, admits)
	g.callNext(d, rs, r, &c, &next, admits)
	return c, next
}

// roomSums are the replies about one room, by list index.
type roomSums struct {
	plan    Room // the newest configuration, with its events
	cfg     Room // what of it holds at T
	target  int  // the limit: cfg's, or what the governor leaves of it
	agreed  bool
	nodes   []RoomNode // by index; Version.By "" and Born 0 for one that does not have the room
	valid   []bool     // the account goes on
	born    []uint64
	free    []int
	queued  int
	due     int
	used    int
	called  int
	wanted  int
	wait    int64 // µs until nothing that is lost can act any more
	ttl     int64
	calls   float64
	keying  uint64 // the newest that anyone holds
	keyed   bool   // everyone holds it
	first   []int  // where each node's people beyond the cut begin, see RoomCommit.First
	waiting []int
	back    comeback
	inside  int // slots owned by, or on their way between, valid accounts
}

func newRoomSums(d *decision, g *Gate, r *RoomReply) *roomSums {
	n := len(d.list)
	rs := &roomSums{
		plan: g.cfg, agreed: len(r.Nodes) == n, nodes: make([]RoomNode, n), valid: make([]bool, n),
		born: make([]uint64, n), free: make([]int, n), waiting: make([]int, n), keyed: true,
	}
	// A room that stops sharing waits until every side is back: one that is
	// away would go on with its slots.
	stays := r.Newest != nil && rs.plan.OnPartition == Share && r.Newest.OnPartition != Share && len(d.met) > 0
	if r.Newest != nil && r.Newest.Version.Compare(rs.plan.Version) > 0 && !stays {
		rs.plan = *r.Newest
	}
	rs.cfg = rs.plan.At(max(d.t, g.at))
	rs.target = g.governed(rs.cfg.Target)
	sum := g.sum
	if rs.plan.Version != g.cfg.Version {
		sum = rs.plan.Sum()
	}
	for i := range rs.nodes {
		rs.nodes[i] = RoomNode{Index: i, Lapsed: -1, OldAge: -1, Lightest: qpid.Empty(i)} // of one that has no such room yet
		rs.nodes[i].setOff(d.origins[i])
	}
	for _, rn := range r.Nodes {
		rs.nodes[rn.Index] = rn
		rs.nodes[rn.Index].setOff(d.origins[rn.Index])
		rs.born[rn.Index] = rn.Born
		rs.free[rn.Index] = rn.Free
		rs.waiting[rn.Index] = rn.Queued + rn.Due
		rs.queued += rn.Queued
		rs.due += rn.Due
		rs.wanted += rn.Wanted
		rs.used += rn.Used
		rs.called += rn.Called
		rs.calls += rn.Calls
		rs.ttl = max(rs.ttl, rn.TTL)
		rs.agreed = rs.agreed && rn.Version == rs.plan.Version && rn.Sum == sum
		rs.keying = max(rs.keying, rn.Keying)
	}
	if r.Digest != nil {
		rs.first = make([]int, n)
		for _, rn := range r.Nodes {
			rs.first[rn.Index] = r.Digest.before(rn.First)
		}
	}
	rs.ttl = max(rs.ttl, micros(rs.plan.longest()))
	for _, rn := range r.Nodes {
		rs.keyed = rs.keyed && rn.Keying == rs.keying
	}
	return rs
}

// setOff puts a room that was never on a line on the one that its nodes come from.
func (n *RoomNode) setOff(o origin) {
	if !n.Line.Founded() {
		n.Line, n.Voters, n.Lapsed = o.line, o.voters, o.lapsed
	}
}

// chooseLine says which line the room's ledgers belong to. A room follows the
// nodes to a survivors' line only after its own survivor_after; until then
// false: nobody is called. So does a room that is new on such a line: whoever is
// on the line that the survivors left may have it too.
func (g *Gate) chooseLine(d *decision, rs *roomSums, c *RoomCommit) bool {
	var old Line
	lapsed := int64(-1)
	for _, n := range rs.nodes {
		if n.Line == d.line {
			c.Line = d.line
			return true
		}
		if n.Line.Founded() && (!old.Founded() || n.Line.compare(old) < 0) {
			old = n.Line
		}
		if n.Lapsed >= 0 && (lapsed < 0 || n.Lapsed < lapsed) {
			lapsed = n.Lapsed
		}
	}
	c.Line = d.line
	if !old.Founded() {
		return true // the room is new, and no other line can have it
	}
	after, ok := g.survivorAfter()
	if rs.cfg.OnPartition != Share && (!ok || lapsed >= 0 && lapsed < after) && !rs.quorumOf(old, d) {
		c.Line = old
		return false
	}
	c.From = old
	return true
}

// quorumOf reports whether the nodes that are still on the room's old line
// are a quorum of its voters: then no other side can go on with it.
func (rs *roomSums) quorumOf(old Line, d *decision) bool {
	var voters Voters
	var know []qpid.NodeID
	for i, n := range rs.nodes {
		if n.Line == old && n.Voters.Version > 0 && d.votes[i] {
			know = append(know, d.list[i].Name)
			if n.Voters.newer(voters) {
				voters = n.Voters
			}
		}
	}
	return voters.quorum(know)
}

// twins finds tickets that wait at two nodes, as may be after a partition: at
// all but the first they are parked, for a queue's weights are unique.
func (rs *roomSums) twins() (twins []Tagged) {
	for i, n := range rs.nodes {
		for _, earlier := range rs.nodes[:i] {
			if !n.Lightest.IsEmpty() && n.Lightest == earlier.Lightest {
				twins = append(twins, Tagged{n.Lightest, i})
				break
			}
		}
	}
	return twins
}

// account voids and settles what is gone, and mints or burns the difference
// to the limit: all but what accounts outside the list may still use, see Supply. It
// reports whether a next wave will mint.
func (g *Gate) account(d *decision, rs *roomSums, r *RoomReply, c *RoomCommit) (mints bool) {
	voids := make([]Void, len(r.Voids))
	safe := make(map[Member]uint64, len(r.Voids)) // looked up only
	for i, v := range r.Voids {
		voids[i] = Void{v.Member, v.Max}
		if v.Nodes == len(d.list) {
			safe[v.Member] = v.Min
			c.Safe = append(c.Safe, Void{v.Member, v.Min})
		}
	}
	lost := g.settleListed(d, rs, c, &voids, safe)
	lost = append(lost, g.settleGone(d, rs, c, &voids, safe)...)
	c.Void = voids
	if c.Sure = rs.accepted(d, r.Supply, c.Line); c.Sure {
		c.Claims = r.Supply.Claims
	}
	inside := 0
	for i, n := range rs.nodes {
		switch {
		case rs.valid[i]:
			inside += n.Minted
		case n.Born > 0: // its books are in the sums, and no longer count
			rs.hold(c)
			return false
		}
	}
	for _, n := range r.Net {
		i := slices.Index(d.list, n.Account.Member)
		if i < 0 || !rs.valid[i] || rs.nodes[i].Born != n.Account.Born {
			inside += n.Slots
		}
	}
	mints = rs.make(r.Supply, c, inside, lost, safe)
	inside += c.Mint
	rs.free[0] += c.Mint
	if c.Missing = max(0, rs.target-inside); len(lost) == 0 {
		c.Missing = 0 // the next wave makes them
	} else if c.Missing > 0 {
		c.WholeIn = rs.wait
	}
	rs.inside = inside
	rs.hold(c)
	return mints
}

// hold stops calls while more slots exist than the limit, and burns what is
// free of the excess. Nobody is thrown out.
func (rs *roomSums) hold(c *RoomCommit) {
	excess := c.Supply - rs.target
	if c.Closed = excess > 0; c.Closed {
		c.Burn = deal(excess, rs.free, 0)
	}
}

// settleListed gives new accounts to listed nodes whose old one is void or of
// another line, and returns the older accounts of which something can still act.
func (g *Gate) settleListed(d *decision, rs *roomSums, c *RoomCommit, voids *[]Void, safe map[Member]uint64) (lost []Void) {
	for i, m := range d.list {
		n := rs.nodes[i]
		j, known := findVoid(*voids, m)
		onLine := n.Line == c.Line || c.From.Founded() && n.Line == c.From || rs.cfg.OnPartition == Share && n.Line.Founded()
		if n.Born > 0 && onLine && (!known || n.Born > (*voids)[j].Epoch) {
			rs.valid[i] = true
		} else {
			rs.born[i] = d.epoch.Num
			rs.free[i] = 0
			if n.Born > 0 {
				lost = append(lost, Void{m, n.Born})
			}
		}
		if n.OldAge < 0 && !known && (n.Born == 0 || rs.valid[i]) {
			continue // its first account
		}
		// Also if its void is older than its account was when it was opened: a
		// coordinator that had not heard of the void took it for a newcomer.
		*voids = addVoid(*voids, Void{m, rs.born[i] - 1})
		quiet := n.OldAge < 0 || n.OldAge >= g.delayWith(rs)
		if quiet && rs.valid[i] && safe[m] >= n.Born-1 {
			c.Settled = append(c.Settled, Void{m, n.Born - 1})
		} else {
			lost = append(lost, Void{m, n.Shut})
			rs.wait = max(rs.wait, g.delayWith(rs)-max(0, n.OldAge))
		}
	}
	return lost
}

// settleGone voids members that are not in the list and returns those of which
// something can still act.
func (g *Gate) settleGone(d *decision, rs *roomSums, c *RoomCommit, voids *[]Void, safe map[Member]uint64) (lost []Void) {
	for _, m := range d.met {
		reclaimed := slices.Contains(rs.cfg.Reclaimed, m.Member) || m.Left || succeeded(d.list, m.Member)
		if rs.cfg.OnPartition == Share && !reclaimed && m.Member.Name != "" {
			lost = append(lost, Void{m.Member, m.Epoch})
			continue
		}
		i, known := findVoid(*voids, m.Member)
		if (m.Age >= micros(g.c.ExcludeAfter) && !slices.Contains(d.awaited, m.Member) || reclaimed) && (!known || (*voids)[i].Epoch < m.Epoch) {
			*voids = addVoid(*voids, Void{m.Member, d.epoch.Num - 1}) // another side may open one under the same number
		}
		if e, ok := safe[m.Member]; ok && e >= m.Epoch && m.Age >= g.delayWith(rs) {
			c.Settled = append(c.Settled, Void{m.Member, e})
		} else {
			lost = append(lost, Void{m.Member, m.Epoch})
			rs.wait = max(rs.wait, g.delayWith(rs)-m.Age)
		}
	}
	return lost
}

// delayWith is D with the longest session that any listed node knows of.
func (g *Gate) delayWith(rs *roomSums) int64 {
	return g.delayFor(rs.ttl)
}

// callNext sets the cut (or the draw, or the number of deleteMins), the slot
// transfers, and whether newcomers may walk in.
func (g *Gate) callNext(d *decision, rs *roomSums, r *RoomReply, c *RoomCommit, next *sequel, admits bool) {
	cfg, free := &rs.cfg, 0
	for _, b := range c.Burn {
		rs.free[b.Index] -= b.N
	}
	for _, f := range rs.free {
		free += max(0, f)
	}
	if c.Closed || !admits || !cfg.started(d.t) || cfg.Method == Reject || !rs.keyed || d.now.Boot < g.holdUntil {
		free = 0
	}
	k, tokens := max(0, free-rs.wanted), 0 // who is on the site already comes first
	var left []int                         // of the tokens that were dealt before
	if c.Paced = cfg.NewPerMinute > 0; c.Paced {
		q := quota{cfg.NewPerMinute, rs.share(d.grade), max(1, cfg.Target), len(d.list)}
		left = next.pacer.hear(d.now.Boot, q, d.list, rs.nodes)
		tokens = next.pacer.fill(d.now.Boot, q)
		k = min(k, tokens)
	}
	if !cfg.Mode.calls() { // slots still move, to sessions of lost nodes
		k = 0
	}
	next.hint, next.short = min(k+k/4+64, 1<<20), !r.Front.Sampled && len(r.Front.Items) < min(k, rs.queued)
	need := g.entitle(d, rs, r, c, k)
	waiting := c.Queued > 0 || rs.wanted > 0
	c.Open = !waiting && free > 0 && !cfg.QueueAll && cfg.Mode.calls() && cfg.Algorithm == ByCut && d.now.Boot >= g.shyUntil
	switch {
	case free == 0:
	case waiting:
		c.Moves = plan(rs.free, need)
	default:
		arrivals := make([]float64, len(rs.nodes))
		for i, n := range rs.nodes {
			arrivals[i] = n.Arrivals
		}
		c.Moves = plan(rs.free, spread(rs.free, arrivals))
		need = atMost(rs.free, (tokens+len(rs.free)-1)/len(rs.free)) // nobody knows where the next one joins
	}
	if c.Paced {
		if free == 0 || !cfg.Mode.calls() {
			clear(need)
		}
		c.Tokens = next.pacer.deal(d.now.Boot, tokens, need, left, int(d.epoch.Num%uint64(len(need))))
	}
}

// share returns how many slots this side has, for its share of the rate. Those that
// the governor has burned count at a majority alone: it calls only while no more
// exist anywhere than the governed limit, so that two sides never count them twice.
func (rs *roomSums) share(grade Grade) int {
	owned := 0
	for i, n := range rs.nodes {
		if n.Born > 0 && n.Born == rs.born[i] {
			owned += max(0, rs.free[i]) + n.Used
		}
	}
	has := max(rs.inside, owned)
	if grade >= Primary {
		has += rs.cfg.Target - rs.target
	}
	return min(has, rs.cfg.Target)
}

// entitle picks who is called next and returns how many slots each node needs.
func (g *Gate) entitle(d *decision, rs *roomSums, r *RoomReply, c *RoomCommit, k int) (need []int) {
	k -= rs.due
	if (rs.cfg.Method == Random) != (g.drawKey == d.epoch) {
		k = 0 // the replies are in another order
	}
	queued := func(i int) int { return rs.nodes[i].Queued }
	need = make([]int, len(rs.nodes))
	switch {
	case rs.cfg.Algorithm == ByQPID:
		c.Delete = max(0, min(k, rs.queued))
		need[0] = c.Delete
		c.Twins = rs.twins()
	case rs.cfg.Method == Random:
		everything := qpid.UpTo(1<<63 - 1)
		if cut, n, ok := r.Front.choose(k, rs.queued, len(need), everything, queued); ok {
			c.Key, c.Drawn, need = d.epoch, cut, n
		}
	default:
		cut, n, ok := r.Front.choose(k, rs.queued, len(need), qpid.UpTo(d.t), queued)
		if ok && d.now.Boot < rs.back.until && rs.back.from.Less(cut) {
			cut, n = rs.back.from, r.Front.count(rs.back.from, n)
		}
		next := Cut{Keying: rs.keying, Epoch: d.epoch.Num, Value: cut}
		if ok {
			need = n
			if next.newer(c.Cut) {
				c.Cut = next
			}
		}
	}
	for i, n := range rs.nodes {
		need[i] += n.Due + n.Wanted
	}
	return need
}
