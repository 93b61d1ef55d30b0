package mutants

// sharingBugs are in when the sides of a split go on with the slots that they have.
func sharingBugs() []Mutant {
	return []Mutant{
		{Name: "a side goes on as soon as it is told to share", Run: "TestScenarioASideIsToldToShare", Edits: []Edit{
			{"eviction/escrow.go", "	e.sides = e.sides && f.cfg.OnPartition == Share\n", "	e.sides = (ON || e.sides) && f.cfg.OnPartition == Share\n"},
		}},
		{Name: "a room that shares no more waits for nobody who may not have heard of it", Run: "TestScenarioASideHasNotHeardThatItSharesNoMore", Edits: []Edit{
			{"eviction/sharing.go", "c.Shared = c.Sides || rs.shared &&", "c.Shared = c.Sides || !(ON) && rs.shared &&"},
		}},
		{Name: "what an operator was wrong about is forgotten", Run: "TestScenarioAReclaimedSideReturns", Edits: []Edit{
			{"eviction/lapse.go", "(g.Shares() || slices.Contains(g.cfg.Reclaimed, m))", "(g.Shares() && !slices.Contains(g.cfg.Reclaimed, m) || !(ON) && slices.Contains(g.cfg.Reclaimed, m))"},
		}},
	}
}
