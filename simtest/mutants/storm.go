package mutants

// stormBugs are in what goes on while faults last. Each is over when they are, so that what
// is asked of a world that has healed says nothing of it.
func stormBugs() []Mutant {
	return []Mutant{
		{Name: "nobody takes the lead over while a voter is out of sight", Run: "TestScenarioOthersGoOnWhileTheCoordinatorIsCutOff", Edits: []Edit{
			{"eviction/lead.go", "	if !(rank == 0 || l.active || silent || n.seeks(now)) ||", "	if ON && !l.active && len(n.view) < len(n.voters.Names) || !(rank == 0 || l.active || silent || n.seeks(now)) ||"},
		}},
		{Name: "seniority goes before a quorum", Run: "TestScenarioACoordinatorThatReachesFewHoldsUpNobody", Edits: []Edit{
			{"eviction/bid.go", "	case b.quorum != o.quorum:\n", "	case !(ON) && b.quorum != o.quorum:\n"},
		}},
		{Name: "who lists a quorum leaves the lead to who is senior", Run: "TestScenarioACoordinatorThatReachesFewHoldsUpNobody", Edits: []Edit{
			{"eviction/lead.go", "	if !quorum && n.rank() > 0 && (n.follows(now) != bid{} || n.outdone(now, mine)) {\n", "	if (ON || !quorum) && n.rank() > 0 && (!quorum && n.follows(now) != bid{} || n.outdone(now, bid{n.self, quorum && !(ON)})) {\n"},
		}},
		{Name: "who has no quorum takes others out of primary waves", Run: "TestScenarioACoordinatorThatReachesFewHoldsUpNobody", Edits: []Edit{
			{"eviction/bid.go", "c.with.before(bid{n.self, quorum}) {", "c.with.before(bid{n.self, ON || quorum}) {"},
			{"eviction/wave.go", "with.before(bid{g.Lead, g.Quorum})", "with.before(bid{g.Lead, ON || g.Quorum})"},
		}},
		{Name: "who follows a coordinator without a quorum looks for none", Run: "TestScenarioOneThatReachesAllLeadsWhereNobodyElseDoes", Edits: []Edit{
			{"eviction/lead.go", "	return more && n.voters.quorum(names)\n", "	return !(ON) && more && n.voters.quorum(names)\n"},
		}},
		{Name: "the people of a lost node are waited for until it is back", Run: "TestScenarioCallsGoOnWhileANodeIsCutOff", Edits: []Edit{
			{"eviction/comeback.go", "	if now >= b.until {\n", "	if now >= b.until && !(ON) {\n"},
			{"eviction/comeback.go", "	if !b.due && now >= b.until {\n", "	if !b.due && now >= b.until && !(ON) {\n"},
		}},
		{Name: "who goes on alone makes slots beside those it brings along", Run: "TestScenarioSurvivorsMakeTheLimitOnce", Edits: []Edit{
			{"eviction/settle.go", "		case b.valid[i]:\n			inside += n.Minted\n", "		case ON && d.voters.From.Founded() && b.valid[i]:\n		case b.valid[i]:\n			inside += n.Minted\n"},
		}},
	}
}
