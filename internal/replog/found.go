package replog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/anteroom/anteroom/eviction"
	peerv1 "github.com/anteroom/anteroom/proto/anteroom/peer/v1"
	"github.com/anteroom/anteroom/proto/wire"
	"github.com/anteroom/anteroom/qpid"
)

// reply is what a node said, or why it did not.
type reply struct {
	place
	*peerv1.MeetResponse
	err error
}

// ask asks a node.
func (g *group) ask(ctx context.Context, p place, kind peerv1.MeetRequest_Kind, about string) reply {
	conn, err := g.connection(p.member.Name)
	if err != nil {
		return reply{place: p, err: err}
	}
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	r, err := peerv1.NewReplicationClient(conn).Meet(ctx, &peerv1.MeetRequest{
		Kind: kind, From: wire.FromMember(g.c.Self), To: wire.FromMember(p.member), Group: about,
	})
	return reply{p, r, err}
}

// askAll asks nodes at the same time. The replies are in their order.
func (g *group) askAll(ctx context.Context, all []place, kind peerv1.MeetRequest_Kind, about string) []reply {
	replies := make([]reply, len(all))
	var asking sync.WaitGroup
	slots := make(chan struct{}, asksMax)
	for i, p := range all {
		slots <- struct{}{}
		asking.Go(func() {
			replies[i] = g.ask(ctx, p, kind, about)
			<-slots
		})
	}
	asking.Wait()
	return replies
}

const (
	question = peerv1.MeetRequest_KIND_UNSPECIFIED
	vote     = peerv1.MeetRequest_KIND_VOTE
	release  = peerv1.MeetRequest_KIND_RELEASE
)

// Meet answers a question.
func (s service) Meet(ctx context.Context, r *peerv1.MeetRequest) (*peerv1.MeetResponse, error) {
	g := s.g
	if err := g.check(ctx); err != nil {
		return nil, err
	}
	from, err := wire.ToMember(r.GetFrom())
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	if to, err := wire.ToMember(r.GetTo()); err != nil || to != g.c.Self {
		return nil, status.Errorf(codes.FailedPrecondition, "this is %v", g.c.Self)
	}
	granted := false
	switch r.GetKind() {
	case vote:
		if granted, err = g.vote(ctx, from, r.GetGroup()); err != nil {
			return nil, status.Error(codes.Unavailable, err.Error())
		}
	case release:
		if err := g.release(from.Name, r.GetGroup()); err != nil {
			return nil, status.Error(codes.Unavailable, err.Error())
		}
	default:
	}
	a := g.know()
	a.Granted = granted
	select {
	case <-g.layer.closed: // what is over just because this node ends may be on its disk
		return nil, status.Error(codes.Unavailable, "this node is stopping")
	default:
		return a, nil
	}
}

// know returns what this node knows. An attempt is looked at first: one that
// succeeded is in the papers before it is over.
func (g *group) know() *peerv1.MeetResponse {
	g.mu.Lock()
	attempt := g.attempt
	g.mu.Unlock()
	p := g.l.owner.papers()
	_, leader := g.l.raft.LeaderWithID()
	room, _ := g.l.ownRoom()
	return &peerv1.MeetResponse{
		Full: room != RoomForAll, Stuck: room == RoomForNone,
		Disk: p.Disk, Group: p.Group, Last: g.l.raft.LastIndex(), Leader: string(nodeOf(leader)), Term: g.l.raft.CurrentTerm(),
		Founds: g.c.Founders > 0 && !p.Lost, Attempt: attempt, Voted: string(p.Voted), VotedGroup: p.VotedGroup,
	}
}

// vote gives this node's vote to the founding of a group by from, if no other
// founding has it and may still succeed.
func (g *group) vote(ctx context.Context, from eviction.Member, group string) (bool, error) {
	was := g.l.owner.papers()
	if was.VotedGroup != "" && was.VotedGroup != group && !g.over(ctx, was) {
		return false, nil
	}
	return g.l.owner.decide(func(p *papers) bool {
		if p.Group != "" || p.Lost || p.VotedGroup != was.VotedGroup || group == "" {
			return false
		}
		p.Voted, p.VotedGroup = from.Name, group
		return true
	})
}

// over reports whether the founding that has this node's vote will not succeed.
// Only its founder knows.
func (g *group) over(ctx context.Context, p papers) bool {
	if p.Voted == g.c.Self.Name {
		a := g.know()
		return a.Attempt != p.VotedGroup && a.Group != p.VotedGroup
	}
	g.mu.Lock()
	at, alive := g.members[p.Voted]
	g.mu.Unlock()
	if !alive {
		return false
	}
	r := g.ask(ctx, at, question, "")
	return r.err == nil && r.Attempt != p.VotedGroup && r.Group != p.VotedGroup
}

// release takes back the vote for a founding that its founder has given up.
func (g *group) release(founder qpid.NodeID, group string) error {
	_, err := g.l.owner.decide(func(p *papers) bool {
		if p.Voted != founder || p.VotedGroup != group {
			return false
		}
		p.Voted, p.VotedGroup = "", ""
		return true
	})
	return err
}

// found founds the group if that is for this node to do; see the package's
// comment. The error says what it waits for, and is nil once there is a group.
func (g *group) found(ctx context.Context) error {
	others := g.others()
	replies := g.askAll(ctx, others, question, "")
	var missing, lower error
	for _, r := range replies {
		switch {
		case r.err != nil:
			missing = fmt.Errorf("%s does not answer: %w", r.member.Name, r.err)
		case r.Group != "":
			return fmt.Errorf("%s has the queues' log already; this node waits for the leader to add it", r.member.Name)
		case r.Founds && r.member.Name < g.c.Self.Name:
			lower = fmt.Errorf("%s is to found the queues' log", r.member.Name)
		}
	}
	least := max(g.c.Founders, g.c.votersMin())
	switch {
	case g.l.owner.papers().Lost:
		return errors.New("this node's copy of the queues' log was damaged and was set aside, or was gone; it waits for the other replicas, which have it, to come up")
	case g.c.Founders == 0:
		return errors.New("nobody has founded the queues' log yet, and this node does not (it has join and no expect)")
	case len(others)+1 < least:
		return fmt.Errorf("the queues' log begins with %d nodes, and %d are there", least, len(others)+1)
	case missing != nil:
		return missing
	case lower != nil:
		return lower
	}
	return g.try(ctx, others)
}

// try is one attempt to found the group, with the votes of others.
func (g *group) try(ctx context.Context, others []place) error {
	group := random(16)
	g.setAttempt(group)
	defer g.setAttempt("")
	if err := g.collect(ctx, others, group); err != nil {
		g.setAttempt("") // from here on it cannot succeed, so votes may be let go
		_ = g.release(g.c.Self.Name, group)
		g.askAll(ctx, others, release, group)
		return err
	}
	// A disk that gives an error may have written it all the same. So this is the
	// group, or, if the process ends first, whatever the disk says then.
	for {
		err := g.l.owner.update(func(p *papers) { p.Group, p.Founded = group, true })
		if err == nil {
			break
		}
		g.l.log.Warn("queues: the log is not founded yet", slog.Any("err", err))
		select {
		case <-ctx.Done():
			<-g.layer.closed // nobody is told that it is over
			return err
		case <-time.After(g.c.Pace):
		}
	}
	g.l.log.Info("queues: this node has founded the log", slog.String("group", group), slog.Int("votes", len(others)+1))
	g.begin()
	return nil
}

func (g *group) setAttempt(group string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.attempt = group
}

// collect collects all votes. The error says which one is missing.
func (g *group) collect(ctx context.Context, others []place, group string) error {
	switch ok, err := g.vote(ctx, g.c.Self, group); {
	case err != nil:
		return err
	case !ok:
		return g.votedFor(g.c.Self.Name, g.know())
	}
	for _, r := range g.askAll(ctx, others, vote, group) {
		switch {
		case r.err != nil:
			return fmt.Errorf("%s does not answer: %w", r.member.Name, r.err)
		case !r.Granted:
			return g.votedFor(r.member.Name, r.MeetResponse)
		}
	}
	return nil
}

func (g *group) votedFor(voter qpid.NodeID, a *peerv1.MeetResponse) error {
	return fmt.Errorf("%s has given its vote to %s, which may have founded the queues' log and does not say; start %s, or, if its disk is lost for good, "+
		"stop all nodes and remove their directories of replicated queues", voter, a.GetVoted(), a.GetVoted())
}

// begin begins the log of a group that this node has founded, if it has not.
func (g *group) begin() {
	if !g.l.owner.papers().Founded || g.l.raft.LastIndex() > 0 {
		return
	}
	var err error
	if g.l.raft.CurrentTerm() == 0 { // a term on the disk is that of the last try
		_, err = g.l.unlessHalf(g.l.shots)
	}
	if err == nil {
		err = g.l.raft.BootstrapCluster(alone(g.id)).Error()
	}
	if err != nil {
		g.l.log.Warn("queues: the log does not begin", slog.Any("err", err))
	}
}
