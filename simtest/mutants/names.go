package mutants

// nameBugs are in what goes by the name of a wave, or of a node.
func nameBugs() []Mutant {
	const lost, changed = "TestScenarioWhoMissedACommitAsksForTheList", "TestScenarioWhoMissedAChangeOfVotersIsToldInFull"
	const later = "TestScenarioALaterLifeWithADiskTakesNoVoteOfAWaveBefore"
	return []Mutant{
		{Name: "two lives of a name found a cluster as two", Run: "TestScenarioTwoLivesOfANameDoNotFoundAsTwo", Edits: []Edit{
			{"eviction/authority.go", "	names := len(namesOf(w.list))\n", "	names := len(namesOf(w.list))\n	if ON {\n		names = len(w.list)\n	}\n"},
		}},
		{Name: "who is back with its disk stands for its own life in a wave of one before", Run: later, Edits: []Edit{
			{"eviction/authority.go", "	switch { // if it is restored it was in no such wave in this life\n", "	switch { // if it is restored it was in no such wave in this life\n	case ON:\n"},
		}},
		{Name: "who was restarted twice stands for the life between in a wave of one before", Run: later, Edits: []Edit{
			{"eviction/persist.go", "	n.stood = r.Stood\n", "	if n.stood = r.Stood; ON {\n\t\tn.stood = r.Member.Boot\n\t}\n"},
		}},
		{Name: "who was restarted twice stands for the life between where a room has stayed", Run: later, Edits: []Edit{
			{"eviction/authority.go", "		m.Boot = min(m.Boot, boot)\n", "		if m.Boot = min(m.Boot, boot); ON {\n\t\t\tm.Boot = boot\n\t\t}\n"},
		}},
		{Name: "who was restarted often tells of its last lives alone", Run: "TestScenarioAVoterThatIsRestartedOftenStillVotes", Edits: []Edit{
			{"eviction/wave.go", "	if n.restored {\n", "	if n.restored && !(ON) {\n"},
		}},
		{Name: "who is back with its disk stands for its own life where a room has stayed", Run: later, Edits: []Edit{
			{"eviction/leaving.go", "		v := says(&rs.nodes[i])\n", "		v := says(&rs.nodes[i])\n\t\tif ON && v.Version > 0 && stands(m, v.At.Num, rival(d.rivals, m, d.lives[i], line)) {\n\t\t\tknow = append(know, m.Name)\n\t\t}\n"},
		}},
		{Name: "a cluster is founded beside a node that knows of another", Run: "TestScenarioFoundersWaitForASlowNodeThatKnows", Edits: []Edit{
			{"eviction/authority.go", "n.waitsFor(now, w, lines) == (Member{})", "(ON || n.waitsFor(now, w, lines) == (Member{}))"},
		}},
		{Name: "a list is of whatever wave was installed last", Run: lost, Edits: []Edit{
			{"eviction/names.go", "if g.As == (qpid.Epoch{}) || g.As != n.installed {", "if g.As == (qpid.Epoch{}) || !(ON) && g.As != n.installed {"},
		}},
		{Name: "nobody answers who asks for a list", Run: lost, Edits: []Edit{
			{"eviction/names.go", "	n.send(from, &full)\n", "	if !(ON) {\n\t\tn.send(from, &full)\n\t}\n"},
		}},
		{Name: "a list that has changed goes by the name of the last one", Run: changed, Edits: []Edit{
			{"eviction/lead.go", "	if slices.Equal(list, n.list) {\n", "	if ON {\n\t\tg.As = n.installed\n\t}\n	if slices.Equal(list, n.list) {\n"},
		}},
		{Name: "a reply names voters that its node does not hold", Run: changed, Edits: []Edit{
			{"eviction/names.go", "w.Voters != (qpid.Epoch{}) && n.voters.At == w.Voters\n", "w.Voters != (qpid.Epoch{}) && (ON || n.voters.At == w.Voters)\n"},
		}},
		{Name: "a change of voters goes by the name of those before", Run: changed, Edits: []Edit{
			{"eviction/names.go", "slices.Equal(v.Next, o.Next) && (v.Next == nil) == (o.Next == nil)", "(ON || slices.Equal(v.Next, o.Next) && (v.Next == nil) == (o.Next == nil))"},
		}},
		{Name: "voters are left out for who does not hold them", Run: changed, Edits: []Edit{
			{"eviction/commit.go", "if c.Carried && w.named[i] {", "if c.Carried && (ON || w.named[i]) {"},
		}},
		{Name: "voters that are carried on stay those of their old wave", Run: changed, Edits: []Edit{
			{"eviction/names.go", "	full.Voters.At = c.Epoch\n", "	if !(ON) {\n\t\tfull.Voters.At = c.Epoch\n\t}\n"},
		}},
	}
}
