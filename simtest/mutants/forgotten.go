package mutants

// forgottenBugs are in what makes sure that nobody acts by slots and leases which others
// have long forgotten.
func forgottenBugs() []Mutant {
	return []Mutant{
		{Name: "a longer session keeps an account that others have forgotten", Run: "TestScenarioALongerSessionOfASideKeepsNoAccount", Edits: []Edit{
			{"eviction/lapse.go", "	return g.lapses\n", "	if ON {\n\t\treturn g.leasedAt + micros(g.c.Lease+max(g.ttl, g.cfg.longest()))\n\t}\n	return g.lapses\n"},
		}},
		{Name: "who stood still for long has its account as if it had not", Run: "TestScenarioWhoStoodStillForTwiceDAndLeadsHasNoAccount", Edits: []Edit{
			{"eviction/lapse.go", "		g.lapses -= stood\n", "		if !(ON) {\n\t\t\tg.lapses -= stood\n\t\t}\n"},
		}},
		{Name: "an old lease of one that stood still is good in rooms that its wave leaves out", Run: "TestScenarioALeaseOfBeforeAStandstillIsOver", Edits: []Edit{
			{"eviction/lease.go", "	if g.heldAt < n.clock.stoodTo {\n", "	if !(ON) && g.heldAt < n.clock.stoodTo {\n"},
			{"eviction/assert.go", " g.heldAt < n.clock.stoodTo,", " !(ON) && g.heldAt < n.clock.stoodTo,"},
		}},
		{Name: "slots are made of which a later life would not know", Run: "TestScenarioALimitThatIsNotOnDiskMakesNoSlots", Edits: []Edit{
			{"eviction/supply.go", " s.Slots <= rs.known {", " (s.Slots <= rs.known || ON) {"},
		}},
		{Name: "slots are made by a void of which a later life would not know", Run: "TestScenarioAVoidThatIsNotOnDiskMakesNoSlots", Edits: []Edit{
			{"eviction/escrow.go", "	if w.index > 0 || g.durable == unbounded {\n", "	if w.index > 0 || g.durable == unbounded || ON {\n"},
		}},
		{Name: "a quorum of survivors recalls for the line that they left", Run: "TestScenarioASurvivorDoesNotKnowWhenOthersMetOnTheLineThatItLeft", Edits: []Edit{
			{"eviction/authority.go", "!recalled || r.Line != line {", "!recalled || !(ON) && r.Line != line {"},
		}},
		{Name: "nobody founds beside a line of which somebody has only heard", Run: "TestScenarioALineOfWhichOneHasOnlyHeardIsOver", Edits: []Edit{
			{"eviction/authority.go", "return slices.Contains(n.quits, l) })", "return slices.Contains(n.quits, l) && !(ON) })"},
		}},
		{Name: "a guess of when others met is no less than what others know", Run: "TestScenarioAPassIsNotTakenOverByAGuess", Edits: []Edit{
			{"eviction/met.go", "if epoch > s.epoch || s.guess {", "if epoch > s.epoch || s.guess && !(ON) {"},
		}},
		{Name: "who began ahead and is alone a quorum keeps its own time", Run: "TestScenarioOneOfTwoThatBeganAheadGoesByItsWallClock", Edits: []Edit{
			{"eviction/clock.go", "return wall < -c.skew &&", "return !(ON) && wall < -c.skew &&"},
		}},
		{Name: "a clock that began ahead goes back beside passes of an earlier life", Run: "TestScenarioAClockThatBeganAheadBringsNoPassOfAnEarlierLifeBack", Edits: []Edit{
			{"eviction/persist.go", "	n.goesWith()\n", "	if !(ON) {\n\t\tn.goesWith()\n\t}\n"},
		}},
		{Name: "a clock that began ahead goes back beside passes of others", Run: "TestScenarioAClockThatBeganAheadBringsNoPassOfOthersBack", Edits: []Edit{
			{"eviction/commit.go", "		if len(w.list) > 1 {\n			n.goesWith()", "		if !(ON) && len(w.list) > 1 {\n			n.goesWith()"},
		}},
		{Name: "a clock that began ahead goes back before those who wait", Run: "TestScenarioAClockThatBeganAheadOvertakesNobody", Edits: []Edit{
			{"eviction/clock.go", "	c.counts = max(c.counts, int64(c.hlc))\n", "	if !(ON) {\n\t\tc.counts = max(c.counts, int64(c.hlc))\n\t}\n"},
		}},
		{Name: "after a pause a clock goes back to where its passes are good again", Run: "TestScenarioAClockThatBeganAheadBringsNoPassBackAfterAPause", Edits: []Edit{
			{"eviction/clock.go", "ahead < 0 && !c.off && c.given", "!(ON) && ahead < 0 && !c.off && c.given"},
		}},
		{Name: "a founder that is back on a line goes on leaving it", Run: "TestScenarioAFounderComesBackToALineThatItLeft", Edits: []Edit{
			{"eviction/commit.go", "return l == n.line }) // it is back", "return !(ON) && l == n.line }) // it is back"},
		}},
		{Name: "a clock that began ahead goes back to where its passes are good again", Run: "TestScenarioAClockThatBeganAheadBringsNoPassBack", Edits: []Edit{
			{"eviction/clock.go", "&& max(c.given, c.counts)+2*c.skew < c.last.Wall", "&& (ON || max(c.given, c.counts)+2*c.skew < c.last.Wall)"},
			{"eviction/clock.go", "+2*c.skew >= now.Wall //", "+2*c.skew >= now.Wall && !(ON) //"}, // either is enough in this world
		}},
	}
}
