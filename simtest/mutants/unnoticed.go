package mutants

// Unnoticed are bugs that the tests which were named for them do not notice any more: the first four since whose name has voted in another
// life votes only when it has heard of each room again, the fifth since what is on its way from an account is counted until that is settled.
// Whether those rules make them harmless, or they need other worlds, is open. They are kept so that they still fit.
func Unnoticed() []Mutant {
	return []Mutant{
		{Name: "who is back with its disk stands for its own life in a wave of one before", Edits: []Edit{
			{"eviction/authority.go", "	switch { // if it is restored it was in no such wave in this life\n", "	switch { // if it is restored it was in no such wave in this life\n	case ON:\n"},
		}},
		{Name: "who was restarted twice stands for the life between in a wave of one before", Edits: []Edit{
			{"eviction/persist.go", "	n.stood = r.Stood\n", "	if n.stood = r.Stood; ON {\n\t\tn.stood = r.Member.Boot\n\t}\n"},
		}},
		{Name: "who was restarted twice stands for the life between where a room has stayed", Edits: []Edit{
			{"eviction/authority.go", "		m.Boot = min(m.Boot, boot)\n", "		if m.Boot = min(m.Boot, boot); ON {\n\t\t\tm.Boot = boot\n\t\t}\n"},
		}},
		{Name: "who is back with its disk stands for its own life where a room has stayed", Edits: []Edit{
			{"eviction/leaving.go", "		v := says(&rs.nodes[i])\n", "		v := says(&rs.nodes[i])\n\t\tif ON && v.Version > 0 && stands(m, v.At.Num, rival(d.rivals, m, d.lives[i], line)) {\n\t\t\tknow = append(know, m.Name)\n\t\t}\n"},
		}},
		{Name: "another account of the same life counts as covered", Edits: []Edit{
			{"eviction/cover.go", "g.ledger.account.Born > 0 && g.oldHeld == never &&", "g.ledger.account.Born > 0 && (g.oldHeld == never || ON) &&"},
		}},
	}
}
