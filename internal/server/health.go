package server

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/gateway/admin"
	"github.com/anteroom/anteroom/internal/config"
	"github.com/anteroom/anteroom/internal/health"
	"github.com/anteroom/anteroom/internal/loop"
	"github.com/anteroom/anteroom/membership"
	peerv1 "github.com/anteroom/anteroom/proto/anteroom/peer/v1"
)

// origins looks after the origins of the rooms with the other nodes: a few of them
// look, all hear what those think, and the one that runs the waves decides. What it
// decides is an edit of the room, see originHealth.
type origins struct {
	s      *Server
	runner *health.Runner

	mu       sync.Mutex
	rooms    map[string]watched
	members  []string              // that gossip believes alive, sorted
	said     map[looker]heard      // what was heard last of each
	expected map[looker]time.Time  // since when a node should look
	proposed map[string]time.Time  // when a room was changed last; of the goroutine that runs
	changed  bool                  // rooms, since the checks were shared out
	news     rooms                 // of which somebody thinks otherwise than a moment ago
	judgedAt time.Time             // all of them; of the goroutine that runs
	holding  atomic.Pointer[rooms] // that are held because of their origin, and not by hand
}

// rooms is a set of them, by name.
type rooms map[string]bool

// watched is a room with checks.
type watched struct {
	checks []health.Check
	hold   bool // while it is unhealthy
}

// looker is a node that looks at an origin by a check.
type looker struct{ room, check, node string }

// heard is what it said, and when that came.
type heard struct {
	health.Report
	at time.Time
}

// againAfter is how long a change of a room may be on its way until it is proposed
// once more.
const againAfter = time.Second

// judgeEvery is how often rooms are judged of which there is no news: a node may
// have fallen silent, or the checks have changed.
const judgeEvery = 2 * time.Second

// Bounds on what nodes may have said: a stranger is no peer, and a peer of another
// version may have checks that this node does not know yet.
const saidMax = 100_000

func (s *Server) buildOrigins() {
	o := &origins{s: s, said: map[looker]heard{}, expected: map[looker]time.Time{}, proposed: map[string]time.Time{}, news: rooms{}}
	o.runner = health.NewRunner(health.Probe, func(r health.Report) {
		o.hear(string(s.self.Name), r, time.Now())
		s.notices.Tell("health/"+r.Room+"/"+r.Check, noticeOf(r))
	})
	s.origins = o
	s.metrics.MustRegister(o.runner.Metrics()...)
}

func noticeOf(r health.Report) *peerv1.Notice {
	return &peerv1.Notice{Kind: &peerv1.Notice_Health{Health: &peerv1.HealthReport{
		Room: r.Room, Check: r.Check, Sum: r.Sum, Status: string(r.Status), Reason: r.Reason, Code: uint32(r.Code), Took: r.Took.Microseconds(),
	}}}
}

// reasonMax bounds what another node says of a failure.
const reasonMax = 200

func reportOf(p *peerv1.HealthReport) (health.Report, bool) {
	r := health.Report{
		Room: p.GetRoom(), Check: p.GetCheck(), Sum: p.GetSum(), Status: health.Status(p.GetStatus()), Reason: p.GetReason(),
		Code: int(p.GetCode() % 1000), Took: time.Duration(p.GetTook()) * time.Microsecond,
	}
	known := r.Status == health.Unknown || r.Status == health.Healthy || r.Status == health.Unhealthy
	return r, known && len(r.Reason) <= reasonMax
}

// notice takes in what another node has to say.
func (s *Server) notice(from eviction.Member, n *peerv1.Notice) {
	if h := n.GetHealth(); h != nil {
		if r, ok := reportOf(h); ok {
			s.origins.hear(string(from.Name), r, time.Now())
		}
	}
	if f := n.GetOrigin(); f != nil {
		s.outflow.hear(from, f, time.Now())
	}
	if h := n.GetHappening(); h != nil {
		s.told.hear(h.GetEvent(), time.Now())
	}
	if d := n.GetDelivery(); d != nil {
		s.sender.Heard(string(from.Name), d.GetEvent(), d.GetReceiver(), d.GetDone(), time.Now())
	}
}

func (o *origins) hear(node string, r health.Report, now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	key := looker{r.Room, r.Check, node}
	old, there := o.said[key]
	if !there && len(o.said) >= saidMax {
		return
	}
	if o.said[key] = (heard{r, now}); old.Status != r.Status || old.Sum != r.Sum {
		o.news[r.Room] = true
	}
}

// holds reports whether the origin is why nobody is called in a room.
func (o *origins) holds(room string) bool {
	now := o.holding.Load()
	return now != nil && (*now)[room]
}

// follow takes in the rooms that the cluster runs with.
func (o *origins) follow(all []eviction.Room) {
	next, holding := map[string]watched{}, rooms{}
	for _, r := range all {
		c, err := configOf(r)
		if err != nil || r.Mode == eviction.Deleted {
			continue
		}
		if checks := checksOf(c); len(checks) > 0 {
			next[r.Name] = watched{checks, c.OnUnhealthy == config.Hold}
		}
		holding[r.Name] = healthOf(r).Holds && byHand(r) != eviction.Held
	}
	o.holding.Store(&holding)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.rooms, o.changed = next, true
}

// checksOf are the checks of a room that are not suspended, with nothing left open.
func checksOf(r config.Room) []health.Check {
	var all []health.Check
	for _, h := range r.HealthChecks {
		if h.Suspended {
			continue
		}
		kind, address, port := h.Target(r.Origin)
		c := health.Check{
			Room: r.Name, Name: h.Name, Type: kind, Address: address, Port: port, Host: cmp.Or(h.Host, address), Path: h.Path, Method: h.Method,
			Body: h.ExpectedBody, FollowRedirects: h.FollowRedirects, AllowInsecure: h.AllowInsecure,
			Interval: time.Duration(h.Interval), Timeout: time.Duration(h.Timeout), Retries: h.Retries, Up: h.ConsecutiveUp, Down: h.ConsecutiveDown,
		}
		for _, code := range h.ExpectedCodes {
			c.Codes = append(c.Codes, string(code))
		}
		all = append(all, c)
	}
	return all
}

// run looks at the origins until ctx ends.
func (o *origins) run(ctx context.Context) {
	var looking sync.WaitGroup
	defer looking.Wait()
	looking.Go(func() { o.runner.Run(ctx) })
	every := time.NewTicker(100 * time.Millisecond)
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-every.C:
			o.share(now, o.s.members.Members())
			o.decide(now, o.s.loop.Snapshot())
		}
	}
}

// share finds out which nodes look at which origin, this one among them.
func (o *origins) share(now time.Time, members []membership.Member) {
	o.mu.Lock()
	defer o.mu.Unlock()
	names := make([]string, len(members))
	for i, m := range members {
		names[i] = string(m.Name)
	}
	slices.Sort(names)
	if !o.changed && slices.Equal(names, o.members) {
		return
	}
	o.members, o.changed = names, false
	var ours []health.Check
	expected := map[looker]time.Time{}
	for room, w := range o.rooms {
		for _, c := range w.checks {
			for _, node := range health.Checkers(c.ID(), names) {
				key := looker{room, c.Name, node}
				expected[key] = now
				if since, ok := o.expected[key]; ok {
					expected[key] = since
				}
				if node == string(o.s.self.Name) {
					ours = append(ours, c)
				}
			}
		}
	}
	o.expected = expected
	maps.DeleteFunc(o.said, func(key looker, _ heard) bool { _, ok := o.rooms[key.room]; return !ok })
	o.runner.Set(ours)
}

// votes are what the nodes that look by a check say. The caller holds o.mu.
func (o *origins) votes(now time.Time, c *health.Check) (votes []health.Vote, by []looker) {
	silent := max(2*c.Interval, c.Interval+time.Duration(c.Retries+1)*c.Timeout)
	for _, node := range health.Checkers(c.ID(), o.members) {
		key := looker{c.Room, c.Name, node}
		said, last := o.said[key], o.expected[key]
		if said.Sum != c.Sum() {
			said = heard{} // of another check under the same name
		}
		if said.at.After(last) {
			last = said.at
		}
		votes = append(votes, health.Vote{Report: said.Report, Silent: now.Sub(last) > silent})
		by = append(by, key)
	}
	return votes, by
}

// decide changes the rooms of which most of those that look think otherwise than
// the cluster so far, if it is this node's to do.
func (o *origins) decide(now time.Time, snapshot *loop.Snapshot) {
	if st := &snapshot.Status; !st.Leading || st.Grade < eviction.Side {
		return
	}
	all := now.Sub(o.judgedAt) > judgeEvery
	if all {
		o.judgedAt = now
	}
	for i := range snapshot.Rooms {
		r := snapshot.Rooms[i].Room
		if r.Mode == eviction.Deleted || r.Version == (eviction.Version{}) || !o.takeNews(r.Name) && !all {
			continue
		}
		if o.judged(now, r).Sum() == r.Sum() {
			continue
		}
		o.mu.Lock()
		o.news[r.Name] = true // until it is in force
		o.mu.Unlock()
		if now.Sub(o.proposed[r.Name]) > againAfter {
			o.proposed[r.Name] = now
			o.propose(now, r.Name)
		}
	}
}

// takeNews reports whether there is news of a room's origin, and forgets it.
func (o *origins) takeNews(room string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	news := o.news[room]
	delete(o.news, room)
	return news
}

// judged is a room with what most think now.
func (o *origins) judged(now time.Time, r eviction.Room) eviction.Room {
	o.mu.Lock()
	defer o.mu.Unlock()
	w, was := o.rooms[r.Name], healthOf(r)
	next := originHealth{ByHand: byHand(r)}
	for i := range w.checks {
		c := &w.checks[i]
		v := health.Verdict{Check: c.Name}
		if at := slices.IndexFunc(was.Checks, func(v health.Verdict) bool { return v.Check == c.Name }); at >= 0 {
			v = was.Checks[at]
		}
		votes, _ := o.votes(now, c)
		if s := health.Decide(v.Status, votes); s != v.Status {
			first := votes[slices.IndexFunc(votes, func(o health.Vote) bool { return o.Status == s && !o.Silent })]
			v = v.Turned(s, now.UnixMicro(), &first.Report)
		}
		if v.Status != health.Unknown {
			next.Checks = append(next.Checks, v)
		}
	}
	next.Holds = w.hold && next.status() == health.Unhealthy
	return withHealth(r, next)
}

// propose changes a room as an operator would, who may be about to change it too.
func (o *origins) propose(now time.Time, name string) {
	o.s.edits.Lock()
	defer o.s.edits.Unlock()
	running, ok := o.s.loop.Snapshot().Room(name)
	if !ok || running.Room.Mode == eviction.Deleted {
		return
	}
	next := o.judged(now, running.Room)
	if next.Sum() == running.Room.Sum() {
		return
	}
	if err := o.s.loop.SetRoom(next); err != nil {
		o.s.log.Error("what was found out about an origin cannot be told", "room", name, "err", err)
		return
	}
	o.s.audits.add(admin.AuditEntry{At: now.UTC(), Who: "health checks", Action: actionOf(running.Room, next), Room: name, Changes: changesOf(running.Room, next)})
}

// Health is what is known of the origins.
func (a source) Health() []admin.RoomHealth {
	o, all := a.s.origins, []admin.RoomHealth{}
	snapshot, now := a.s.loop.Snapshot(), time.Now()
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range snapshot.Rooms {
		r := snapshot.Rooms[i].Room
		w, checked := o.rooms[r.Name]
		answers := a.s.answersOf(r.Name)
		if !checked && answers == nil || r.Mode == eviction.Deleted {
			continue
		}
		is := healthOf(r)
		room := admin.RoomHealth{
			Room: r.Name, Status: admin.HealthText(string(is.status())), OnUnhealthy: config.Continue, Holds: is.Holds, Checks: []admin.CheckHealth{}, Answers: answers,
		}
		if w.hold {
			room.OnUnhealthy = config.Hold
		}
		for j := range w.checks {
			room.Checks = append(room.Checks, o.show(now, &w.checks[j], is.Checks))
		}
		all = append(all, room)
	}
	return all
}

// answersOf is what visitors of this node got from an origin of late; nil: nothing.
func (s *Server) answersOf(room string) *admin.OriginAnswers {
	a, ok := s.gateway.Answers(room)
	if !ok {
		return nil
	}
	return &admin.OriginAnswers{
		Count: a.Count, Failed: a.Failed, NoAnswer: a.NoAnswer, FailedPercent: math.Round(1000*float64(a.Failed)/float64(a.Count)) / 10,
		P50: a.P50.Seconds(), P95: a.P95.Seconds(), P99: a.P99.Seconds(),
	}
}

// show is what is known by one check. The caller holds o.mu.
func (o *origins) show(now time.Time, c *health.Check, verdicts []health.Verdict) admin.CheckHealth {
	shown := admin.CheckHealth{ID: c.ID(), Name: c.Name, Status: admin.HealthText(""), ExpectedCodes: c.Codes, Past: []admin.CheckTurn{}, Seen: []admin.CheckSeen{}}
	if at := slices.IndexFunc(verdicts, func(v health.Verdict) bool { return v.Check == c.Name }); at >= 0 {
		v := verdicts[at]
		since := time.UnixMicro(v.Since).UTC()
		shown.Status, shown.Since, shown.Reason, shown.ActualCode = string(v.Status), &since, v.Reason, v.Code
		for _, t := range slices.Backward(v.Past) {
			shown.Past = append(shown.Past, admin.CheckTurn{Status: string(t.Status), Since: time.UnixMicro(t.Since).UTC(), Reason: t.Reason, ActualCode: t.Code})
		}
	}
	votes, by := o.votes(now, c)
	for i, v := range votes {
		seen := admin.CheckSeen{Node: by[i].node, Status: admin.HealthText(string(v.Status)), Reason: v.Reason, ActualCode: v.Code, Seconds: v.Took.Seconds(), Silent: v.Silent}
		if at := o.said[by[i]].at; !at.IsZero() {
			at = at.UTC()
			seen.At = &at
		}
		shown.Seen = append(shown.Seen, seen)
	}
	return shown
}
