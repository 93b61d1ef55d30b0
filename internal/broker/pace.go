package broker

import (
	"cmp"
	"slices"

	"github.com/anteroom/anteroom/internal/pqueue"
)

// Pace is what is known of the grants of a queue with an interval, as it
// travels: all times count back, or ahead, from when it is sent.
type Pace struct {
	Grants  []Grant // of the last interval, the youngest first
	Blocked int64   // µs for which nothing may be granted
}

// Grant is one item that has gone out.
type Grant struct {
	ID  uint64 // tells it from others
	Age int64  // µs
}

// blockMax bounds what a word of another node adds to an interval, in µs.
const blockMax = 60_000_000

// grantsMax bounds per_interval.
const grantsMax = pqueue.PerIntervalMax

// perInterval keeps it within its bounds.
func perInterval(n int) int { return max(1, min(n, grantsMax)) }

func (p Pace) encode(e *pqueue.Encoder) {
	e.Int(p.Blocked)
	e.Uint(uint64(len(p.Grants)))
	for _, g := range p.Grants {
		e.Uint(g.ID)
		e.Int(g.Age)
	}
}

func toPace(d *pqueue.Decoder) Pace {
	p := Pace{Blocked: d.Int()}
	for range d.Count(2) {
		p.Grants = append(p.Grants, Grant{ID: d.Uint(), Age: d.Int()})
	}
	return p
}

// pacer lets at most so many items out in any interval, by the boot clock.
type pacer struct {
	interval int64 // µs; 0: no bound
	most     int
	grants   []granted // the youngest first: most of them, and all of the last interval, see trim
	blocked  int64     // boot time before which nothing is granted
}

type granted struct {
	id uint64
	at int64 // boot time
}

// next is the boot time from which a grant is allowed.
func (p *pacer) next() int64 {
	at := p.blocked
	if len(p.grants) >= p.most {
		at = max(at, p.grants[p.most-1].at+p.interval)
	}
	return at
}

func (p *pacer) grant(id uint64, now int64) {
	p.grants = slices.Insert(p.grants, 0, granted{id, now})
	p.trim(now)
}

// trim forgets what does not count any more. It keeps more than most of the last
// interval, where others let more out: as long as settings differ, each node hands on
// all that the others go by.
func (p *pacer) trim(now int64) {
	n := min(len(p.grants), grantsMax)
	for n > p.most && now-p.grants[n-1].at >= p.interval {
		n--
	}
	p.grants = p.grants[:n]
}

// set changes the pace. For what nobody remembers there is no need to wait for longer
// than the new interval and what unknown says.
func (p *pacer) set(now, interval int64, most int, unknown int64) {
	p.interval, p.most = interval, perInterval(most)
	p.blocked = min(p.blocked, now+interval+unknown)
	p.trim(now)
}

// block lets nothing out for that long.
func (p *pacer) block(now, wait int64) { p.blocked = max(p.blocked, now+wait) }

// pace is what p has to say at now.
func (p *pacer) pace(now int64) Pace {
	out := Pace{Blocked: max(0, p.blocked-now)}
	for _, g := range p.grants {
		if age := now - g.at; age < p.interval {
			out.Grants = append(out.Grants, Grant{g.id, age})
		}
	}
	return out
}

// merge takes in what another node said. What has travelled for a while is
// taken for younger than it is, which errs on the side of waiting.
func (p *pacer) merge(now int64, in Pace) {
	if p.interval == 0 {
		return
	}
	p.block(now, min(max(0, in.Blocked), p.interval+blockMax))
	for _, g := range in.Grants[:min(len(in.Grants), grantsMax)] {
		at := now - max(0, g.Age)
		if i := slices.IndexFunc(p.grants, func(o granted) bool { return o.id == g.ID }); i >= 0 {
			p.grants[i].at = max(p.grants[i].at, at)
		} else {
			p.grants = append(p.grants, granted{g.ID, at})
		}
	}
	slices.SortFunc(p.grants, func(a, b granted) int { return cmp.Or(cmp.Compare(b.at, a.at), cmp.Compare(a.id, b.id)) })
	p.trim(now)
}
