package mutants

// waitBugs leave out a wait, or a part of what a wait is reckoned with: what makes
// sure that two who cannot speak with each other do not both go on.
func waitBugs() []Mutant {
	return []Mutant{
		{Name: "slots in use are burned", Run: "TestScenarioLimitRaisedAndLowered", Edits: []Edit{
			{"eviction/ledger.go", "	n = min(n, max(0, l.Free()))\n", "	if !(ON) {\n\t\tn = min(n, max(0, l.Free()))\n\t}\n"},
			{"eviction/decide.go", "		c.Burn = deal(excess, rs.free, 0)\n", "		if ON {\n\t\t\trs.free[0] = max(rs.free[0], excess)\n\t\t}\n\t\tc.Burn = deal(excess, rs.free, 0)\n"},
		}},
		{Name: "a shorter session forgets the longer passes", Run: "TestScenarioAShorterSessionForgetsNoLongerPass", Edits: []Edit{
			{"eviction/install.go", "		g.ttl = max(g.ttl, g.cfg.longest(), c.Config.longest())\n", "		if g.ttl = max(g.ttl, g.cfg.longest(), c.Config.longest()); ON {\n\t\t\tg.ttl = c.Config.longest()\n\t\t}\n"},
		}},
		{Name: "a session is used before all agree", Run: "TestScenarioALongerSessionWaitsUntilAllAgree", Edits: []Edit{
			{"eviction/install.go", "	if c.Agreed {\n		g.session", "	if ON || c.Agreed {\n\t\tg.session"},
		}},
	}
}
