package conns

import (
	"cmp"
	"slices"
	"time"
)

// With more connections than lookFreely, quiet ones are looked for no more often
// than every lookEvery: it takes a while, and who comes may be a flood.
const (
	lookFreely = 1024
	lookEvery  = 5 * time.Millisecond
)

// pool is connections that share a bound.
type pool struct {
	conns  map[*Conn]struct{}
	quiet  []quietConn // as of looked, the longest first; some may have gone or spoken since
	looked time.Time
}

type quietConn struct {
	*Conn
	since uint64
}

func newPool() pool { return pool{conns: make(map[*Conn]struct{})} }

// longestQuiet finds who makes way, nil if every connection carries a request.
func (p *pool) longestQuiet() *Conn {
	for again := true; ; again = false {
		for len(p.quiet) > 0 {
			q := p.quiet[0]
			p.quiet = p.quiet[1:]
			if q.quietSince() == q.since { // who fell quiet later comes after all of these
				return q.Conn
			}
		}
		if !again || len(p.conns) > lookFreely && time.Since(p.looked) < lookEvery {
			return nil
		}
		p.looked = time.Now()
		for c := range p.conns {
			if since := c.quietSince(); since > 0 {
				p.quiet = append(p.quiet, quietConn{c, since})
			}
		}
		slices.SortFunc(p.quiet, func(a, b quietConn) int { return cmp.Compare(a.since, b.since) })
	}
}
