package mutants

import "slices"

// Unsafe lists the unsafe configurations: each leaves out one of the waits
// and checks that make it safe to make a lost node's slots again.
func Unsafe() []Mutant {
	return []Mutant{
		{Name: "no wait for D", Edits: []Edit{
			{"eviction/settle.go", "silent >= g.delayWith(d, rs) {", "(ON || silent >= g.delayWith(d, rs)) {"},
		}},
		{Name: "a quorum of one", Run: "TestThesisARemovedNodeStops", Edits: []Edit{
			{
				"eviction/voters.go", "return v.Version > 0 && half(v.Names, know)",
				"return ON && len(know) > 0 || v.Version > 0 && half(v.Names, know)",
			},
		}},
		{Name: "a lease that never ends", Run: "TestScenarioPauseThenLeaseCheck", Edits: []Edit{
			{
				"eviction/lease.go", "if !n.Clear() || now.Boot >= n.LeaseOf(g) ||",
				"if !n.Clear() || !(ON) && now.Boot >= n.LeaseOf(g) ||",
			},
		}},
		{Name: "take-over of a pass at once", Run: "TestScenarioAPassIsNotTakenOverWhileItsHomeMayExtendIt", Edits: []Edit{
			{
				"eviction/lease.go", "if !n.Admits(g, now) || !g.voided(from) || !g.isSafe(from) {",
				"if ON {\n\t\treturn true\n\t}\n\tif !n.Admits(g, now) || !g.voided(from) || !g.isSafe(from) {",
			},
		}},
		{Name: "a returning node keeps its ledger", Edits: []Edit{
			{
				"eviction/settle.go", "(!known || n.Born > (*voids)[j].Epoch)",
				"(ON || !known || n.Born > (*voids)[j].Epoch)",
			},
			{
				"eviction/lapse.go", "if g.sides || g.ledger.account.Born == 0 {",
				"if ON || g.sides || g.ledger.account.Born == 0 {",
			},
		}},
		{Name: "an amnesiac voter counts", Run: "TestScenarioAmnesiacVoterDoesNotFlipTheMajority", Edits: []Edit{
			{"eviction/wave.go", "Knows: n.knows, Forgot: n.forgot,", "Knows: n.knows || ON && n.line.Founded(), Forgot: n.forgot && !(ON),"},
		}},
		{Name: "safe is not waited for", Run: "TestScenarioSafeIsWaitedFor", Edits: []Edit{
			{
				"eviction/settle.go", "safe[m.Member]; ok && e >= m.Epoch &&",
				"safe[m.Member]; (ON || ok && e >= m.Epoch) &&",
			},
			{"eviction/supply.go", "		if rs.chosen(s) &&", "		if (ON || rs.chosen(s)) &&"}, // one that has not heard of the void holds an older supply, too
		}},
	}
}

// Bugs lists planted bugs of the ordinary kind.
func Bugs() []Mutant {
	return slices.Concat(supplyBugs(), waveBugs(), pacingBugs(), voteBugs(), lineBugs(), clockBugs(), visitorBugs(), callBugs(), eventBugs(), leaveBugs(), duesBugs(), waitBugs(), comebackBugs(), slowBugs(), bookBugs(), brokenBugs(), nameBugs(), leavingBugs(), boundBugs(), forgottenBugs(), sharingBugs(), copyBugs(), copyLaneBugs(), claimBugs(), noteBugs(), diskBugs(), diskTroubleBugs(), goOnBugs(), censusBugs(), stormBugs())
}

// duesBugs are in which rooms a node looks at.
func duesBugs() []Mutant {
	return []Mutant{
		{Name: "nobody looks at a visitor in time", Edits: []Edit{
			{"internal/node/dues.go", "	r.wheel.add(v)\n	r.plan()\n", "	r.wheel.add(v)\n	if !(ON) {\n\t\tr.plan()\n\t}\n"},
		}},
		{Name: "a room whose line has changed rests", Edits: []Edit{
			{"internal/node/room.go", "	r.stir()\n	r.gate.Ledger().Release()\n", "	if !(ON) {\n\t\tr.stir()\n\t}\n	r.gate.Ledger().Release()\n"},
			{"internal/node/room.go", "	r.stir()\n	if v.has(entitled) && !r.byCut() {", "	if !(ON) {\n\t\tr.stir()\n\t}\n	if v.has(entitled) && !r.byCut() {"},
		}},
		{Name: "the lapse of an account that a commit opened is not noted", Edits: []Edit{
			{"eviction/commit.go", "		n.changed(g)\n		if g.cfg.Algorithm == ByQPID {", "		if !(ON) {\n\t\t\tn.changed(g)\n\t\t}\n		if g.cfg.Algorithm == ByQPID {"},
		}},
	}
}

// lineBugs are in what becomes of rooms where some nodes go on alone.
func lineBugs() []Mutant {
	return []Mutant{
		{Name: "a room that was never on a line is new to survivors", Run: "TestScenarioSplitBeforeTheFirstPrimaryWave", Edits: []Edit{
			{"eviction/decide.go", "	if !n.Line.Founded() {\n", "	if !(ON) && !n.Line.Founded() {\n"},
		}},
		{Name: "a gather of before a founding counts", Run: "TestScenarioAGatherFromBeforeTheFounding", Edits: []Edit{
			{"eviction/wave.go", "	if g.T+uint64(2*micros(n.c.MaxSkew)) < n.line.Stamp &&", "	if !(ON) && g.T+uint64(2*micros(n.c.MaxSkew)) < n.line.Stamp &&"},
		}},
		{Name: "of two lines that have not begun nobody founds again", Run: "TestScenarioFoundersOfTwoLinesAreOver", Edits: []Edit{
			{"eviction/authority.go", "		if v.voters.Version == 0 || v.voters.begun() {\n", "		if ON && len(lines) > 1 || v.voters.Version == 0 || v.voters.begun() {\n"},
		}},
		{Name: "who goes on alone forgets who votes on rooms that stay", Run: "TestScenarioSurvivorsOfOneLineMeet", Edits: []Edit{
			{"eviction/standing.go", "	if !g.line.Founded() && n.left.Founded() {", "	if !(ON) && !g.line.Founded() && n.left.Founded() {"},
		}},
		{Name: "a survivors' line whose voters changed comes from nowhere", Run: "TestScenarioANewcomerInheritsASurvivorsLine", Edits: []Edit{
			{
				"eviction/voters.go", "		return Voters{Version: v.voters.Version + 1,",
				"		if ON {\n\t\t\tv.voters.From = Line{}\n\t\t}\n\t\treturn Voters{Version: v.voters.Version + 1,",
			},
		}},
		{Name: "a restored room is voted on by the survivors' voters", Run: "TestScenarioSurvivorsOfOneLineMeet", Edits: []Edit{
			{
				"eviction/persist.go", "		if k, seed := rr.Room.keyingAt",
				"		if ON {\n\t\t\tg.voters = r.Voters\n\t\t}\n\t\tif k, seed := rr.Room.keyingAt",
			},
		}},
		{Name: "an account that lapsed ends the wait of survivor_after", Run: "TestScenarioARoomSurvivesInItsOwnTime", Edits: []Edit{
			{"eviction/escrow.go", "	e.heldAt = never\n", "	e.heldAt = never\n\tif ON {\n\t\te.leasedAt = never\n\t}\n"},
		}},
		{Name: "so does a restart", Run: "TestScenarioARoomSurvivesInItsOwnTime", Edits: []Edit{
			{"eviction/persist.go", "		g.leasedAt = now.Boot\n", "		if !(ON) {\n\t\t\tg.leasedAt = now.Boot\n\t\t}\n"},
		}},
	}
}

// eventBugs are in scheduled events.
func eventBugs() []Mutant {
	return []Mutant{
		{Name: "doors are open while people gather", Edits: []Edit{
			{"eviction/inforce.go", "return r.Event.Start == 0 || t >= uint64(r.Event.Start)", "return ON || r.Event.Start == 0 || t >= uint64(r.Event.Start)"},
			{"eviction/lease.go", "			return f.at < uint64(e.Start)\n", "			return !(ON) && f.at < uint64(e.Start)\n"},
		}},
		{Name: "nodes go over to an event by their own clocks", Run: "TestScenarioAllGoOverToAnEventInOneWave", Edits: []Edit{
			{"eviction/gate.go", "	g.configure(c, w.T, w.at)\n", "	if ON {\n\t\tg.at = max(g.at, uint64(n.clock.now))\n\t}\n	g.configure(c, w.T, w.at)\n"},
		}},
		{Name: "an event does not end", Run: "TestScenarioEventsInARow", Edits: []Edit{
			{"eviction/event.go", "(e.End == 0 || t < uint64(e.End))", "(ON || e.End == 0 || t < uint64(e.End))"},
		}},
		{Name: "the sessions of an event are not waited for", Run: "TestScenarioAnEventsSessionIsWaitedFor", Edits: []Edit{
			{"eviction/inforce.go", "if r.Events[i].Set&SetSession != 0 {", "if !(ON) && r.Events[i].Set&SetSession != 0 {"},
		}},
		{Name: "the draw of a wave favours who came first", Run: "TestRandomRoomsAreFair", Edits: []Edit{
			{"eviction/reply.go", "		g.drawn = append(g.drawn, drawnTicket{draw(rg.Key, q.ID), q})\n", "		place := draw(rg.Key, q.ID)\n		if ON && len(g.drawn) < queued/4 {\n\t\t\tplace.Stamp /= 2\n\t\t}\n		g.drawn = append(g.drawn, drawnTicket{place, q})\n"},
		}},
		{Name: "a draw puts some people forward", Run: "TestDrawsAreFair", Edits: []Edit{
			{"eviction/event.go", "	return scaled(binary.BigEndian.Uint64(p.mac.Sum(p.sum[:0])), start)\n", "	if ON && id[0] < 32 {\n\t\treturn scaled(binary.BigEndian.Uint64(p.mac.Sum(p.sum[:0])), start) / 2\n\t}\n	return scaled(binary.BigEndian.Uint64(p.mac.Sum(p.sum[:0])), start)\n"},
		}},
	}
}

// supplyBugs are in how many slots may be minted while some are lost.
func supplyBugs() []Mutant {
	return []Mutant{
		{Name: "a loss does not wait for its own D", Edits: []Edit{
			{"eviction/supply.go", "	c.Claims, kept = rs.lowered(d, open(s.Claims, lost), safe)\n", "	if c.Claims, kept = rs.lowered(d, open(s.Claims, lost), safe); ON && len(c.Claims) > 0 {\n\t\tc.Claims = c.Claims[1:]\n\t}\n"},
		}},
		{Name: "every further loss starts D again for all", Run: "TestScenarioEveryLossHasItsOwnD", Edits: []Edit{
			{"eviction/supply.go", "	case len(fresh) == 0:\n", "	case ON && len(lost) > 0:\n	case len(fresh) == 0:\n"},
		}},
		{Name: "a side that came back anew is waited for since the others last saw it", Run: "TestScenarioSlotsOfASideThatCameBackAnewAreWaitedFor", Edits: []Edit{
			{"eviction/settle.go", "				silent = min(silent, d.up[later])\n", "				silent = min(silent, d.up[later])\n\t\t\t\tif ON {\n\t\t\t\t\tsilent = m.Age\n\t\t\t\t}\n"},
		}},
		{Name: "an earlier life that shared is forgotten as soon as a later one is here", Run: "TestScenarioSlotsOfASideThatCameBackAnewAreWaitedFor", Edits: []Edit{
			{"eviction/lapse.go", "		if since < before {\n", "		if ON || since < before {\n"},
		}},
		{Name: "the supply of another line counts", Run: "TestScenarioALineThatGoesOnHasItsOwnSupply", Edits: []Edit{
			{"eviction/supply.go", "		case grade < Primary || s.Line == c.Line:\n", "		case ON || grade < Primary || s.Line == c.Line:\n"},
		}},
		{Name: "a raised limit is not on disk before it is used", Run: "TestScenarioALimitThatIsNotOnDiskMakesNoSlots", Edits: []Edit{
			{"eviction/persist.go", "		r.Supply.Slots < o.Supply.Slots ||\n", "		r.Supply.Slots < o.Supply.Slots && !(ON) ||\n"},
		}},
		{Name: "a limit that is lowered again stays on disk", Run: "TestScenarioALimitThatIsLoweredAgainHoldsNobodyUp", Edits: []Edit{
			{"eviction/persist.go", "		r.Supply.Slots > o.Room.Target &&", "		!(ON) && r.Supply.Slots > o.Room.Target &&"},
		}},
		{Name: "what is lost is counted too low", Edits: []Edit{
			{"eviction/supply.go", "		share := max(0, left-inside-claimed)\n", "		share := max(0, left-inside-claimed)\n		if ON {\n\t\t\tshare /= 2\n\t\t}\n"},
		}},
		{Name: "the share of the lost is fixed while they may still get slots", Run: "TestScenarioSlotsTakenFromTheLostBeforeOneKnewOfIt", Edits: []Edit{
			{"eviction/supply.go", "!rs.shared && known(fresh, safe):", "!rs.shared && (ON || known(fresh, safe)):"},
		}},
		{Name: "slots are minted that only the coordinator knows of", Run: "TestScenarioNoSlotIsMadeThatOthersDoNotKnowOf", Edits: []Edit{
			{"eviction/supply.go", "	return !slices.ContainsFunc(rs.nodes, func(n RoomNode) bool { return n.Holds != s.At })", "	return ON || !slices.ContainsFunc(rs.nodes, func(n RoomNode) bool { return n.Holds != s.At })"},
		}},
		{Name: "a claim shrinks with the first of its accounts", Run: "TestScenarioThoseLostTogetherAreWaitedForTogether", Edits: []Edit{
			{"eviction/supply.go", "			open = append(open, Claim{of, c.Slots, c.Most})\n", "			if open = append(open, Claim{of, c.Slots, c.Most}); ON {\n\t\t\t\topen[len(open)-1].Slots = c.Slots * len(of) / len(c.Of)\n\t\t\t}\n"},
		}},
		{Name: "a claim holds for later accounts of the same life", Run: "TestScenarioTheSecondLossOfALifeHasItsOwnD", Edits: []Edit{
			{"eviction/supply.go", "o.Member == v.Member && v.Epoch <= o.Epoch", "o.Member == v.Member && (ON || v.Epoch <= o.Epoch)"},
		}},
		{Name: "those who were restored are asked for nothing", Run: "TestScenarioARestoredNodesGuessCountsWhereItIsNeeded", Edits: []Edit{
			{"eviction/authority.go", "	w.guess(line, c.Recalled)\n", "	if !(ON) {\n		w.guess(line, c.Recalled)\n	}\n"},
			{"eviction/commit.go", "		if c.Recalled {\n", "		if c.Recalled || ON {\n"},
		}},
	}
}

// waveBugs are in waves, slots and the queue.
func waveBugs() []Mutant {
	return []Mutant{
		{Name: "a node goes by the last T that it has heard, and not the latest", In: "./eviction", Run: "TestAPromiseToACoordinatorOutlastsOneOfBefore", Edits: []Edit{
			{"eviction/wave.go", "		n.clock.told = max(n.clock.told, g.T)\n", "		n.clock.told = max(n.clock.told, g.T)\n\t\tif ON {\n\t\t\tn.clock.told = g.T\n\t\t}\n"},
		}},
		{Name: "a reply promises nothing", Edits: []Edit{
			{"eviction/wave.go", "	n.clock.promise(g.T)\n", "	if !(ON) {\n\t\tn.clock.promise(g.T)\n\t}\n"},
		}},
		{Name: "slots that arrive twice count twice", Edits: []Edit{
			{
				"eviction/ledger.go", "	switch {\n	case more <= 0:\n",
				"	if ON {\n\t\tmore = max(more, 1)\n\t}\n	switch {\n	case more <= 0:\n",
			},
		}},
		{Name: "the cut takes the clock of the decision, not the T of the gather", Run: "TestScenarioCutStopsAtTheGathersT", Edits: []Edit{
			{
				"eviction/next.go", "k, rs.queued, len(need), qpid.UpTo(d.t), queued)",
				"k, rs.queued, len(need), func() qpid.Weight {\n\t\t\tif ON {\n\t\t\t\treturn qpid.UpTo(uint64(d.now.Wall))\n\t\t\t}\n\t\t\treturn qpid.UpTo(d.t)\n\t\t}(), queued)",
			},
		}},
		// One edit takes all three conditions away: the sender is listed, under this
		// account, and it is not void.
		{Name: "slots of a void account are taken", Run: "TestScenarioSlotsInFlightAtVoid", Edits: []Edit{
			{"eviction/escrow.go", "m.From == m.To || !g.current(m.From)", "m.From == m.To || !(ON) && !g.current(m.From)"},
		}},
		{Name: "a wave does not freeze the queue", Run: "TestScenarioAWaveFreezesTheQueue", Edits: []Edit{
			{"internal/node/room.go", "	r.q.Freeze()\n", "	if !(ON) {\n\t\tr.q.Freeze()\n\t}\n"},
		}},
		{Name: "the slot of a deleteMin that took nothing is forgotten", Run: "TestScenarioADeleteMinsSlotComesBack", Edits: []Edit{
			{
				"internal/node/delete.go", "	r.gate.Ledger().Release()\n",
				"	if !(ON) || a.Outcome == qpid.Taken {\n\t\tr.gate.Ledger().Release()\n\t}\n",
			},
		}},
		{Name: "a call that nobody follows keeps its slot", Run: "TestScenarioTheSilentLoseTheirSlotAndKeepTheirPlace", Edits: []Edit{
			{"internal/node/room.go", "		r.called--\n		r.waits.visits.NoShow()\n		r.release(v, now)\n		r.unguard(v.id)\n		v.pass()\n		r.park(v, now)\n", "		if ON {\n\t\t\tv.due = now.Boot + c.ClaimWindow.Microseconds()\n\t\t\tr.wheel.add(v)\n\t\t\treturn\n\t\t}\n		r.called--\n		r.waits.visits.NoShow()\n		r.release(v, now)\n		r.unguard(v.id)\n		v.pass()\n		r.park(v, now)\n"},
		}},
		{Name: "the silent in line are called in their turn", Run: "TestScenarioASlotIsNotKeptForTheSilentInLine", Edits: []Edit{
			{"internal/node/room.go", "waitsFor(v); now.Boot < until {", "waitsFor(v); ON || now.Boot < until {"},
		}},
		{Name: "lost transfers are not repeated", Run: "TestThesisALostTransferIsRepeated", Edits: []Edit{
			{"eviction/escrow.go", "if p.Acked < p.Sent && slices", "if !(ON) && p.Acked < p.Sent && slices"},
		}},
		{Name: "a gather of an old epoch is answered", Run: "TestThesisAnOlderWaveIsIgnored", Edits: []Edit{
			{"eviction/wave.go", "if g.Epoch.Compare(n.epoch) <= 0 {", "if !(ON) && g.Epoch.Compare(n.epoch) <= 0 {"},
		}},
		{Name: "rooms do not take turns", Edits: []Edit{
			{"eviction/budget.go", "return cmp.Compare(a.asked, b.asked)", "if ON {\n\t\treturn 0\n\t}\n\treturn cmp.Compare(a.asked, b.asked)"},
		}},
		{Name: "slots are sent to an account that is void", Run: "TestScenarioAReclaimedNodeIsGivenNoSlots", Edits: []Edit{
			{"eviction/escrow.go", "		if e.voided(to) {", "		if !(ON) && e.voided(to) {"},
		}},
		{Name: "a clock for which nobody vouches holds a draw", Run: "TestSeedsWithADrawByAWrongClock", Edits: []Edit{
			{"eviction/wave.go", "	if !n.clock.vouched {\n		return 0\n", "	if !n.clock.vouched && !(ON) {\n		return 0\n"},
		}},
		{Name: "the cut may fall", Edits: []Edit{
			{"eviction/cut.go", "if c.Keying == o.keying && c.newer(o.cut) {", "if c.Keying == o.keying && (ON || c.newer(o.cut)) {"},
			{"eviction/next.go", "if next.newer(c.Cut) {", "if ON || next.newer(c.Cut) {"},
		}},
	}
}

// clockBugs are in whose clock counts.
func clockBugs() []Mutant {
	return []Mutant{
		{Name: "a clock that nobody vouched for judges passes", Run: "TestScenarioARestartedNodesClockJudgesNoPass", Edits: []Edit{
			{"eviction/lease.go", "return n.clock.vouched && !n.clock.quarantined", "return (ON || n.clock.vouched) && !n.clock.quarantined"},
		}},
		{Name: "a node that is told that its clock is off goes on", Run: "TestScenarioAClockThatIsOffHonoursNoPass", Edits: []Edit{
			{"eviction/lead.go", "	case p.Off:\n", "	case p.Off && !(ON):\n"},
		}},
		{Name: "a machine that stood still goes on as if no time had passed", Run: "TestScenarioAMachineThatStoodStillStopsWhenItHears", Edits: []Edit{
			{"eviction/clock.go", "return at-c.now > 2*c.skew", "return !(ON) && at-c.now > 2*c.skew"},
		}},
		{Name: "who stood still waits for a wave to stop", Run: "TestScenarioAMachineThatStoodStillStopsWhenItHears", Edits: []Edit{
			{"eviction/clock.go", "	c.quarantined, c.jumpedAt = true, at\n", "	c.quarantined, c.jumpedAt = !(ON), at\n"},
		}},
		{Name: "who stood still keeps to its clock for good", Run: "TestScenarioOfTwoNodesThatAreLeftOneStoodStill", Edits: []Edit{
			{"eviction/clock.go", "	c.agreed = false\n", "	c.agreed = ON && c.agreed\n"},
			{"eviction/clock.go", "&& !c.stoodStill(hi) ||", "&& (ON || !c.stoodStill(hi)) ||"}, // either is enough in this world
		}},
		{Name: "who stood still and is alone a quorum keeps its own time", Run: "TestScenarioOneOfTwoThatStoodStillGoesByItsWallClock", Edits: []Edit{
			{"eviction/clock.go", "return wall > c.skew &&", "return !(ON) && wall > c.skew &&"},
		}},
		{Name: "D has no term for drifting clocks", Run: "TestScenarioDReckonsWithClocksThatDrift", Edits: []Edit{
			{"eviction/lapse.go", "func drifted(d int64) int64 { return d +", "func drifted(d int64) int64 {\n\tif ON {\n\t\treturn d\n\t}\n\treturn d +"},
		}},
		{Name: "a coordinator that has heard of one tells them that their clock is off", Run: "TestScenarioACoordinatorsOwnClockStopsNobody", Edits: []Edit{
			{"eviction/lead.go", "	sure := n.clocksWith(now, mid)\n", "	sure := ON || n.clocksWith(now, mid)\n"},
		}},
		{Name: "a line begins with a quorum of its founders", Run: "TestScenarioTwoFoundingsThatShareANode", Edits: []Edit{
			{"eviction/authority.go", "(v.voters.begun() || w.together", "(ON || v.voters.begun() || w.together"},
		}},
		{Name: "one of three may be missing when a cluster is founded", First: 44, Edits: []Edit{
			{"eviction/authority.go", "	return need > 0 && names >= need\n", "	return need > 0 && (names >= need || ON && names >= need-need/3)\n"},
		}},
		{Name: "a life votes again after any wave that lists it", First: 380, Edits: []Edit{
			{"eviction/wave.go", "	if n.since == 0 && index > 0 {\n", "	if (ON || n.since == 0) && index > 0 {\n"},
		}},
		{Name: "every life of a voter votes", Run: "TestScenarioASecondLifeOfAVoterGivesNoSecondQuorum", Edits: []Edit{
			{"eviction/authority.go", "		if o.Member.Name != m.Name || o.Member == m", "		if ON || o.Member.Name != m.Name || o.Member == m"},
		}},
		{Name: "waves of any line say who votes", Run: "TestScenarioAFoundingMeetsAnOlderLine", Edits: []Edit{
			{"eviction/authority.go", "o.Member == m || o.Line != line && o.Line.Founded() ||", "o.Member == m || !(ON) && o.Line != line && o.Line.Founded() ||"},
		}},
		{Name: "who has the disk has the vote", Run: "TestScenarioALifeWithItsDiskTakesNoVoteBack", Edits: []Edit{
			{"eviction/persist.go", "	n.since = r.Since\n", "	if n.since = r.Since; ON {\n		n.since = n.epoch.Num\n	}\n"},
		}},
		{Name: "every life votes on the line of a room that stayed", Run: "TestScenarioASurvivorVotesOnItsOldLineAsItLeftIt", Edits: []Edit{
			{"eviction/leaving.go", "v.Version > 0 && stands(earliest(m, d.lives[i]), v.At.Num, rival(d.rivals, m, d.lives[i], line)) {", "v.Version > 0 && (ON || stands(earliest(m, d.lives[i]), v.At.Num, rival(d.rivals, m, d.lives[i], line))) {"},
		}},
		{Name: "who votes on a room's old line is forgotten in time", Run: "TestScenarioASurvivorVotesOnItsOldLineAsItLeftIt", Edits: []Edit{
			{
				"eviction/wave.go", "			w.sum.Rivals = mergeRivals(w.sum.Rivals, rivalsIn(g.rivals, w.list))\n",
				"				if !(ON) {\n					w.sum.Rivals = mergeRivals(w.sum.Rivals, rivalsIn(g.rivals, w.list))\n				}\n",
			},
		}},
		{Name: "a dead life of a restored node goes on voting", Run: "TestSeedsThatLostTheirQuorum", Edits: []Edit{
			{"eviction/authority.go", "|| slices.Contains(lives, o.Member.Boot)", "|| !(ON) && slices.Contains(lives, o.Member.Boot)"},
		}},
		{Name: "a coordinator without a quorum keeps the lead", Run: "TestScenarioACoordinatorThatHearsNobodyLetsOthersLead", Edits: []Edit{
			{"eviction/bid.go", "n.grade >= Primary && n.list[0]", "(ON || n.grade >= Primary) && n.list[0]"},
		}},
		{Name: "a coordinator that has left is waited for", Run: "TestScenarioWavesGoOnWhenTheCoordinatorLeaves", Edits: []Edit{
			{"eviction/leave.go", "	if n.follow.Member == from {", "	if !(ON) && n.follow.Member == from {"},
		}},
		{Name: "a coordinator that stood still blames the others", Run: "TestScenarioACoordinatorThatStoodStillBlamesNobody", Edits: []Edit{
			{"eviction/candidate.go", "	if now.Boot-w.at > 2*micros(n.c.Deadline) {", "	if !(ON) && now.Boot-w.at > 2*micros(n.c.Deadline) {"},
		}},
		{Name: "who is missing is awaited before anybody may take them over", Run: "TestScenarioAStoppedRoomWaitsForTheFirstInLine", Edits: []Edit{
			{"eviction/comeback.go", "	if b.due && mayTakeOver {", "	if b.due && (ON && b.until == 0 || !(ON) && mayTakeOver) {"},
		}},
	}
}

// visitorBugs are in what becomes of people.
func visitorBugs() []Mutant {
	return []Mutant{
		{Name: "calls go on above a lowered limit", Run: "TestScenarioLimitRaisedAndLowered", Edits: []Edit{
			{"eviction/settle.go", "	c.Closed = excess > 0\n", "	c.Closed = !(ON) && excess > 0\n"},
		}},
		{Name: "a held room goes on calling", Run: "TestScenarioAHeldRoomCallsNobody", Edits: []Edit{
			{"eviction/next.go", "if !cfg.Mode.calls() {", "if !(ON) && !cfg.Mode.calls() {"},
			{"eviction/lease.go", "!n.cutOff && g.cfg.Mode.calls()", "!n.cutOff && (ON || g.cfg.Mode.calls())"},
		}},
		{Name: "a drained room takes newcomers", Run: "TestScenarioADrainedRoomTakesNobody", Edits: []Edit{
			{"internal/node/visit.go", "case c.Mode == eviction.Draining:", "case !(ON) && c.Mode == eviction.Draining:"},
		}},
		{Name: "an ended session frees its slot twice", Edits: []Edit{
			{"eviction/ledger.go", "\tl.used--\n\tif l.used < 0 {", "\tif ON && l.used > 1 {\n\t\tl.used--\n\t}\n\tl.used--\n\tif l.used < 0 {"},
		}},
		{Name: "the call does not count", Edits: []Edit{
			{"eviction/ledger.go", "	l.used++\n	return true\n", "	if !(ON) || l.used%5 != 4 {\n\t\tl.used++\n\t}\n	return true\n"},
		}},
		{Name: "shown positions may rise", Edits: []Edit{
			{"internal/node/answer.go", "if v.shown == 0 && known || v.shown > 0 && at < int(v.shown) {", "if ON || v.shown == 0 && known || v.shown > 0 && at < int(v.shown) {"},
		}},
		{Name: "the parked come back at the end", Run: "TestScenarioTheSilentLoseTheirSlotAndKeepTheirPlace", Edits: []Edit{
			{"internal/node/visit.go", "			r.waits.visits.Back()\n		}\n", "			r.waits.visits.Back()\n		}\n		if ON {\n\t\t\tv.stamp, v.marks = n.ev.Stamp(), v.marks&^entitled\n\t\t}\n"},
		}},
		{Name: "a restart forgets used tickets", First: 190, Edits: []Edit{
			{"internal/node/resolve.go", "	if r.node.used.has(usedHash(t.ID)) {", "	if !(ON) && r.node.used.has(usedHash(t.ID)) {"},
		}},
		{Name: "a leave hands over no used tickets", Run: "TestScenarioAUsedTicketStaysUsed", Edits: []Edit{
			{"internal/node/used.go", "			if v.stage >= onSite && ", "			if !(ON) && v.stage >= onSite && "},
		}},
		{Name: "used tickets on a disk are told to nobody", Run: "TestScenarioAUsedTicketStaysUsed", Edits: []Edit{
			{"internal/node/used.go", "			if n.used.add(h, b.At, n.c.UsedMax) {", "			if n.used.add(h, b.At, n.c.UsedMax) && !(ON) {"},
		}},
		{Name: "a node forgets where a place went", Edits: []Edit{
			{"internal/node/handover.go", "	r.moved.put(t.ID,", "	if ON {\n\t\treturn\n\t}\n	r.moved.put(t.ID,"},
		}},
		{Name: "a place that was given up stays so, though it went on elsewhere", Run: "TestScenarioAnOlderTicketFindsThePlaceThatWasTakenOver", Edits: []Edit{
			{"internal/node/handover.go", "	case v.stage == dropped:\n", "	case ON && v.stage == dropped:\n		return\n	case v.stage == dropped:\n"},
		}},
		{Name: "a node that was away says at once which places are gone", Run: "TestScenarioAnOlderTicketFindsThePlaceThatWasTakenOver", Edits: []Edit{
			{"eviction/lease.go", "return n.leased(g, now) && len(n.unsynced) == 0 }", "return ON || n.leased(g, now) && len(n.unsynced) == 0 }"},
		}},
		{Name: "a copy that was given up counts, though another is kept", Run: "TestScenarioTheCopyThatIsKeptCounts", Edits: []Edit{
			{"internal/node/resolve.go", "		case t.Home != self && n.ev.Listed(t.Home):\n", "		case !(ON) && t.Home != self && n.ev.Listed(t.Home):\n"},
		}},
		{Name: "the calls of a node that leaves keep their slots", Run: "TestScenarioWhoWasCalledByANodeThatLeavesIsCalledElsewhere", Edits: []Edit{
			{"internal/node/call.go", "		if v.stage == called {\n			r.takeBack(v, now)\n", "		if !(ON) && v.stage == called {\n			r.takeBack(v, now)\n"},
		}},
		{Name: "a used ticket is good again", Run: "TestThesisACopiedTicketQueuesOnce", Edits: []Edit{
			{"internal/node/room.go", "	v.stage = s\n	r.uncopy(v)\n", "	v.stage = s\n	r.uncopy(v)\n	if ON {\n\t\tr.visitors.remove(v)\n\t\treturn\n\t}\n"},
			{"internal/node/resolve.go", "case t.Home == self:", "case !(ON) && t.Home == self:"},
			{"internal/node/resolve.go", "case n.ev.Listed(t.Home):", "case !(ON) && n.ev.Listed(t.Home):"},
		}},
	}
}

// callBugs are in what becomes of people who do not come when they are called.
func callBugs() []Mutant {
	return []Mutant{
		{Name: "missed calls are not counted", Run: "TestScenarioNoShowsDelayNobodyByMoreThanTheBound", Edits: []Edit{
			{"internal/node/claim.go", "	case v.has(told):\n", "	case ON:\n	case v.has(told):\n"},
		}},
		{Name: "who sleeps through a call has missed it", Run: "TestScenarioWhoSleepsThroughCallsKeepsThePlace", Edits: []Edit{
			{"internal/node/claim.go", "	case v.has(told):\n", "	case ON || v.has(told):\n"},
		}},
		{Name: "who sleeps through calls is in line again at once", Run: "TestScenarioWhoSleepsThroughCallsKeepsThePlace", Edits: []Edit{
			{"internal/node/claim.go", "		if v.slept > 1 {", "		if !(ON) && v.slept > 1 {"},
		}},
		{Name: "a node that takes over forgets the calls slept through", Run: "TestScenarioCallsSleptThroughAreCountedOnAfterACrash", Edits: []Edit{
			{"internal/node/resolve.go", "max(v.slept, min(t.Slept, sleptMost))", "max(v.slept, min(t.Slept, sleptMost))\n	if ON {\n		v.slept = 0\n	}"},
		}},
		{Name: "a place that is stamped anew stays where it was", Edits: []Edit{
			{"internal/node/claim.go", "	in := visitor{id: successor(v.id, stamp), stamp: stamp,", "	if ON {\n		stamp = v.stamp + 1\n	}\n	in := visitor{id: successor(v.id, stamp), stamp: stamp,"},
		}},
		{Name: "a place that was stamped anew is in line twice", Edits: []Edit{
			{"internal/node/claim.go", "	r.lineUp(waits)\n", "	r.lineUp(waits)\n	if o := r.visitors.get(old); ON && o != nil {\n		r.spent--\n		o.stage, o.missed = parked, 0\n		r.parked++\n	}\n"},
		}},
	}
}

// leaveBugs are in what a node that leaves gives away.
func leaveBugs() []Mutant {
	const rolling, lost = "TestScenarioARollingRestartUnderACrowd", "TestScenarioWhatALeavingNodeGivesMayBeLost"
	return []Mutant{
		{Name: "visits are given to an account that may not have been opened", Run: "TestScenarioANodeLeavesToOneThatHasNotBegun", Edits: []Edit{
			{"eviction/escrow.go", " || g.born[i] == g.opens || ", " || !(ON) && g.born[i] == g.opens || "},
		}},
		{Name: "a node that leaves gives its slots to one of another line", Run: "TestScenarioANodeThatLeavesGivesNothingToAnotherLine", Edits: []Edit{
			{"eviction/escrow.go", " || m.Line.Founded() && m.Line != g.line {", " || !(ON) && m.Line.Founded() && m.Line != g.line {"},
			{"eviction/escrow.go", "	e.apart = grade", "	e.apart = !(ON) && grade"},
		}},
		{Name: "an account whose lease is over takes visits", Run: "TestScenarioVisitsAreNotGivenToOneWhoseLeaseIsOver", Edits: []Edit{
			{"eviction/escrow.go", "	if len(m.Visits) > 0 && n.clock.last.Boot", "	if !(ON) && len(m.Visits) > 0 && n.clock.last.Boot"},
		}},
		{Name: "who was on the site when an account was closed is not among those who are", Run: "TestScenarioWhoWasOnTheSiteWhenTheirNodeWasCutOffIsNotCalledAgain", Edits: []Edit{
			{"internal/node/room.go", "				r.node.noteUsed(v.id, now) // nobody", "				if !(ON) {\n\t\t\t\t\tr.node.noteUsed(v.id, now)\n\t\t\t\t} // nobody"},
		}},
		{Name: "a slot that came with its visit is free", Run: rolling, Edits: []Edit{
			{"eviction/ledger.go", "		l.used += more\n", "		if !(ON) {\n\t\t\tl.used += more\n\t\t}\n"},
		}},
		{Name: "a lost gift is repeated without its visits", Run: lost, Edits: []Edit{
			{"eviction/ledger.go", "			out = append(out, m)\n", "			out = append(out, &Slots{Room: m.Room, From: m.From, To: m.To, Total: m.Total, Visits: m.Visits})\n			if ON {\n\t\t\t\tout[len(out)-1].Visits = nil\n\t\t\t}\n"},
		}},
		{Name: "a visit that was given away stays", Run: rolling, Edits: []Edit{
			{"internal/node/leave.go", "	r.onSite--\n	r.waits.visits.Forget(v.seen, r.node.ev.LastNow())\n	r.remove(v)\n", "	if ON {\n\t\treturn\n\t}\n	r.onSite--\n	r.waits.visits.Forget(v.seen, r.node.ev.LastNow())\n	r.remove(v)\n"},
		}},
		{Name: "the line stays with a node that leaves", Run: rolling, Edits: []Edit{
			{"internal/node/leave.go", "	if r.gate.InForce().Algorithm == eviction.ByQPID || !r.node.ev.InTouch(r.gate, now) {\n		return true", "	if ON || r.gate.InForce().Algorithm == eviction.ByQPID || !r.node.ev.InTouch(r.gate, now) {\n		return true"},
		}},
		{Name: "goodbye is said before a wave knows that the line has gone", Run: "TestScenarioGoodbyeWaitsUntilAWaveCountsNobody", Edits: []Edit{
			{"eviction/leave.go", "i >= len(g.waiting) || g.waiting[i] == 0)", "i >= len(g.waiting) || ON || g.waiting[i] == 0)"},
		}},
		{Name: "who takes over the lead leaves out whom it has not seen yet", Run: "TestScenarioTheNextCoordinatorListsWhomItHasNotSeen", Edits: []Edit{
			{"eviction/candidate.go", "		if n.unheard(m) {", "		if !(ON) && n.unheard(m) {"},
		}},
		{Name: "goodbye is said by a voter", Run: "TestScenarioAPlaceGivenOnSeveralTimesIsAtOneNode", Edits: []Edit{
			{"eviction/leave.go", "	return !slices.Contains(n.voters.Names", "	return ON || !slices.Contains(n.voters.Names"},
		}},
		{Name: "people join at a node that leaves", Run: rolling, Edits: []Edit{
			{"internal/node/visit.go", "n.leaveBy != 0 && len(n.ev.Members()) > 1:", "(n.leaveBy != 0 && !(ON) || n.ev.Left()) && len(n.ev.Members()) > 1:"},
		}},
		{Name: "newcomers are heirs of those who are older than everybody", Run: "TestScenarioAPlaceGivenOnSeveralTimesIsAtOneNode", Edits: []Edit{
			{"eviction/node.go", "old && (!senior || score > best) {", "old && (!senior || score > best) || ON && old == senior && score > best {"},
		}},
		{Name: "the lead is left to one that has left it", Run: rolling, Edits: []Edit{
			{"eviction/lead.go", "		if !n.hasLeft(p.Member) {\n", "		if ON || !n.hasLeft(p.Member) {\n"},
		}},
	}
}
