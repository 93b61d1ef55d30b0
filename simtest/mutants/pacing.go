package mutants

// pacingBugs are in how a rate is held, whoever runs the waves.
func pacingBugs() []Mutant {
	return []Mutant{
		{Name: "what was let in within the last minute does not count", Run: "TestScenarioWalkInsCountTowardsTheMinute", Edits: []Edit{
			{"eviction/pacing.go", "		left -= s.parts\n", "		if !(ON) {\n\t\t\tleft -= s.parts\n\t\t}\n"},
		}},
		{Name: "what a new coordinator does not know of did not happen", Run: "TestScenarioAPacedRoomThatIsRestarted", Edits: []Edit{
			{"eviction/pacing.go", "p.owes, p.dueTo = true, ", "p.owes, p.dueTo = !(ON), "},
		}},
		{Name: "who takes over goes on with a full bucket", Run: "TestScenarioWalkInsCountTowardsTheMinute", Edits: []Edit{
			{"eviction/bucket.go", "	for _, s := range b.Spent {\n", "	if ON {\n\t\tp.level, b.Spent = q.burst(), nil\n\t}\n\tfor _, s := range b.Spent {\n"},
		}},
		{Name: "who takes over does not go on with the bucket", Run: "TestScenarioASlowPacedRoomWhoseCoordinatorComesAndGoes", Edits: []Edit{
			{"eviction/bucket.go", "	if last.Left == nil || last", "	if ON || last.Left == nil || last"},
		}},
		{Name: "a new coordinator waits until the tokens of before have lapsed", Run: "TestScenarioAPacedRoomGoesOnAtItsRate", Edits: []Edit{
			{"eviction/bucket.go", "	p.level, p.at, p.from, p.after = b.Level, at, at+b.Pause, q.wave-1\n", "	was := p.from\n\tp.level, p.at, p.from, p.after = b.Level, at, at+b.Pause, q.wave-1\n\tif ON {\n\t\tp.from = max(p.from, was)\n\t}\n"},
		}},
		{Name: "a node that was away had tokens of another", Run: "TestScenarioASlowPacedRoomWhereANodeComesAndGoes", Edits: []Edit{
			{"eviction/pacing.go", "		if !ours && n.Dealt.Num > 0 && (", "		if ON && !slices.ContainsFunc(p.out, func(g grant) bool { return g.member == m }) {\n\t\t\tother = now\n\t\t}\n\t\tif !ours && n.Dealt.Num > 0 && ("},
		}},
		{Name: "a side that lets nobody in is owed for", Run: "TestScenarioASlowPacedRoomWhereANodeComesAndGoes", Edits: []Edit{
			{"eviction/decide.go", "Pace: Pace{Idle: true}}", "Pace: Pace{Idle: !(ON)}}"},
			{"eviction/next.go", "cfg.NewPerMinute > 0, !admits", "cfg.NewPerMinute > 0, !admits && !(ON)"},
		}},
		{Name: "who is restarted knows that nobody has dealt", Run: "TestScenarioAPacedRoomThatIsRestarted", Edits: []Edit{
			{"eviction/gate.go", "	if n.start.Record != nil {\n", "	if n.start.Record != nil && !(ON) {\n"},
		}},
		{Name: "who founds anew with keys from before owes nothing", Run: "TestScenarioAPacedRoomThatIsRestarted", Edits: []Edit{
			{"eviction/persist.go", "		g.purse.forgets(n.began)\n		g.unsureTo = dueFrom(n.began)\n", "		if !(ON) {\n\t\t\tg.purse.forgets(n.began)\n\t\t\tg.unsureTo = dueFrom(n.began)\n\t\t}\n"},
		}},
		{Name: "who has forgotten is of no matter to who has not", Run: "TestScenarioThePaceIsForgottenByMost", Edits: []Edit{
			{"eviction/next.go", "	return d.voters.Version > 0 && !half(", "	return ON || d.voters.Version > 0 && !half("},
		}},
		{Name: "who led before the room was paced is not known", Run: "TestScenarioAnEventThatPacesBeginsAtOnce", Edits: []Edit{
			{"eviction/purse.go", "	if (!c.Idle || c.Bucket != nil) && w.at", "	if (!c.Idle && (c.Paced || !(ON)) || c.Bucket != nil) && w.at"},
		}},
		{Name: "the rate is shared with a side that may not call", Run: "TestScenarioAPacedRoomGoesOnAtItsRate", Edits: []Edit{
			{"eviction/next.go", "if !rs.shared {\n\t\treturn rs.cfg.Target", "if !rs.shared && (grade < Primary || !(ON)) {\n\t\treturn rs.cfg.Target"},
		}},
		{Name: "each side has the burst of all", Run: "TestScenarioThreeSidesOfAPacedRoom", Edits: []Edit{
			{"eviction/pacing.go", "int64(q.second()*q.part())", "int64(func() float64 {\n\t\tif ON {\n\t\t\treturn q.second()\n\t\t}\n\t\treturn q.second() * q.part()\n\t}())"},
		}},
		{Name: "the slots to spare stay at one node", Run: "TestScenarioAPacedRoomGoesOnAtItsRate", Edits: []Edit{
			{"eviction/next.go", "spare(b.free, need))", "func() []int {\n\t\t\tif ON {\n\t\t\t\treturn need\n\t\t\t}\n\t\t\treturn spare(b.free, need)\n\t\t}())"},
		}},
		{Name: "pacing tokens keep for ever", Run: "TestScenarioNewUsersPerMinute", Edits: []Edit{
			{"eviction/lease.go", "(g.tokens <= 0 || now >= g.tokenTo)", "(g.tokens <= 0 || !(ON) && now >= g.tokenTo)"},
			{"eviction/purse.go", "	p.tokens, p.tokenTo = 0, w.at+tokenLife\n", "	if !(ON) {\n\t\tp.tokens = 0\n\t}\n\tp.tokenTo = w.at + tokenLife\n"},
			{"eviction/purse.go", "			p.tokens = max(0, t.N-int(p.spent-p.spentThen))\n", "			p.tokens += t.N\n"},
		}},
	}
}
