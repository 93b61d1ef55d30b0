package mutants

const bothLost = "TestScenarioALostNodeWhoseHeirsAreLostIsWaitedFor"

// claimBugs are in what the accounts of lost nodes can still use: who keeps visits, and
// what follows from that.
func claimBugs() []Mutant {
	const (
		comesBack = "TestScenarioALostNodesFreeSlotsComeBackWithItsLease"
		hostile   = "TestScenarioWhatIsMadeAgainOfALostNodeIsUsedByNobody"
	)
	return []Mutant{
		{Name: "a pass is given before an heir keeps the visit", Run: hostile, Edits: []Edit{
			{"internal/node/guard.go", "	return r.gate.Promised() && r.guardedUntil(id)", "	return r.gate.Promised() && !(ON) && r.guardedUntil(id)"},
			{"internal/node/guard.go", "	until := v.expires\n	if r.gate.Promised() {", "	until := v.expires\n	if r.gate.Promised() && !(ON) {"},
		}},
		{Name: "a pass is good for longer than an heir keeps the visit", Run: hostile, Edits: []Edit{
			{"internal/node/guard.go", "		until = min(until, r.guardedUntil(v.id))", "		if g := r.guardedUntil(v.id); g == 0 || !(ON) {\n			until = min(until, g)\n		}"},
			{"internal/node/guard.go", "return g.out > g.kept }", "return g.out > g.kept && !(ON && g.kept > 0) }"},
			{"internal/node/guard.go", "g.said-until < session/2 ||", "(g.said == 0 || !(ON) && g.said-until < session/2) ||"},
		}},
		{Name: "an heir says that it keeps visits and keeps none", Run: hostile, Edits: []Edit{
			{"internal/node/keptvisits.go", "		k.until[v.ID] = max(", "		if ON {\n			break\n		}\n		k.until[v.ID] = max("},
		}},
		{Name: "an heir forgets visits with the lane", Run: hostile, Edits: []Edit{
			{"internal/node/kept.go", "		case !next:\n", "		case !next:\n			if ON {\n				n.visitsKept = nil\n			}\n"},
		}},
		{Name: "an heir forgets a visit of a lost node when somebody asks with its pass", Run: hostile, Edits: []Edit{
			{"internal/node/session.go", "	if !r.node.ev.MayAdopt(r.gate, p.Home, now) {", "	if ON {\n		r.node.dropVisit(r, p.Home.Member, p.ID)\n	}\n	if !r.node.ev.MayAdopt(r.gate, p.Home, now) {"},
		}},
		{Name: "visits of which a pass is out count as kept when they are on their way to an heir", Run: hostile, Edits: []Edit{
			{"internal/node/guard.go", "r.unsure || r.broken != nil || r.node.leaveBy != 0 || r.bareVisits > 0 ||", "r.unsure || r.broken != nil || r.node.leaveBy != 0 || r.bareVisits > 0 && !(ON) ||"},
		}},
		{Name: "slots are made again though an heir is lost, too", Run: bothLost, Edits: []Edit{
			{"eviction/cover.go", "s.Epoch >= rs.covers[i].At }", "s.Epoch >= rs.covers[i].At && !(ON) }"},
		}},
		{Name: "slots of a lost node are made again while its lease lasts", Run: hostile, Edits: []Edit{
			{"eviction/cover.go", "		case over && all:", "		case (over || ON) && all:"},
		}},
		{Name: "nothing of a lost node is made again before D", Run: comesBack, Edits: []Edit{
			{"eviction/cover.go", "d.leaseOver(c) && !rs.shared;", "d.leaseOver(c) && !rs.shared && !(ON);"},
		}},
		{Name: "a promise is over before a wave has carried that", Run: hostile, Edits: []Edit{
			{"eviction/cover.go", "	if !covered {\n		return NotCovered", "	if !covered {\n		g.promised = g.promised && !(ON)\n		return NotCovered"},
		}},
		{Name: "a node takes in visits that nobody keeps", Run: hostile, Edits: []Edit{
			{"eviction/escrow.go", "if len(m.Visits) > 0 && (g.promised ||", "if !(ON) && len(m.Visits) > 0 && (g.promised ||"},
		}},
		{Name: "a node gives visits away that it has promised to keep", Run: hostile, Edits: []Edit{
			{"eviction/escrow.go", "|| g.promised {", "|| g.promised && !(ON) {"},
			{"internal/node/leave.go", "	if !r.gate.Promised() && r.mayGiveVisits() {", "	if (!r.gate.Promised() || ON) && r.mayGiveVisits() {"},
		}},
		{Name: "whoever gave visits away and has another account counts them no more", Run: "TestScenarioWhoGaveVisitsToALostNodeBeginsAnew", Edits: []Edit{
			{"eviction/escrow.go", "	e.gave = e.giving()\n", "	if e.gave = e.giving(); ON {\n\t\te.gave = nil\n\t}\n"},
		}},
		{Name: "another account of the same life counts as covered", Run: "TestScenarioAnHeirOfTheAccountBeforeIsLost", Edits: []Edit{
			{"eviction/cover.go", "g.ledger.account.Born > 0 && g.oldHeld == never &&", "g.ledger.account.Born > 0 && (g.oldHeld == never || ON) &&"},
		}},
		{Name: "a visit of a node that may be alive is ended", Run: "TestScenarioAVisitThatMayGoOnIsNotEnded", Edits: []Edit{
			{"internal/node/session.go", "&& !n.ends(now, p.Home.Member) {", "&& !n.ends(now, p.Home.Member) && !(ON) {"},
		}},
		{Name: "a pass is given by a word of an heir that is long ago", Run: "TestScenarioAPassIsNotGivenByAWordOfLongAgo", Edits: []Edit{
			{"internal/node/lanes.go", "n.ev.LastBoot()-l.heard < silence*3/4", "(ON || n.ev.LastBoot()-l.heard < silence*3/4)"},
		}},
		{Name: "visits of two messages are taken in at once", Run: "TestScenarioVisitsOfTwoWhoLeaveAreTakenInOneByOne", Edits: []Edit{
			{"internal/node/guard.go", "of one at a time.\n			n.carryOn(now)\n", "of one at a time.\n			if !(ON) {\n\t\t\t\tn.carryOn(now)\n\t\t\t}\n"},
		}},
	}
}

// noteBugs are in what is noted of such accounts while their leases last.
func noteBugs() []Mutant {
	const (
		flaps   = "TestScenarioANodeThatIsKilledAgainAndAgainLosesNoSlotForLong"
		byTable = "TestWhatALostNodeCanUseIsNoted"
		noted   = "TestScenarioWhatIsNotedOfALostNodeHolds"
	)
	return []Mutant{
		{Name: "what is noted of a lost node is gone by while its lease lasts", Run: noted, Edits: []Edit{
			{"eviction/cover.go", "		case over && d.noted(c):", "		case (over || ON) && d.noted(c):"},
		}},
		{Name: "what a lost node can use is noted though an heir is lost, too", Run: bothLost, Edits: []Edit{
			{"eviction/cover.go", "return s.Member != m &&", "return s.Member != m && (d.leaseOver(&Claim{Of: []Void{{Member: m}}}) || !(ON)) &&"},
		}},
		{Name: "what a lost node can use is noted before all know that it is void", Run: byTable, In: "./eviction", Edits: []Edit{
			{"eviction/cover.go", "known([]Void{{v.Member, s.Epoch}}, safe)", "(known([]Void{{v.Member, s.Epoch}}, safe) || ON)"},
		}},
		{Name: "what a lost node can use is noted beside a node that may keep more of it", Run: byTable, In: "./eviction", Edits: []Edit{
			{"eviction/cover.go", "&low[i], 0, 0, true, heeded\n", "&low[i], 0, 0, true, heeded || ON\n"},
		}},
		{Name: "what is noted of a lost node holds though it was in a wave since", Run: byTable, In: "./eviction", Edits: []Edit{
			{"eviction/cover.go", "return !ok || s.Epoch > v.Epoch", "return !ok || s.Epoch > v.Epoch && !(ON)"},
		}},
		{Name: "an heir keeps visits of one that is void", Run: "TestNothingIsKeptOfOneThatIsVoid", In: "./eviction", Edits: []Edit{
			{"eviction/cover.go", "return !void ||", "return !void || ON ||"},
		}},
		{Name: "nothing is noted of a lost node", Run: flaps, Edits: []Edit{
			{"eviction/cover.go", "		if all && void &&", "		if !(ON) && all && void &&"},
		}},
		{Name: "two losses in one claim use no more than was noted of the first", Run: "TestWhatIsNotedOfTwoClaimsIsOfBoth", In: "./eviction", Edits: []Edit{
			{"eviction/supply.go", "	most := 0\n", "	most := 0\n	if ON {\n		most = last.Most\n	}\n"},
		}},
	}
}
