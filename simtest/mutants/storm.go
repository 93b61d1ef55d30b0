package mutants

// stormBugs are in what goes on while faults last. Each is over when they are, so that what
// is asked of a world that has healed says nothing of it.
func stormBugs() []Mutant {
	return []Mutant{
		{Name: "nobody takes the lead over while a voter is out of sight", Run: "TestScenarioOthersGoOnWhileTheCoordinatorIsCutOff", Edits: []Edit{
			{"eviction/lead.go", "	if !(rank == 0 || l.active || silent) ||", "	if ON && !l.active && len(n.view) < len(n.voters.Names) || !(rank == 0 || l.active || silent) ||"},
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
