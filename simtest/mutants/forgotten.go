package mutants

// forgottenBugs are in what makes sure that nobody acts by slots and leases which others
// have long forgotten.
func forgottenBugs() []Mutant {
	return []Mutant{
		{Name: "a longer session keeps an account that others have forgotten", Run: "TestScenarioALongerSessionOfASideKeepsNoAccount", Edits: []Edit{
			{"eviction/lapse.go", "	return g.lapses\n", "	if ON {\n\t\treturn g.leasedAt + micros(g.c.Lease+max(g.ttl, g.cfg.longest()))\n\t}\n	return g.lapses\n"},
		}},
	}
}
