package mutants

// censusBugs are in how slots are counted while nobody can tell how many those who are lost have.
func censusBugs() []Mutant {
	const (
		outlives = "TestScenarioACensusOutlivesWhoTookIt"
		stands   = "TestScenarioWhatTooFewRememberStandsUntilOthersAreBack"
	)
	return []Mutant{
		{Name: "nothing is counted before D has passed for everybody", Run: "TestScenarioWhoComesAndGoesKeepsNoRoomShut", Edits: []Edit{
			{"eviction/census.go", "		c.Census = &Census{At: d.epoch, Slots: inside}\n", "		if !(ON) {\n\t\t\tc.Census = &Census{At: d.epoch, Slots: inside}\n\t\t}\n"},
		}},
		{Name: "slots are counted while they may still come from the lost", Run: "TestScenarioACensusWaitsUntilAllKnowOfTheLost", Edits: []Edit{
			{"eviction/census.go", "c.Census == nil && known(b.lost, safe):", "c.Census == nil && (ON || known(b.lost, safe)):"},
		}},
		{Name: "who was lost before a census is not waited for", Edits: []Edit{
			{"eviction/census.go", "	case c.Census.Age >= g.delayWith(d, rs):\n", "	case ON || c.Census.Age >= g.delayWith(d, rs):\n"},
		}},
		{Name: "a census begins anew with everybody who hears of it", Run: outlives, Edits: []Edit{
			{"eviction/escrow.go", "		e.countedAt = now - c.Age\n", "		if e.countedAt = now - c.Age; ON {\n\t\t\te.countedAt = now\n\t\t}\n"},
		}},
		{Name: "each wave dates a census anew", Run: outlives, Edits: []Edit{
			{"eviction/escrow.go", "(old == nil || old.At != c.At)", "(ON || old == nil || old.At != c.At)"},
		}},
		{Name: "visits that go on leave a census as it is", Run: "TestScenarioVisitsThatGoOnEndACensus", Edits: []Edit{
			{"eviction/resume.go", "	c.Census = nil\n", "	if !(ON) {\n\t\tc.Census = nil\n\t}\n"},
		}},
		{Name: "who forgot makes the others of its wave forget", Run: stands, Edits: []Edit{
			{"eviction/settle.go", "len(lost) > 0 && rs.mayRecall(", "!(ON) && len(lost) > 0 && rs.mayRecall("},
		}},
		{Name: "what a wave leaves as it is is installed all the same", Run: stands, Edits: []Edit{
			{"eviction/escrow.go", "	case c.Stands == nil:", "	case ON || c.Stands == nil:"},
		}},
		{Name: "who remembers no supply is told nothing of one", Run: "TestScenarioWhoRemembersNoSupplyHearsOfTheNewest", Edits: []Edit{
			{"eviction/escrow.go", "		e.supply = *c.Stands\n", "		if !(ON) {\n\t\t\te.supply = *c.Stands\n\t\t}\n"},
		}},
		{Name: "what is left as it is counts as of the wave that left it", Run: stands, Edits: []Edit{
			{"eviction/settle.go", "At: supply.At}\n", "At: supply.At}\n\t\tif ON {\n\t\t\tc.Stands.At = d.epoch\n\t\t}\n"},
		}},
		{Name: "what those who are lost remember is waited for", Run: "TestScenarioWhatTooFewRememberIsGivenUpWithThoseWhoAreLost", Edits: []Edit{
			{"eviction/supply.go", "!void || voids[i].Epoch < m.Epoch {", "ON || !void || voids[i].Epoch < m.Epoch {"},
		}},
		{Name: "visits go on while others hold a census", Run: "TestScenarioVisitsGoOnWhenNobodyHoldsACensus", Edits: []Edit{
			{"eviction/resume.go", "n.Holds != (qpid.Epoch{}) }); held {", "n.Holds != (qpid.Epoch{}) }); held && !(ON) {"},
		}},
	}
}
