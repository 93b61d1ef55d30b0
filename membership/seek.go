package membership

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/hashicorp/memberlist"
)

const (
	callsMax   = 4               // calls in one round; whom it leaves out comes up in another, they are in random order
	seedsMax   = 1024            // addresses taken from the names of Join
	lookupWith = 2 * time.Second // for one name
)

// seek calls missing members until ctx is done.
func (m *Membership) seek(ctx context.Context, list *memberlist.Memberlist) {
	trouble := newLimiter(time.Minute, 1)
	for ctx.Err() == nil {
		soon := m.call(ctx, list, trouble)
		m.pause(ctx, soon)
	}
}

// pause waits for the next round.
func (m *Membership) pause(ctx context.Context, soon bool) {
	wait := m.c.RejoinIdle
	if soon {
		wait = m.c.Rejoin
	}
	next := time.NewTimer(wait/2 + rand.N(max(wait, 1))) // nodes that were cut off together do not call together
	defer next.Stop()
	select {
	case <-ctx.Done():
	case <-next.C:
	}
}

// call exchanges all that is known with some of those who should be members and
// are not, and reports whether to do it again soon.
func (m *Membership) call(ctx context.Context, list *memberlist.Memberlist, trouble *limiter) (soon bool) {
	state := m.roster.missing(time.Now())
	seeds, failed := m.seeds(ctx)
	targets := state.targets(seeds)
	for _, to := range targets[:min(callsMax, len(targets))] {
		if ctx.Err() != nil {
			return false
		}
		if _, err := list.Join([]string{to.String()}); err != nil {
			failed = err
		}
	}
	if after := m.roster.missing(time.Now()); len(after.alive) == 1 && failed != nil && ctx.Err() == nil {
		trouble.write(m.c.Logger, slog.LevelWarn, "no other member reached, trying on", "join", m.c.Join, "error", failed)
	}
	return state.soon
}

// targets are the addresses to call, in random order: the seeds and the lost
// who are not members. While there is news, a member comes first: whom gossip
// has missed, or told of an earlier life of this node only, soon knows, without
// waiting for memberlist's own exchanges.
func (s missing) targets(seeds []netip.AddrPort) []netip.AddrPort {
	var t []netip.AddrPort
	for _, to := range slices.Concat(seeds, s.lost) {
		if !slices.Contains(s.alive, to) && !slices.Contains(t, to) {
			t = append(t, to)
		}
	}
	rand.Shuffle(len(t), func(i, j int) { t[i], t[j] = t[j], t[i] })
	if others := s.alive[1:]; s.fresh && len(others) > 0 {
		t = slices.Insert(t, 0, others[rand.IntN(len(others))])
	}
	return t
}

// seeds looks up the addresses of Join. The error is the last name's that had
// none.
func (m *Membership) seeds(ctx context.Context) (all []netip.AddrPort, err error) {
	for _, j := range m.c.Join {
		host, port, _ := net.SplitHostPort(j) // checked by New
		looking, cancel := context.WithTimeout(ctx, lookupWith)
		ips, failed := lookup(looking, host)
		cancel()
		if failed != nil {
			err = fmt.Errorf("node.join %s: %w", j, failed)
			continue
		}
		for _, ip := range ips {
			if p, _ := netip.ParseAddrPort(net.JoinHostPort(ip.String(), port)); p.IsValid() && len(all) < seedsMax {
				all = append(all, p)
			}
		}
	}
	return all, err
}
