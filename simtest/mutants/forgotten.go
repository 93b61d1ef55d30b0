package mutants

// forgottenBugs are in what makes sure that nobody acts by slots and leases which others
// have long forgotten.
func forgottenBugs() []Mutant {
	return []Mutant{
		{Name: "a longer session keeps an account that others have forgotten", Run: "TestScenarioALongerSessionOfASideKeepsNoAccount", Edits: []Edit{
			{"eviction/lapse.go", "	return g.lapses\n", "	if ON {\n\t\treturn g.leasedAt + micros(g.c.Lease+max(g.ttl, g.cfg.longest()))\n\t}\n	return g.lapses\n"},
		}},
		{Name: "who stood still for long has its account as if it had not", Run: "TestScenarioWhoStoodStillForTwiceDHasNoAccount", Edits: []Edit{
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
		{Name: "nobody founds beside a line of which somebody has only heard", Run: "TestScenarioALineOfWhichOneHasOnlyHeardIsOver", Edits: []Edit{
			{"eviction/authority.go", "return slices.Contains(n.quits, l) })", "return slices.Contains(n.quits, l) && !(ON) })"},
		}},
	}
}
