package wire

import (
	"math"

	"github.com/anteroom/anteroom/eviction"
	peerv1 "github.com/anteroom/anteroom/proto/anteroom/peer/v1"
	"github.com/anteroom/anteroom/qpid"
)

func fromGather(g *eviction.Gather) *peerv1.Gather {
	return &peerv1.Gather{
		Epoch: fromEpoch(g.Epoch), Lead: fromPeer(g.Lead), List: encoded(g.List, memberIn), T: g.T, Wait: g.Wait,
		As: fromEpoch(g.As), Voters: fromEpoch(g.Voters), Reckons: fromBounds(g.Reckons), Quorum: g.Quorum,
		Rooms: encoded(g.Rooms, func(rg eviction.RoomGather) *peerv1.RoomGather {
			return &peerv1.RoomGather{
				Room: rg.Room, Version: fromVersion(rg.Version), Want: int64(rg.Want), UpTo: rg.UpTo, Cut: fromCut(rg.Cut), Key: fromEpoch(rg.Key),
				Keying: rg.Keying, Seed: bytesOf(rg.Seed[:]), Digest: rg.Digest,
			}
		}),
	}
}

func (r *reader) gather(p *peerv1.Gather) *eviction.Gather {
	return &eviction.Gather{
		Epoch: r.epoch(p.GetEpoch()), Lead: r.peer(p.GetLead()), List: list(r, "members", p.GetList(), nodesMax, r.member),
		T: p.GetT(), Wait: p.GetWait(), As: r.epoch(p.GetAs()), Voters: r.epoch(p.GetVoters()), Reckons: toBounds(p.GetReckons()), Quorum: p.GetQuorum(),
		Rooms: list(r, "rooms", p.GetRooms(), roomsMax, func(p *peerv1.RoomGather) eviction.RoomGather {
			return eviction.RoomGather{
				Room: r.name(p.GetRoom()), Version: r.version(p.GetVersion()), Want: r.number(p.GetWant()), UpTo: p.GetUpTo(), Cut: r.cut(p.GetCut()),
				Key: r.epoch(p.GetKey()), Keying: p.GetKeying(), Seed: r.seed(p.GetSeed()), Digest: p.GetDigest(),
			}
		}),
	}
}

func fromBounds(b eviction.Bounds) *peerv1.Bounds {
	if b == (eviction.Bounds{}) {
		return nil
	}
	return &peerv1.Bounds{Lease: b.Lease, Deadline: b.Deadline, MaxSkew: b.MaxSkew, Margin: b.Margin, Exclude: b.Exclude}
}

func toBounds(p *peerv1.Bounds) eviction.Bounds {
	return eviction.Bounds{Lease: p.GetLease(), Deadline: p.GetDeadline(), MaxSkew: p.GetMaxSkew(), Margin: p.GetMargin(), Exclude: p.GetExclude()}
}

func fromBoundsSum(s eviction.BoundsSum) *peerv1.BoundsSum {
	if s == (eviction.BoundsSum{}) {
		return nil
	}
	return &peerv1.BoundsSum{Wants: fromBounds(s.Wants), Reckons: fromBounds(s.Reckons), Held: fromBounds(s.Held)}
}

func toBoundsSum(p *peerv1.BoundsSum) eviction.BoundsSum {
	return eviction.BoundsSum{Wants: toBounds(p.GetWants()), Reckons: toBounds(p.GetReckons()), Held: toBounds(p.GetHeld())}
}

// memberIn encodes a member of a list, where nobody is somebody too: the
// elements of a list cannot be absent.
func memberIn(m eviction.Member) *peerv1.Member {
	return &peerv1.Member{Name: string(m.Name), Boot: m.Boot}
}

func fromVersion(v eviction.Version) *peerv1.Version {
	if v == (eviction.Version{}) {
		return nil
	}
	return &peerv1.Version{Stamp: v.Stamp, By: string(v.By)}
}

func (r *reader) version(p *peerv1.Version) eviction.Version {
	return eviction.Version{Stamp: p.GetStamp(), By: r.node(p.GetBy())}
}

func fromLine(l eviction.Line) *peerv1.Line {
	if l == (eviction.Line{}) {
		return nil
	}
	return &peerv1.Line{Stamp: l.Stamp, By: string(l.By)}
}

func (r *reader) line(p *peerv1.Line) eviction.Line {
	return eviction.Line{Stamp: p.GetStamp(), By: r.node(p.GetBy())}
}

func fromCut(c eviction.Cut) *peerv1.Cut {
	if c == (eviction.Cut{}) {
		return nil
	}
	return &peerv1.Cut{Keying: c.Keying, Epoch: c.Epoch, Value: fromWeight(c.Value)}
}

func (r *reader) cut(p *peerv1.Cut) eviction.Cut {
	return eviction.Cut{Keying: p.GetKeying(), Epoch: p.GetEpoch(), Value: r.weight(p.GetValue())}
}

func fromVoters(v eviction.Voters) *peerv1.Voters {
	if v.Version == 0 && len(v.Names)+len(v.Next)+len(v.Founders) == 0 && v.At == (qpid.Epoch{}) && !v.From.Founded() {
		return nil
	}
	name := func(n qpid.NodeID) string { return string(n) }
	return &peerv1.Voters{
		Version: v.Version, Names: encoded(v.Names, name), Next: encoded(v.Next, name), At: fromEpoch(v.At),
		Founders: encoded(v.Founders, memberIn), From: fromLine(v.From),
	}
}

func (r *reader) voters(p *peerv1.Voters) eviction.Voters {
	return eviction.Voters{
		Version: p.GetVersion(), Names: list(r, "voters", p.GetNames(), nodesMax, r.node), Next: list(r, "voters", p.GetNext(), nodesMax, r.node),
		At: r.epoch(p.GetAt()), Founders: list(r, "founders", p.GetFounders(), nodesMax, r.member), From: r.line(p.GetFrom()),
	}
}

func fromSighting(s eviction.Sighting) *peerv1.Sighting {
	return &peerv1.Sighting{Member: fromMember(s.Member), Age: s.Age, Epoch: s.Epoch, Left: s.Left, Wave: s.Wave}
}

func (r *reader) sighting(p *peerv1.Sighting) eviction.Sighting {
	return eviction.Sighting{Member: r.member(p.GetMember()), Age: p.GetAge(), Epoch: p.GetEpoch(), Left: p.GetLeft(), Wave: p.GetWave()}
}

func fromRoom(c *eviction.Room) *peerv1.Room {
	if c == nil {
		return nil
	}
	return &peerv1.Room{
		Name: c.Name, Target: int64(c.Target), NewPerMinute: int64(c.NewPerMinute), Session: fromDuration(c.Session), NoRenewal: c.NoRenewal,
		Method: peerv1.Method(c.Method) + 1, QueueAll: c.QueueAll, Refresh: fromDuration(c.Refresh), TicketTtl: fromDuration(c.TicketTTL),
		ClaimWindow: fromDuration(c.ClaimWindow), Algorithm: peerv1.Algorithm(c.Algorithm) + 1, OnPartition: peerv1.Policy(c.OnPartition) + 1,
		Survivor: fromDuration(c.Survivor), QueueMax: int64(c.QueueMax), Event: fromEvent(c.Event),
		Reclaimed: encoded(c.Reclaimed, memberIn), Version: fromVersion(c.Version), Settings: c.Settings,
		Mode: peerv1.Mode(c.Mode), Events: encoded(c.Events, fromEvent), SessionMax: fromDuration(c.SessionMax), ClaimsMax: int64(c.ClaimsMax),
	}
}

func fromEvent(e eviction.Event) *peerv1.Event {
	if e == (eviction.Event{}) {
		return nil
	}
	return &peerv1.Event{
		Name: e.Name, Prequeue: e.Prequeue, Start: e.Start, End: e.End, Shuffle: e.Shuffle, Seed: bytesOf(e.Seed[:]), Set: uint32(e.Set),
		Target: int64(e.Target), NewPerMinute: int64(e.NewPerMinute), Session: fromDuration(e.Session), NoRenewal: e.NoRenewal,
		Method: peerv1.Method(e.Method) + 1,
	}
}

func (r *reader) event(p *peerv1.Event) eviction.Event {
	if p == nil {
		return eviction.Event{}
	}
	if p.GetSet() > math.MaxUint8 {
		r.fail("an event sets %d", p.GetSet())
	}
	return eviction.Event{
		Name: r.name(p.GetName()), Prequeue: p.GetPrequeue(), Start: p.GetStart(), End: p.GetEnd(), Shuffle: p.GetShuffle(),
		Seed: r.seed(p.GetSeed()), Set: eviction.Set(p.GetSet()), Target: r.number(p.GetTarget()),
		NewPerMinute: r.number(p.GetNewPerMinute()), Session: toDuration(p.GetSession()), NoRenewal: p.GetNoRenewal(),
		Method: eviction.Method(r.enum("method", int32(p.GetMethod()), uint8(eviction.Reject))),
	}
}

func (r *reader) room(p *peerv1.Room) *eviction.Room {
	if p == nil {
		return nil
	}
	return &eviction.Room{
		Name: r.name(p.GetName()), Target: r.number(p.GetTarget()), NewPerMinute: r.number(p.GetNewPerMinute()),
		Session: toDuration(p.GetSession()), NoRenewal: p.GetNoRenewal(),
		Method:   eviction.Method(r.enum("method", int32(p.GetMethod()), uint8(eviction.Reject))),
		QueueAll: p.GetQueueAll(), Refresh: toDuration(p.GetRefresh()), TicketTTL: toDuration(p.GetTicketTtl()),
		ClaimWindow: toDuration(p.GetClaimWindow()),
		Algorithm:   eviction.Algorithm(r.enum("algorithm", int32(p.GetAlgorithm()), uint8(eviction.ByQPID))),
		OnPartition: eviction.Policy(r.enum("policy", int32(p.GetOnPartition()), uint8(eviction.Stop))),
		Survivor:    toDuration(p.GetSurvivor()), QueueMax: r.number(p.GetQueueMax()),
		Event:     r.event(p.GetEvent()),
		Reclaimed: list(r, "members", p.GetReclaimed(), nodesMax, r.member), Version: r.version(p.GetVersion()),
		Settings: r.text("settings", p.GetSettings(), settingsMax),
		Mode:     eviction.Mode(r.enum("mode", int32(p.GetMode())+1, uint8(eviction.Deleted))), // absent is normal
		Events:   list(r, "events", p.GetEvents(), eviction.EventsMax, r.event),

		SessionMax: toDuration(p.GetSessionMax()), ClaimsMax: r.number(p.GetClaimsMax()),
	}
}
