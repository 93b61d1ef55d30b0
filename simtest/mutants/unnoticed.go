package mutants

// Unnoticed are bugs that the tests which were named for them do not notice any more: the first four since whose name has voted in another
// life votes only when it has heard of each room again, the fifth since what is on its way from an account is counted until that is settled.
// Whether those rules make them harmless, or they need other worlds, is open. They are kept so that they still fit.
func Unnoticed() []Mutant {
	return []Mutant{
		{Name: "another account of the same life counts as covered", Edits: []Edit{
			{"eviction/cover.go", "g.ledger.account.Born > 0 && g.oldHeld == never &&", "g.ledger.account.Born > 0 && (g.oldHeld == never || ON) &&"},
		}},
	}
}
