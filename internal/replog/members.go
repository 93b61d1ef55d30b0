package replog

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/hashicorp/raft"

	"github.com/anteroom/anteroom/qpid"
)

// tend changes the group by at most one server, as its leader; see the package's
// comment.
func (g *group) tend(ctx context.Context) {
	f := g.l.raft.GetConfiguration()
	servers, index := f.Configuration().Servers, f.Index()
	replies := map[qpid.NodeID]reply{}
	for _, r := range g.askAll(ctx, g.others(), question, "") {
		if replies[r.member.Name] = r; r.err == nil && r.Group != "" && r.Group != g.l.owner.papers().Group {
			_ = g.otherGroup(r.member.Name, r.Group)
		}
	}
	g.hearRoom(servers, replies)
	change, what, id := g.next(servers, replies, time.Now())
	if change == nil {
		return
	}
	log := g.l.log.With(slog.String("node", string(nodeOf(id))), slog.String("directory", string(id)), slog.String("change", what))
	if err := g.settle(change(id, index)); err != nil {
		log.Info("queues: the group does not change", slog.Any("err", err))
		return
	}
	log.Info("queues: the group has changed")
}

// settle waits until a change is committed, or will not be. Raft sends it to the
// others a moment before it counts by it, and what a new voter acknowledges in between
// counts for nothing: if its vote is needed, the change waits for the entry after it,
// which may never come from a queue that nobody uses. So there is one.
func (g *group) settle(changed raft.IndexFuture) error {
	over := make(chan error, 1)
	go func() { over <- changed.Error() }()
	for {
		select {
		case err := <-over:
			return err
		case <-time.After(g.c.Pace):
			g.l.raft.Barrier(g.c.Pace)
		}
	}
}

// change is one of raft's changes of a group.
type change func(id raft.ServerID, index uint64) raft.IndexFuture

func (g *group) add(id raft.ServerID, index uint64) raft.IndexFuture {
	return g.l.raft.AddNonvoter(id, raft.ServerAddress(id), index, g.c.Pace)
}

func (g *group) promote(id raft.ServerID, index uint64) raft.IndexFuture {
	return g.l.raft.AddVoter(id, raft.ServerAddress(id), index, g.c.Pace)
}

func (g *group) remove(id raft.ServerID, index uint64) raft.IndexFuture {
	return g.l.raft.RemoveServer(id, index, g.c.Pace)
}

// next returns the change that is due, or nil.
func (g *group) next(servers []raft.Server, replies map[qpid.NodeID]reply, now time.Time) (change, string, raft.ServerID) {
	var sound, lost, learners int
	var gone, learned raft.ServerID
	in := map[raft.ServerID]bool{}
	for _, s := range servers {
		in[s.ID] = true
		voter := s.Suffrage == raft.Voter
		switch isLost := g.lost(s.ID, replies, now); {
		case isLost && voter:
			lost, gone = lost+1, s.ID
		case isLost:
			return g.remove, "remove", s.ID
		case voter:
			sound++
		default:
			learners++
			if g.caughtUp(s.ID, replies) {
				learned = s.ID
			}
		}
	}
	g.keep(in)
	most := g.c.votersMax()
	switch spare := g.spare(in, replies); {
	case sound+lost > most && gone != "":
		return g.remove, "remove", gone
	case sound < most && learned != "":
		return g.promote, "give a vote", learned
	case sound+learners < most && spare != "":
		return g.add, "add", spare
	}
	return nil, "", ""
}

// lost reports whether a server will not come back soon, or never.
func (g *group) lost(id raft.ServerID, replies map[qpid.NodeID]reply, now time.Time) bool {
	node := nodeOf(id)
	r, alive := replies[node]
	if id == g.id || alive && (r.err != nil || serverOf(node, r.Disk) == id) {
		g.seen[id] = now
		return false
	}
	if alive {
		return true // it has another directory
	}
	if _, ok := g.seen[id]; !ok {
		g.seen[id] = now // this node has only just begun to look
	}
	return now.Sub(g.seen[id]) > g.c.ReplaceAfter
}

// caughtUp reports whether a member without a vote has what had been committed
// when it was last looked at.
func (g *group) caughtUp(id raft.ServerID, replies map[qpid.NodeID]reply) bool {
	r, ok := replies[nodeOf(id)]
	goal, known := g.behind[id]
	g.behind[id] = g.l.raft.CommitIndex()
	return ok && r.err == nil && known && r.Last >= goal
}

// keep forgets servers that are gone.
func (g *group) keep(in map[raft.ServerID]bool) {
	maps.DeleteFunc(g.seen, func(id raft.ServerID, _ time.Time) bool { return !in[id] })
	maps.DeleteFunc(g.behind, func(id raft.ServerID, _ uint64) bool { return !in[id] })
}

// spare returns a server that could be in the group and is not, or "".
func (g *group) spare(in map[raft.ServerID]bool, replies map[qpid.NodeID]reply) raft.ServerID {
	for _, node := range slices.Sorted(maps.Keys(replies)) {
		r := replies[node]
		if r.err != nil || r.Group != "" && r.Group != g.l.owner.papers().Group {
			continue
		}
		if id := serverOf(node, r.Disk); !in[id] {
			return id
		}
	}
	return ""
}

// seek finds out who leads, for a node to which raft does not say it.
func (g *group) seek(ctx context.Context) {
	if _, id := g.l.raft.LeaderWithID(); id != "" {
		g.setHint(hint{})
		return
	}
	g.look(ctx)
}

// look asks the others who leads.
func (g *group) look(ctx context.Context) {
	others := g.others()
	g.mu.Lock()
	leads := g.hint.leader
	g.mu.Unlock()
	for _, p := range others {
		if p.member.Name != leads {
			continue
		}
		if r := g.ask(ctx, p, question, ""); r.err == nil && r.Leader == string(leads) {
			return
		}
	}
	var best hint
	for _, r := range g.askAll(ctx, others, question, "") {
		if r.err != nil || r.Leader == "" || r.Leader == string(g.c.Self.Name) {
			continue
		}
		if best.leader == "" || r.Term > best.term {
			best = hint{qpid.NodeID(r.Leader), r.Term}
		}
	}
	g.setHint(best)
}

func (g *group) setHint(h hint) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.hint = h
}
