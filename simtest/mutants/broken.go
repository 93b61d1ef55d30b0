package mutants

// brokenBugs are in what becomes of a room that is not as it must be.
func brokenBugs() []Mutant {
	const spoilt = "TestScenarioABrokenRoomIsGivenUpByItsNodeAlone"
	return []Mutant{
		{Name: "a room goes on before it hears that its account has lapsed", Run: "TestSeedsWithAnAccountThatLapsesInAWave", Edits: []Edit{
			{"internal/node/advance.go", "			if n.ev.Pending() {\n", "			if !(ON) && n.ev.Pending() {\n"},
		}},
		{Name: "nobody looks whether a room is as it must be", Run: spoilt, Edits: []Edit{
			{"internal/node/advance.go", "uses != r.gate.Ledger().Used() {", "!(ON) && uses != r.gate.Ledger().Used() {"},
		}},
		{Name: "a room that was given up goes on", Run: spoilt, Edits: []Edit{
			{"eviction/lease.go", "Born == 0 || g.broken ||", "Born == 0 || !(ON) && g.broken ||"},
		}},
		{Name: "the account of a room that was given up stays", Run: spoilt, Edits: []Edit{
			{"eviction/assert.go", "	g.reopen(Account{Member: n.self.Member})\n", "	if !(ON) {\n\t\tg.reopen(Account{Member: n.self.Member})\n\t}\n"},
		}},
	}
}
