package mutants

// slowBugs wait for a node whose links are slow, take one for slow that is not, or take
// what is late for exact.
func slowBugs() []Mutant {
	return []Mutant{
		{Name: "a slow node is waited for like any other", Run: "TestScenarioAGrayNodeIsNotWaitedFor", Edits: []Edit{
			{"eviction/candidate.go", ">= micros(n.c.ExcludeAfter) || c.gray {", ">= micros(n.c.ExcludeAfter) || !(ON) && c.gray {"},
		}},
		{Name: "a node is listed before a round trip to it has fitted", Run: "TestScenarioAGrayNewcomerIsNotWaitedFor", Edits: []Edit{
			{"eviction/candidate.go", "c.leaves || c.owes > 0 ||", "c.leaves || !(ON) && c.owes > 0 ||"},
		}},
		{Name: "one round trip that fits brings a slow node back", Run: "TestScenarioANodeWithJitterStaysOut", Edits: []Edit{
			{"eviction/candidate.go", "	c.late, c.owes = 0, max(0, c.owes-1)\n", "	if c.late, c.owes = 0, max(0, c.owes-1); ON {\n\t\tc.owes = 0\n\t}\n"},
		}},
		{Name: "a node that is slow again and again is left out no longer", Run: "TestScenarioANodeThatTurnsGrayAgainAndAgainIsLeftOutLonger", Edits: []Edit{
			{"eviction/candidate.go", "if !c.gray || now.Boot-c.blocked", "if ON || !c.gray || now.Boot-c.blocked"},
		}},
		{Name: "one late round trip makes a node slow", Run: "TestScenarioACoordinatorThatStoodStillTakesNobodyForSlow", Edits: []Edit{
			{"eviction/candidate.go", "slow := c.late >= lateMin ", "slow := c.late >= lateMin || ON && c.late > 0 "},
		}},
		{Name: "a slow coordinator leaves out one node after the other", Run: "TestScenarioAGrayCoordinatorOfADeepTreeLetsOthersLead", Edits: []Edit{
			{"eviction/candidate.go", "if !slow && !present", "if (ON || !slow) && !present"},
		}},
		{Name: "who hears that another leads waits for as long again", Run: "TestScenarioWhoLeavesTheLeadAsksAgainSoon", Edits: []Edit{
			{"eviction/lead.go", "	n.followedAt = max(n.followedAt, now.Boot+", "	if ON {\n\t\tn.followedAt = now.Boot\n\t}\n	n.followedAt = max(n.followedAt, now.Boot+"},
		}},
		{Name: "a clock is as well known by a late reply as by any", Run: "TestScenarioALateReplyTellsNoClockOff", Edits: []Edit{
			{"eviction/lead.go", "	for i, r := range w.sum.Nodes {\n		if abs(", "	if ON {\n		err = 0\n	}\n	for i, r := range w.sum.Nodes {\n		if abs("},
		}},
		{Name: "a wave measures clocks when it is complete", Run: "TestScenarioALateReplyHidesNoClockThatIsOff", Edits: []Edit{
			{"eviction/lead.go", "	offsets := make([]int64, len(w.clocks))\n", "	if ON {\n		for i, r := range w.sum.Nodes[1:] {\n			w.clocks[i+1] = measure(n.lead.clock, n.clock.now, r.Clock)\n		}\n	}\n	offsets := make([]int64, len(w.clocks))\n"},
		}},
		{Name: "who was late once is asked again in its turn", Run: "TestScenarioAGrayNodeIsFoundOutBetweenRareWaves", Edits: []Edit{
			{"eviction/lead.go", "		if doubtful || now.Boot", "		if !(ON) && doubtful || now.Boot"},
		}},
		{Name: "a gather that comes twice is refused", Run: "TestScenarioMessagesThatComeTwiceCostNoWave", Edits: []Edit{
			{"eviction/wave.go", "	if n.wave != nil && n.wave.epoch == g.Epoch {\n", "	if n.wave != nil && n.wave.epoch == g.Epoch && !(ON) {\n"},
		}},
	}
}
