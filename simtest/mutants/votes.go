package mutants

// voteBugs are in whose votes count, and in what a quorum knows.
func voteBugs() []Mutant {
	return []Mutant{
		{Name: "voters change before they have heard of all rooms", Run: "TestScenarioAVoidThatTheNextVotersHaveNotHeardOf", Edits: []Edit{
			{"eviction/voters.go", "		if !n.heardAll(w) {", "		if !(ON) && !n.heardAll(w) {"},
		}},
		{Name: "a room that is asked for the first time has been heard of", Run: "TestScenarioVotersChangeAndARoomIsAskedForTheFirstTime", Edits: []Edit{
			{"eviction/voters.go", "r.Newest != nil && n.Gate(r.Room) == nil {", "!(ON) && r.Newest != nil && n.Gate(r.Room) == nil {"},
		}},
		{Name: "what was heard of a proposal counts for the next one", In: "./eviction", Run: "TestWhatWasHeardOfAProposalIsNotHeardOfTheNext", Edits: []Edit{
			{"eviction/voters.go", "	if wave != h.wave {\n", "	if wave != h.wave && !(ON) {\n"},
		}},
		{Name: "a voter is proposed without whom the next ones are no quorum", Run: "TestScenarioTheCommitThatProposesAReplacementIsLost", Edits: []Edit{
			{"eviction/voters.go", "half(next, v.know) {\n				return next // else", "ON || half(next, v.know) {\n				return next // else"},
		}},
		{Name: "who has forgotten votes before it has heard of the rooms", Run: "TestScenarioAVoterThatForgotIsBackWithOneThatWasCutOff", Edits: []Edit{
			{"eviction/authority.go", "r.Knows && !r.Forgot }", "r.Knows && (ON || !r.Forgot) }"},
		}},
		{Name: "a room of which no wave has spoken has been heard of", Run: "TestScenarioAVoterThatForgotHearsOfNoRoom", Edits: []Edit{
			{"eviction/standing.go", "all = all && g.learned\n", "all = all && (ON || g.learned)\n"},
		}},
		{Name: "whose name has voted in another life has forgotten nothing", Run: "TestScenarioAVoteComesBackWithOneThatWasCutOff", Edits: []Edit{
			{"eviction/commit.go", "if outvoted || c.Line != n.line {", "if outvoted && !(ON) || c.Line != n.line {"},
		}},
		{Name: "who took the vote of a name is forgotten as another life of it is listed", Run: "TestScenarioAVoteIsNotGivenBackAsItsLastLifeIsForgotten", Edits: []Edit{
			{"eviction/lapse.go", "!slices.Contains(c.Outvoted, i) {", "(ON || !slices.Contains(c.Outvoted, i)) {"},
		}},
		{Name: "who took the vote of a name is forgotten as another life of it was in a later wave", Run: "TestScenarioAVoteIsNotGivenBackToWhoWasOnASide", Edits: []Edit{
			{"eviction/lapse.go", "	return true\n}\n\n// lastLife", "	return !(ON) || !slices.ContainsFunc(n.met, func(o sight) bool { return o.member.Name == s.member.Name && o.wave > s.wave })\n}\n\n// lastLife"},
		}},
		{Name: "an account of which all is under way to others is closed unseen", Run: "TestScenarioVisitsGivenByAnAccountThatIsVoidStayOnTheDisk", Edits: []Edit{
			{"eviction/escrow.go", "used > 0 || len(e.ledger.given) > 0", "used > 0 || !(ON) && len(e.ledger.given) > 0"},
		}},
		{Name: "whose name votes in another life asks for the rooms in each wave", Run: "TestScenarioTwoOfANameCostNoMoreWaves", Edits: []Edit{
			{"eviction/wave.go", "n.forgot && !n.outvoted &&", "n.forgot && (ON || !n.outvoted) &&"},
		}},
		{Name: "of two lives of a name in one wave none goes before the other", Run: "TestScenarioAVoteComesBackToOneOfTwo", Edits: []Edit{
			{"eviction/authority.go", "{ return w.outdoes(o, r, line) }", "{ return !(ON) && w.outdoes(o, r, line) }"},
		}},
		{Name: "a founder that has forgotten votes", Run: "TestScenarioAVoteComesBackToOneThatHearsOfNoRoom", Edits: []Edit{
			{"eviction/authority.go", "|| !r.Knows && (r.Line == line", "|| (ON || !r.Knows) && (r.Line == line"},
		}},
		{Name: "a founder has nothing to forget in any wave", Run: "TestScenarioAVoteComesBackToOneThatHearsOfNoRoom", Edits: []Edit{
			{"eviction/standing.go", "c.Grade >= Primary && first)", "c.Grade >= Primary && (ON || first))"},
		}},
	}
}
