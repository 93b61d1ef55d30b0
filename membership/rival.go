package membership

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/anteroom/anteroom/eviction"
)

// rival is another process under this node's name, or gossip's word of one. The
// word proves nothing: it may be old, and recorded. What counts is who answers.
type rival struct {
	saying
	at      netip.AddrPort // where it gossips
	heard   time.Time      // last
	checked time.Time      // when it was called last; zero: not yet
}

const (
	askWithin   = 500 * time.Millisecond // one answer, of several that are waited for
	askAgain    = 200 * time.Millisecond // after a try that failed
	settleAfter = 10 * time.Second       // of a life without a doubt: it has its name to itself
)

// conflict takes in that n gossips under this node's name, from another
// address, and reports whether that is another process.
func (r *roster) conflict(n *memberlist.Node, now time.Time) bool {
	said, err := decode(n.Name, n.Meta)
	at := gossipAddr(n)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil || !at.IsValid() || at == r.at || said.Boot == r.self.Boot {
		return false
	}
	r.moved = now
	if r.rival == nil || r.rival.at != at || r.rival.Peer != said.Peer {
		r.rival = &rival{saying: said, at: at}
	}
	r.rival.heard = now
	wake(r.alarm)
	return true
}

// challenger returns the rival that is to be called, nil if there is none. One
// that was called is called again if it is still heard of after a while.
func (r *roster) challenger(again time.Duration) *rival {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.rival == nil || !r.rival.checked.IsZero() && r.rival.heard.Sub(r.rival.checked) < again {
		return nil
	}
	c := *r.rival
	return &c
}

// stands notes that this process stays although there is word of c.
func (r *roster) stands(c *rival, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.free = true
	if r.rival != nil && r.rival.at == c.at && r.rival.Peer == c.Peer {
		r.rival.checked = now
	}
	wake(r.changed)
}

// meet notes that a view was handed out, and whether others were in it.
func (r *roster) meet(others bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.met = r.met || others
}

// doubtful reports whether the name may be another's. That holds up who has just
// started, and once only: whoever goes on bringing up old lives of its name does
// not keep it out of the cluster, and a node that serves is not stopped by word
// of a rival. The caller holds r.mu.
func (r *roster) doubtful() bool {
	return r.rival != nil && r.rival.checked.IsZero() && !r.met && !r.free
}

func (r *roster) settled(now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.met || r.free || r.rival == nil && now.Sub(r.begun) >= settleAfter
}

const usesName = "another process uses this node's name: give each node a node.id of its own"

// Asked takes in who asked for this node's identity: one of the same name is
// about to give way, or to be given way to. It gossips where it says.
func (m *Membership) Asked(who eviction.Peer, gossip string) {
	if who.Name == m.c.Self.Name && who.Boot != m.c.Self.Boot {
		at, _ := netip.ParseAddrPort(gossip)
		m.told.write(m.c.Logger, slog.LevelError, usesName, "name", who.Name, "here", m.Addr(), "there", at)
	}
}

// contend calls rivals until ctx is done. An error is the end: the name is taken.
func (m *Membership) contend(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-m.roster.alarm:
		}
		for c := m.roster.challenger(m.c.Rejoin); c != nil && ctx.Err() == nil; c = m.roster.challenger(m.c.Rejoin) {
			if err := m.challenge(ctx, c); err != nil {
				return err
			}
			select { // nothing depends on the next one, see doubtful
			case <-ctx.Done():
			case <-time.After(m.c.Rejoin):
			}
		}
	}
}

// challenge calls a rival at its peer service, for as long as a member may be
// silent. Nobody there means that the name has moved with this process and that
// the cluster has not noticed yet; or that the word of a rival was an old one.
func (m *Membership) challenge(ctx context.Context, c *rival) error {
	address, began := c.dialAddr(c.at), time.Now()
	for {
		asked, cancel := context.WithTimeout(ctx, askWithin)
		who, settled, err := m.c.Ask(asked, address, m.Addr())
		cancel()
		if ctx.Err() != nil {
			return nil
		}
		if err == nil {
			return m.judge(c, address, who, settled)
		}
		if time.Since(began) >= m.c.Silent {
			break
		}
		select {
		case <-ctx.Done():
		case <-time.After(askAgain):
		}
	}
	m.roster.stands(c, time.Now())
	if c.checked.IsZero() {
		m.c.Logger.Info("another life of this node is remembered at another address, and nobody answers there; waiting for the others to give it up",
			"address", address, "gossip", c.at)
	}
	return nil
}

// judge decides between this process and who answered where a rival was said to
// be: the one that is settled stays, and of two that both are, or both are not,
// the one that started earlier.
func (m *Membership) judge(c *rival, address string, who eviction.Peer, settled bool) error {
	ours := m.Settled()
	switch {
	case who.Name != m.c.Self.Name || who.Boot == m.c.Self.Boot:
		// It has the address of somebody who is gone, or is this very process.
	case settled == ours && eviction.Seniority(who, m.c.Self) < 0, settled && !ours:
		return fmt.Errorf("%w: node.id %q: the process at %s, which gossips at %v, has it since %v; give each node a node.id of its own, or stop that one first",
			ErrNameTaken, m.c.Self.Name, address, c.at, time.UnixMicro(who.Start).UTC().Format(time.RFC3339))
	default:
		m.c.Logger.Debug("the other process of this name gives way", "address", address, "gossip", c.at)
	}
	m.roster.stands(c, time.Now())
	return nil
}
