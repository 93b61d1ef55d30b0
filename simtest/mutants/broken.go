package mutants

// brokenBugs are in what becomes of a room that is not as it must be.
//
// Not planted, since no run shows it any more: that a room goes on before it hears that its
// account has lapsed. Sessions that became shorter in a wave ended accounts in it (seed
// 90008583); an account lapses by those of its last lease now.
func brokenBugs() []Mutant {
	const spoilt = "TestScenarioABrokenRoomIsGivenUpByItsNodeAlone"
	return []Mutant{
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
