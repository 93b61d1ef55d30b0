package wire

import (
	"github.com/anteroom/anteroom/eviction"
	peerv1 "github.com/anteroom/anteroom/proto/anteroom/peer/v1"
)

func fromReply(b *eviction.Reply) *peerv1.Reply {
	return &peerv1.Reply{
		Epoch: fromEpoch(b.Epoch), Nodes: fromNodeReplies(b.Nodes), Met: encoded(b.Met, fromSighting),
		Rooms: encoded(b.Rooms, fromRoomReply), Bounds: fromBoundsSum(b.Bounds),
		Rivals: encoded(b.Rivals, func(o eviction.Rival) *peerv1.Rival {
			return &peerv1.Rival{Line: fromLine(o.Line), Member: fromMember(o.Member), Wave: o.Wave}
		}),
	}
}

func (r *reader) reply(p *peerv1.Reply) *eviction.Reply {
	return &eviction.Reply{
		Epoch: r.epoch(p.GetEpoch()), Nodes: r.nodeReplies(p.GetNodes()),
		Met:   list(r, "sightings", p.GetMet(), recordsMax, r.sighting),
		Rooms: list(r, "rooms", p.GetRooms(), roomsMax, r.roomReply), Bounds: toBoundsSum(p.GetBounds()),
		Rivals: list(r, "rivals", p.GetRivals(), recordsMax, func(p *peerv1.Rival) eviction.Rival {
			return eviction.Rival{Line: r.line(p.GetLine()), Member: r.member(p.GetMember()), Wave: p.GetWave()}
		}),
	}
}

func fromNodeReply(n eviction.NodeReply) *peerv1.NodeReply {
	return &peerv1.NodeReply{
		Index: uint32(n.Index), Clock: n.Clock, Hlc: n.HLC, Line: fromLine(n.Line), Knows: n.Knows, Voters: fromVoters(n.Voters),
		Expect: int64(n.Expect), Joins: n.Joins, KeptKeys: n.KeptKeys, Leaving: n.Leaving, Lapsed: n.Lapsed, Busy: encoded(n.Busy, same), Since: n.Since,
		Lives: n.Lives, Restored: n.Restored, Guesses: encoded(n.Guesses, fromSighting), Named: n.Named, Up: n.Up,
		Holdout: fromMember(n.Holdout), HoldoutLine: fromLine(n.HoldoutLine), Stood: n.Stood, Forgot: n.Forgot, More: n.More,
	}
}

func (r *reader) nodeReply(p *peerv1.NodeReply) eviction.NodeReply {
	return eviction.NodeReply{
		Index: r.index(p.GetIndex()), Clock: p.GetClock(), HLC: p.GetHlc(), Line: r.line(p.GetLine()), Knows: p.GetKnows(),
		Voters: r.voters(p.GetVoters()), Expect: r.number(p.GetExpect()), Joins: p.GetJoins(), KeptKeys: p.GetKeptKeys(),
		Leaving: p.GetLeaving(), Lapsed: p.GetLapsed(), Busy: list(r, "rooms", p.GetBusy(), roomsMax, r.name), Since: p.GetSince(),
		Lives: list(r, "lives", p.GetLives(), eviction.LivesMax, same), Restored: p.GetRestored(),
		Guesses: list(r, "sightings", p.GetGuesses(), recordsMax, r.sighting), Named: p.GetNamed(), Up: p.GetUp(),
		Holdout: r.member(p.GetHoldout()), HoldoutLine: r.line(p.GetHoldoutLine()), Stood: p.GetStood(), Forgot: p.GetForgot(), More: p.GetMore(),
	}
}

func fromRoomReply(b eviction.RoomReply) *peerv1.RoomReply {
	return &peerv1.RoomReply{
		Room: b.Room, Nodes: fromRoomNodes(b.Nodes), Front: fromFront(b.Front),
		Nets: fromNets(b.Net),
		Voids: encoded(b.Voids, func(v eviction.VoidCount) *peerv1.VoidCount {
			return &peerv1.VoidCount{Member: fromMember(v.Member), Min: v.Min, Max: v.Max, Nodes: int64(v.Nodes)}
		}),
		Newest: fromRoom(b.Newest), Digest: fromDigest(b.Digest),
		Supplies: encoded(b.Supply, fromSupply), Calls: b.Calls, Shared: b.Shared,
		Covers: encoded(b.Covers, func(c eviction.Cover) *peerv1.Cover {
			return &peerv1.Cover{Member: fromMember(c.Member), At: c.At, Is: c.Is}
		}),
		Visits: encoded(b.Visits, func(v eviction.VisitCount) *peerv1.VisitCount {
			return &peerv1.VisitCount{Member: fromMember(v.Member), Visits: int64(v.Visits)}
		}),
	}
}

func (r *reader) roomReply(p *peerv1.RoomReply) eviction.RoomReply {
	return eviction.RoomReply{
		Room: r.name(p.GetRoom()), Nodes: r.roomNodes(p.GetNodes()), Front: r.front(p.GetFront()),
		Net: r.nets(p.GetNets()),
		Voids: list(r, "voids", p.GetVoids(), recordsMax, func(p *peerv1.VoidCount) eviction.VoidCount {
			return eviction.VoidCount{Member: r.member(p.GetMember()), Min: p.GetMin(), Max: p.GetMax(), Nodes: r.number(p.GetNodes())}
		}),
		Newest: r.room(p.GetNewest()), Digest: r.digest(p.GetDigest()),
		Supply: list(r, "supplies", p.GetSupplies(), nodesMax, r.supply), Calls: r.rate(p.GetCalls()), Shared: p.GetShared(),
		Covers: list(r, "covers", p.GetCovers(), recordsMax, func(p *peerv1.Cover) eviction.Cover {
			return eviction.Cover{Member: r.member(p.GetMember()), At: p.GetAt(), Is: p.GetIs()}
		}),
		Visits: list(r, "visits", p.GetVisits(), recordsMax, func(p *peerv1.VisitCount) eviction.VisitCount {
			return eviction.VisitCount{Member: r.member(p.GetMember()), Visits: r.number(p.GetVisits())}
		}),
	}
}

func fromSupply(s eviction.Supply) *peerv1.Supply {
	return &peerv1.Supply{
		Slots: int64(s.Slots), At: fromEpoch(s.At), Burned: int64(s.Burned), Line: fromLine(s.Line),
		Sure: s.Sure, Claims: encoded(s.Claims, fromClaim), Voters: s.Voters, Census: fromCensus(s.Census),
	}
}

func (r *reader) supply(p *peerv1.Supply) eviction.Supply {
	return eviction.Supply{
		Slots: r.number(p.GetSlots()), At: r.epoch(p.GetAt()), Burned: r.number(p.GetBurned()),
		Line: r.line(p.GetLine()), Voters: p.GetVoters(),
		Reckoning: eviction.Reckoning{Sure: p.GetSure(), Claims: r.claims(p.GetClaims()), Census: r.census(p.GetCensus())},
	}
}

func fromStands(s *eviction.Supply) *peerv1.Supply {
	if s == nil {
		return nil
	}
	return fromSupply(*s)
}

func (r *reader) stands(p *peerv1.Supply) *eviction.Supply {
	if p == nil {
		return nil
	}
	s := r.supply(p)
	return &s
}

func fromCensus(c *eviction.Census) *peerv1.Census {
	if c == nil {
		return nil
	}
	return &peerv1.Census{At: fromEpoch(c.At), Slots: int64(c.Slots), Age: c.Age}
}

func (r *reader) census(p *peerv1.Census) *eviction.Census {
	if p == nil {
		return nil
	}
	return &eviction.Census{At: r.epoch(p.GetAt()), Slots: r.number(p.GetSlots()), Age: p.GetAge()}
}

func fromBucket(b *eviction.Bucket) *peerv1.Bucket {
	if b == nil {
		return nil
	}
	return &peerv1.Bucket{
		Level: b.Level, Debt: b.Debt, DebtFor: b.DebtFor, Owes: b.Owes, Pause: b.Pause,
		Spent: encoded(b.Spent, func(s eviction.Spent) *peerv1.Spent { return &peerv1.Spent{Age: s.Age, Parts: s.Parts} }),
	}
}

func fromLeft(l *eviction.Left) *peerv1.Left {
	if l == nil {
		return nil
	}
	return &peerv1.Left{Bucket: fromBucket(&l.Bucket), Age: l.Age, LastAsk: l.LastAsk}
}

func (r *reader) left(p *peerv1.Left) *eviction.Left {
	b := r.bucket(p.GetBucket())
	if b == nil {
		return nil
	}
	return &eviction.Left{Bucket: *b, Age: p.GetAge(), LastAsk: p.GetLastAsk()}
}

func (r *reader) bucket(p *peerv1.Bucket) *eviction.Bucket {
	if p == nil {
		return nil
	}
	return &eviction.Bucket{
		Level: p.GetLevel(), Debt: p.GetDebt(), DebtFor: p.GetDebtFor(), Owes: p.GetOwes(), Pause: p.GetPause(),
		Spent: list(r, "spent", p.GetSpent(), recordsMax, func(s *peerv1.Spent) eviction.Spent { return eviction.Spent{Age: s.GetAge(), Parts: s.GetParts()} }),
	}
}

func fromRoomNode(n eviction.RoomNode) *peerv1.RoomNode {
	return &peerv1.RoomNode{
		Index: uint32(n.Index), Born: n.Born, Line: fromLine(n.Line), Lapsed: n.Lapsed, OldAge: n.OldAge, Minted: int64(n.Minted),
		Free: int64(n.Free), Used: int64(n.Used), Queued: int64(n.Queued), Due: int64(n.Due), Version: fromVersion(n.Version), Ttl: n.TTL,
		Arrivals: n.Arrivals, Lightest: fromWeight(n.Lightest), Voters: fromVoters(n.Voters), First: n.First,
		Keying: n.Keying, Seed: bytesOf(n.Seed[:]), Called: int64(n.Called), Sum: n.Sum, Wanted: int64(n.Wanted),
		Shut: n.Shut, Holds: fromEpoch(n.Holds), Spent: n.Spent, Tokens: int64(n.Tokens), Held: n.Held, Sides: n.Sides,
		Bare: n.Bare, Keeps: n.Keeps, Cut: fromCut(n.Cut), Says: uint32(n.Says), Heeds: n.Heeds, Dealt: fromEpoch(n.Dealt), DealtAge: n.DealtAge, Left: fromLeft(n.Left),
		Disks: n.Disks, Earlier: encoded(n.Earlier, fromEarlier), Over: encoded(n.Over, fromVoid), Goes: fromVote(n.Goes), Came: fromStay(n.Came), Without: encoded(n.Without, fromStay),
	}
}

func fromVote(v eviction.Vote) *peerv1.Vote {
	if v == (eviction.Vote{}) {
		return nil
	}
	return &peerv1.Vote{To: fromLine(v.To)}
}

func (r *reader) vote(p *peerv1.Vote) eviction.Vote { return eviction.Vote{To: r.line(p.GetTo())} }

func fromStay(s eviction.Stay) *peerv1.Stay {
	p := &peerv1.Stay{Line: fromLine(s.Line), Voters: fromVoters(s.Voters)}
	if p.Line == nil && p.Voters == nil {
		return nil
	}
	return p
}

func (r *reader) stay(p *peerv1.Stay) eviction.Stay {
	return eviction.Stay{Line: r.line(p.GetLine()), Voters: r.voters(p.GetVoters())}
}

func fromEarlier(e eviction.Earlier) *peerv1.Earlier {
	return &peerv1.Earlier{Account: fromAccount(e.Account), Visits: int64(e.Visits), State: uint32(e.State)}
}

func (r *reader) earlier(p *peerv1.Earlier) eviction.Earlier {
	return eviction.Earlier{
		Account: r.account(p.GetAccount()), Visits: r.number(p.GetVisits()),
		State: eviction.EarlierState(r.enum("earlier life", int32(p.GetState())+1, uint8(eviction.EarlierResumed))),
	}
}

func (r *reader) roomNode(p *peerv1.RoomNode) eviction.RoomNode {
	return eviction.RoomNode{
		Index: r.index(p.GetIndex()), Born: p.GetBorn(), Line: r.line(p.GetLine()), Lapsed: p.GetLapsed(), OldAge: p.GetOldAge(),
		Minted: r.number(p.GetMinted()), Free: r.number(p.GetFree()), Used: r.number(p.GetUsed()), Queued: r.number(p.GetQueued()),
		Due: r.number(p.GetDue()), Version: r.version(p.GetVersion()), TTL: p.GetTtl(), Arrivals: float32(r.rate(float64(p.GetArrivals()))),
		Lightest: r.weight(p.GetLightest()), Voters: r.voters(p.GetVoters()), First: p.GetFirst(),
		Keying: p.GetKeying(), Seed: r.seed(p.GetSeed()), Called: r.number(p.GetCalled()), Sum: p.GetSum(), Wanted: r.number(p.GetWanted()),
		Shut: p.GetShut(), Holds: r.epoch(p.GetHolds()), Spent: p.GetSpent(), Tokens: r.number(p.GetTokens()), Held: p.GetHeld(), Sides: p.GetSides(),
		Bare: p.GetBare(), Keeps: p.GetKeeps(), Cut: r.cut(p.GetCut()), Says: eviction.Says(r.enum("cover", int32(p.GetSays())+1, uint8(eviction.IsCovered))),
		Heeds: p.GetHeeds(), Dealt: r.epoch(p.GetDealt()), DealtAge: p.GetDealtAge(), Left: r.left(p.GetLeft()), Goes: r.vote(p.GetGoes()),
		Came: r.stay(p.GetCame()), Without: list(r, "lines", p.GetWithout(), recordsMax, r.stay),
		Resuming: eviction.Resuming{
			Disks: p.GetDisks(), Earlier: list(r, "earlier lives", p.GetEarlier(), recordsMax, r.earlier), Over: list(r, "voids", p.GetOver(), recordsMax, r.void),
		},
	}
}

func fromFront(f eviction.Front) *peerv1.Front {
	p := &peerv1.Front{
		Sampled: f.Sampled, Complete: f.Complete,
		Samples: encoded(f.Samples, func(s eviction.Sample) *peerv1.Sample {
			return &peerv1.Sample{Weight: fromWeight(s.Weight), Rank: int64(s.Rank), Index: uint32(s.Index), Last: s.Last, Whole: s.Whole}
		}),
	}
	if n := len(f.Items); n > 0 {
		p.Weights, p.Indexes = make([]byte, 0, weightSize*n), make([]uint32, n)
		for i, t := range f.Items {
			p.Weights, p.Indexes[i] = appendWeight(p.Weights, t.Weight), uint32(t.Index)
		}
	}
	return p
}

func (r *reader) front(p *peerv1.Front) eviction.Front {
	f := eviction.Front{
		Sampled: p.GetSampled(), Complete: p.GetComplete(),
		Samples: list(r, "samples", p.GetSamples(), recordsMax, func(p *peerv1.Sample) eviction.Sample {
			return eviction.Sample{
				Weight: r.weight(p.GetWeight()), Rank: r.number(p.GetRank()), Index: r.index(p.GetIndex()), Last: p.GetLast(), Whole: p.GetWhole(),
			}
		}),
	}
	weights := p.GetWeights()
	if len(weights) != weightSize*len(p.GetIndexes()) {
		r.fail("front of %d items with weights of %d bytes", len(p.GetIndexes()), len(weights))
		return f
	}
	f.Items = list(r, "front items", p.GetIndexes(), recordsMax, func(index uint32) eviction.Tagged {
		t := eviction.Tagged{Weight: r.weight(weights[:weightSize]), Index: r.index(index)}
		weights = weights[weightSize:]
		return t
	})
	return f
}

func fromTagged(t eviction.Tagged) *peerv1.Tagged {
	return &peerv1.Tagged{Weight: fromWeight(t.Weight), Index: uint32(t.Index)}
}

func (r *reader) tagged(p *peerv1.Tagged) eviction.Tagged {
	return eviction.Tagged{Weight: r.weight(p.GetWeight()), Index: r.index(p.GetIndex())}
}

func fromCommit(c *eviction.Commit) *peerv1.Commit {
	return &peerv1.Commit{
		Epoch: fromEpoch(c.Epoch), Grade: peerv1.Grade(c.Grade) + 1, Line: fromLine(c.Line), Voters: fromVoters(c.Voters),
		Met: encoded(c.Met, fromSighting), SideFor: c.SideFor, Hlc: c.HLC, Rooms: encoded(c.Rooms, fromRoomCommit),
		RestMin: fromWeights(c.RestMin), Founding: c.Founding, Kept: c.Kept, Recalled: c.Recalled, Carried: c.Carried,
		Reckons: fromBounds(c.Reckons), Acts: fromBounds(c.Acts), Known: int64(c.Known), Outvoted: encoded(c.Outvoted, func(i int) uint32 { return uint32(i) }),
	}
}

func (r *reader) commit(p *peerv1.Commit) *eviction.Commit {
	return &eviction.Commit{
		Epoch: r.epoch(p.GetEpoch()), Grade: eviction.Grade(r.enum("grade", int32(p.GetGrade()), uint8(eviction.Unanimous))),
		Line: r.line(p.GetLine()), Voters: r.voters(p.GetVoters()), Met: list(r, "sightings", p.GetMet(), recordsMax, r.sighting),
		SideFor: p.GetSideFor(), HLC: p.GetHlc(), Rooms: list(r, "rooms", p.GetRooms(), roomsMax, r.roomCommit),
		RestMin: r.weights(p.GetRestMin()), Founding: p.GetFounding(), Kept: p.GetKept(), Recalled: p.GetRecalled(), Carried: p.GetCarried(),
		Reckons: toBounds(p.GetReckons()), Acts: toBounds(p.GetActs()), Known: r.number(p.GetKnown()), Outvoted: list(r, "nodes", p.GetOutvoted(), nodesMax, r.index),
	}
}

func fromRoomCommit(c eviction.RoomCommit) *peerv1.RoomCommit {
	number := func(n int) int64 { return int64(n) }
	born, runs := fromRuns(c.Born)
	return &peerv1.RoomCommit{
		Room: c.Room, Config: fromRoom(c.Config), Agreed: c.Agreed, Ttl: c.TTL, Line: fromLine(c.Line), From: fromLine(c.From),
		Born: born, BornRuns: runs, Void: encoded(c.Void, fromVoid), Safe: encoded(c.Safe, fromVoid), Settled: encoded(c.Settled, fromVoid),
		Mint: int64(c.Mint), Burn: encoded(c.Burn, fromDeal), Moves: encoded(c.Moves, func(m eviction.Move) *peerv1.Move {
			return &peerv1.Move{From: uint32(m.From), To: uint32(m.To), Slots: int64(m.Slots)}
		}), Tokens: encoded(c.Tokens, fromDeal), Paced: c.Paced, Idle: c.Idle, Stay: c.Stay, Bucket: fromBucket(c.Bucket), Cut: fromCut(c.Cut), Key: fromEpoch(c.Key), Drawn: fromWeight(c.Drawn),
		Delete: int64(c.Delete), Twins: encoded(c.Twins, fromTagged), Open: c.Open, Closed: c.Closed, Supply: int64(c.Supply),
		Queued: int64(c.Queued), Waiting: encoded(c.Waiting, number), Digest: fromDigest(c.Digest), First: encoded(c.First, number),
		Rate: c.Rate, Active: int64(c.Active), Called: int64(c.Called), Missing: int64(c.Missing), WholeIn: c.WholeIn,
		Sure: c.Sure, Claims: encoded(c.Claims, fromClaim), Bound: int64(c.Bound), Held: c.Held,
		Sides: c.Sides, Shared: c.Shared, Bare: c.Bare, Before: fromCut(c.Before), CoveredRuns: fromBools(c.Covered),
		Resume: c.Resume, Resumed: encoded(c.Resumed, fromMember), Census: fromCensus(c.Census), Stands: fromStands(c.Stands),
	}
}

func (r *reader) roomCommit(p *peerv1.RoomCommit) eviction.RoomCommit {
	voids := func(in []*peerv1.Void) []eviction.Void { return list(r, "voids", in, recordsMax, r.void) }
	deals := func(in []*peerv1.Deal) []eviction.Deal { return list(r, "deals", in, nodesMax, r.deal) }
	numbers := func(in []int64) []int { return list(r, "numbers", in, nodesMax, r.number) }
	return eviction.RoomCommit{
		Room: r.name(p.GetRoom()), Config: r.room(p.GetConfig()), Agreed: p.GetAgreed(), TTL: p.GetTtl(), Line: r.line(p.GetLine()),
		From: r.line(p.GetFrom()), Born: r.runs(p.GetBorn(), p.GetBornRuns()),
		KeptBy: eviction.KeptBy{Bare: r.stamps(p.GetBare()), Covered: r.bools(p.GetCoveredRuns())},
		Void:   voids(p.GetVoid()), Safe: voids(p.GetSafe()), Settled: voids(p.GetSettled()),
		Mint: r.number(p.GetMint()), Burn: deals(p.GetBurn()), Moves: list(r, "moves", p.GetMoves(), recordsMax, r.move),
		Pace: eviction.Pace{Tokens: deals(p.GetTokens()), Paced: p.GetPaced(), Idle: p.GetIdle(), Stay: p.GetStay(), Bucket: r.bucket(p.GetBucket())}, Cut: r.cut(p.GetCut()), Key: r.epoch(p.GetKey()), Drawn: r.weight(p.GetDrawn()),
		Delete: r.number(p.GetDelete()), Twins: list(r, "twins", p.GetTwins(), recordsMax, r.tagged), Open: p.GetOpen(), Closed: p.GetClosed(),
		Supply: r.number(p.GetSupply()), Queued: r.number(p.GetQueued()), Waiting: numbers(p.GetWaiting()),
		Digest: r.digest(p.GetDigest()), First: numbers(p.GetFirst()),
		Rate: r.rate(p.GetRate()), Active: r.number(p.GetActive()), Called: r.number(p.GetCalled()),
		Missing: r.number(p.GetMissing()), WholeIn: p.GetWholeIn(),
		Reckoning: eviction.Reckoning{Sure: p.GetSure(), Claims: r.claims(p.GetClaims()), Census: r.census(p.GetCensus())},
		Bound:     r.number(p.GetBound()), Held: p.GetHeld(),
		Sides: p.GetSides(), Shared: p.GetShared(), Before: r.cut(p.GetBefore()), Stands: r.stands(p.GetStands()),
		Resumption: eviction.Resumption{Resume: p.GetResume(), Resumed: list(r, "lives", p.GetResumed(), recordsMax, r.member)},
	}
}

// stamps are those of the nodes of a list.
func (r *reader) stamps(in []uint64) []uint64 {
	return list(r, "stamps", in, nodesMax, func(s uint64) uint64 { return s })
}

func fromVoid(v eviction.Void) *peerv1.Void {
	return &peerv1.Void{Member: fromMember(v.Member), Epoch: v.Epoch}
}

func (r *reader) void(p *peerv1.Void) eviction.Void {
	return eviction.Void{Member: r.member(p.GetMember()), Epoch: p.GetEpoch()}
}

func fromClaim(c eviction.Claim) *peerv1.Claim {
	return &peerv1.Claim{Of: encoded(c.Of, fromVoid), Slots: int64(c.Slots), Most: int64(c.Most)}
}

func (r *reader) claims(in []*peerv1.Claim) []eviction.Claim {
	return list(r, "claims", in, recordsMax, func(p *peerv1.Claim) eviction.Claim {
		return eviction.Claim{Of: list(r, "voids", p.GetOf(), recordsMax, r.void), Slots: r.number(p.GetSlots()), Most: r.number(p.GetMost())}
	})
}

func fromDeal(d eviction.Deal) *peerv1.Deal {
	return &peerv1.Deal{Index: uint32(d.Index), N: int64(d.N)}
}

func (r *reader) deal(p *peerv1.Deal) eviction.Deal {
	return eviction.Deal{Index: r.index(p.GetIndex()), N: r.number(p.GetN())}
}

func (r *reader) move(p *peerv1.Move) eviction.Move {
	return eviction.Move{From: r.index(p.GetFrom()), To: r.index(p.GetTo()), Slots: r.number(p.GetSlots())}
}
