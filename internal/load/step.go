package load

import (
	"fmt"
	"strconv"
	"time"
)

// server asks for visitors over one connection.
type server struct {
	g *Generator
	t *tally
	w wire
	a answer
}

// counted is step, and counts who is in line.
func (s *server) counted(v *visitor) (more bool) {
	was := v.inLine()
	more = s.step(v)
	switch is := more && v.inLine(); {
	case is && !was:
		s.g.waiting.Add(1)
	case was && !is:
		s.g.waiting.Add(-1)
	}
	return more
}

// step does what v wants and settles what it wants next, and when. It reports
// whether there is anything more.
func (s *server) step(v *visitor) bool {
	g := s.g
	sent := g.clock()
	if !v.started {
		v.started = true
		if g.c.Arrivals.Rate == 0 {
			v.came = sent // it came when there was a connection for it
		}
		s.t.count(func() { s.t.counts.came++ })
	}
	switch {
	case v.want == end && g.c.Manners.NoEnd:
		return s.goAway(v, sent)
	case v.want == end && v.since != 0:
		s.release(v, sent)
	}
	k := v.want
	p, err := s.w.ask(k, v.held)
	now := g.clock()
	if s.a = (answer{}); err == nil && k != browse && p.status < 300 && len(p.body) > 0 {
		err = s.a.parse(p.body)
	}
	switch {
	case err != nil && s.w.ctx.Err() != nil:
		return true // it is as it was
	case err != nil:
		return s.retry(v, now, trouble(err), 0)
	case p.status == 503, p.status == 429 && k != browse, p.status == 502 || p.status == 504:
		return s.retry(v, now, s.problem(&p), p.retryAfter)
	}
	from := sent
	if g.c.Arrivals.Rate > 0 {
		from = v.meant()
	}
	s.t.answered(k, now, now-from, max(0, sent-v.due))
	v.tries = 0
	if p.status >= 400 || p.status >= 300 && k != browse {
		return s.refused(v, k, now, &p)
	}
	return s.settle(v, k, sent, now, &p)
}

// problem is an error answer's name.
func (s *server) problem(p *response) string {
	name := strconv.Itoa(p.status)
	if s.a.parse(p.body) == nil && len(s.a.code) > 0 {
		name += " " + printable(s.a.code)
	}
	return name
}

// printable bounds what a gateway has us print.
func printable(code []byte) string {
	if len(code) > 40 {
		code = code[:40]
	}
	name := strconv.Quote(string(code))
	return name[1 : len(name)-1]
}

// triesPerGateway is after how many failures a visitor tries another gateway.
const triesPerGateway = 3

// retry has v try again later: after as long as the gateway says, or ever
// longer. It gives up when its patience is at an end.
func (s *server) retry(v *visitor, now int64, why string, after time.Duration) bool {
	g := s.g
	v.tried = v.meant()
	v.tries++
	s.t.count(func() { note(s.t.errors, why); s.t.counts.retries++ })
	if now-v.tried > g.c.Patience.Microseconds() {
		return s.lose(v, now, why)
	}
	pause := min(100*time.Millisecond<<min(v.tries-1, 5), 2*time.Second)
	v.due = now + max(after, pause).Microseconds()
	if v.tries%triesPerGateway == 0 && len(g.lanes) > 1 {
		v.lane = uint16((int(v.lane) + 1) % len(g.lanes))
		s.t.count(func() { s.t.counts.moved++ })
	}
	v.tries = min(v.tries, 100)
	return true
}

// refused deals with an answer after which asking again is no use.
func (s *server) refused(v *visitor, k kind, now int64, p *response) bool {
	why := strconv.Itoa(p.status)
	if k != browse {
		why = s.problem(p)
	}
	code := string(s.a.code) // of why, or nothing
	s.t.count(func() { note(s.t.errors, why) })
	switch {
	case k == leave && code == "not_called_yet": // the call was withdrawn
		v.want, v.due = checkIn, now+time.Second.Microseconds()
		return true
	case k == refresh && p.status == 410: // it was away for too long
		v.want, v.came, v.due, v.told, v.telling = join, now, now, 0, telling{}
		v.queued, v.hasWave = false, false
		return true
	case k == end && p.status == 410: // it has ended already
		return s.finish(v, now)
	case k == abandon && p.status == 410:
		return s.abandoned()
	}
	return s.lose(v, now, why)
}

// lose gives up on v.
func (s *server) lose(v *visitor, now int64, why string) bool {
	if v.since != 0 {
		s.release(v, now)
	}
	s.t.count(func() { note(s.t.lost, v.want.String()+": "+why) })
	return false
}

// settle deals with an answer that is as it should be.
func (s *server) settle(v *visitor, k kind, sent, now int64, p *response) bool {
	switch k {
	case abandon:
		return s.abandoned()
	case end:
		return s.finish(v, now)
	case browse:
		if sendable(p.cookie) {
			v.keep(p.cookie)
			v.good = sent + int64(v.life)*1000
		}
		v.pages--
		s.onSite(v, now)
		return true
	case refresh:
		if !sendable(s.a.pass) {
			return s.lose(v, now, "the answer has no pass")
		}
		v.keep(s.a.pass)
		v.since, v.good = now, sent+int64(v.life)*1000
		s.enter(v, now)
		return true
	default: // join, check_in, leave
		return s.place(v, k, sent, now)
	}
}

// place reads what became of a place.
func (s *server) place(v *visitor, k kind, sent, now int64) bool {
	state := string(s.a.state)
	if s.a.hasWave && !v.hasWave {
		v.wave, v.hasWave, v.queued = s.a.wave, true, true
	}
	if k == join {
		if v.joined = micros(s.a.joined); v.joined <= 0 {
			return s.lose(v, now, "the answer has no joined_at")
		}
	}
	switch state {
	case "waiting", "called":
		v.queued = true
		if !sendable(s.a.ticket) {
			return s.lose(v, now, "the answer has no ticket")
		}
		v.keep(s.a.ticket)
	case "admitted":
		if !sendable(s.a.pass) {
			return s.lose(v, now, "the answer has no pass")
		}
		v.keep(s.a.pass)
	default:
		return s.lose(v, now, fmt.Sprintf("the answer has the state %q", printable(s.a.state)))
	}
	if state != "waiting" && v.told == 0 {
		v.told = now
		v.entitled = micros(s.a.updated)
		s.t.count(func() { s.t.calibration.add(&v.telling, now) })
	}
	if state == "waiting" {
		v.hear(s.a.wait, now, uint64(v.joined))
	}
	switch state {
	case "waiting":
		s.wait(v, k, now)
	case "called":
		v.want, v.due = leave, now
	default:
		s.admit(v, sent, now)
	}
	return true
}

// wait settles when v checks in, or whether it gives up.
func (s *server) wait(v *visitor, k kind, now int64) {
	v.want = checkIn
	if v.asks > 0 && k == checkIn {
		v.asks--
		if v.asks == 0 {
			v.want, v.due = abandon, now
			return
		}
	}
	every := s.g.c.Manners.CheckInEvery
	switch {
	case every == 0:
		v.due = now + max(s.a.refresh, 100_000) // a gateway does not mean to be asked without a pause
	case k == join:
		v.due = now + v.spread(every)
	default: // by the clock, whatever the answer took, but not before it
		v.due = max(now, v.due+every.Microseconds())
	}
}

// admit is the moment at which v gets its pass.
func (s *server) admit(v *visitor, sent, now int64) {
	if expires, at := micros(s.a.expires), micros(s.a.updated); expires > 0 && at > 0 {
		v.life = uint32(min(max(0, (expires-at)/1000), int64(24*time.Hour/time.Millisecond)))
	}
	v.since, v.good, v.asks = now, sent+int64(v.life)*1000, 0
	c := call{
		joined: v.joined, entitled: v.entitled, came: v.came, told: v.told,
		wave: v.wave, queued: v.queued, hasWave: v.hasWave,
	}
	s.t.count(func() { s.t.calls = append(s.t.calls, c) })
	s.enter(v, now)
}

// enter begins a stay on the site.
func (s *server) enter(v *visitor, now int64) {
	v.until, v.pages = now+v.stay, uint16(s.g.c.Manners.Browse)
	s.onSite(v, now)
}

// onSite settles what v does next on the site: looks at the pages it still wants
// to see, evenly over its stay, and leaves.
func (s *server) onSite(v *visitor, now int64) {
	switch {
	case v.pages == uint16(s.g.c.Manners.Browse) && v.pages > 0:
		v.want, v.due = browse, now // why it came
	case v.pages > 0:
		v.want, v.due = browse, now+max(0, v.until-now)/int64(v.pages+1)
	case v.again: // goes away without a word, and comes back after as long again
		s.release(v, now)
		v.again = false
		v.want, v.due = refresh, max(now, v.until)+v.stay
		s.t.count(func() { s.t.counts.returned++ })
	default:
		v.want, v.due = end, max(now, v.until)
	}
}

// release ends the time for which v held its pass for sure: until now, or until
// the pass expired.
func (s *server) release(v *visitor, now int64) {
	to := now
	if v.life > 0 {
		to = min(now, v.good)
	}
	st := stay{v.since, to}
	v.since = 0
	s.t.count(func() { s.t.stays = append(s.t.stays, st) })
}

// finish is the end of a visit as it should be.
func (s *server) finish(v *visitor, now int64) bool {
	s.g.done.Add(1)
	s.t.count(func() { s.t.counts.done++; s.t.second(now).done++ })
	v.held = nil
	return false
}

// goAway is the end of a visit of which the room hears nothing: the place is
// taken until the pass expires.
func (s *server) goAway(v *visitor, now int64) bool {
	if v.since != 0 {
		s.release(v, v.good)
	}
	return s.finish(v, now)
}

func (s *server) abandoned() bool {
	s.t.count(func() { s.t.counts.abandoned++ })
	return false
}
