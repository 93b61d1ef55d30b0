package mutants

// boundBugs are in how nodes with other settings go on side by side.
func boundBugs() []Mutant {
	const waited = "TestScenarioALongerLeaseOfAnotherIsWaitedFor"
	return []Mutant{
		{Name: "a longer lease is acted by before the others know of it", Run: "TestScenarioALongerLeaseWaitsForTheOthers", Edits: []Edit{
			{"eviction/bounds.go", "	b := t.wants.min(c.Acts)\n", "	b := t.wants.min(c.Acts)\n	if ON {\n\t\tb = t.wants\n\t}\n"},
		}},
		{Name: "a coordinator reckons with its own lease alone", Run: waited, Edits: []Edit{
			{"eviction/settle.go", "	return g.delayFor(d.reckons, rs.ttl)\n", "	if ON {\n\t\treturn g.delayFor(g.c.wants, rs.ttl)\n\t}\n	return g.delayFor(d.reckons, rs.ttl)\n"},
		}},
		{Name: "a longer lease is forgotten in a restart", Run: "TestScenarioALongerLeaseIsNotForgottenInARestart", Edits: []Edit{
			{"eviction/persist.go", "	if r.Reckons == (Bounds{}) {\n", "	if ON || r.Reckons == (Bounds{}) {\n"},
		}},
		{Name: "a longer lease is forgotten while somebody who had it is missing", Run: waited, Edits: []Edit{
			{"eviction/bounds.go", "	if c.Grade == Unanimous && len(c.Met) == 0 {\n", "	if ON || c.Grade == Unanimous && len(c.Met) == 0 {\n"},
		}},
	}
}
