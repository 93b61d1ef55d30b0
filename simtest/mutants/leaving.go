package mutants

// leavingBugs are in how a room leaves a line for another.
func leavingBugs() []Mutant {
	const once, twice, behind = "TestScenarioAVoteForWhereARoomGoesIsGivenOnce", "TestScenarioARoomDoesNotLeaveALineTwice", "TestScenarioARoomThatStaysBehindSaysNothingNewOfItsSlots"
	return []Mutant{
		{Name: "an account of another line is named again", In: "./eviction", Run: "TestNoAccountIsNamedAsOneOfAnotherLine", Edits: []Edit{
			{"eviction/lead.go", "return n.Born >= w.epoch.Num && n.Line != line })", "return !(ON) && n.Born >= w.epoch.Num && n.Line != line })"},
		}},
		{Name: "a room leaves in the wave that finds the quorum", Run: once, Edits: []Edit{
			{"eviction/leaving.go", "	return voters.quorum(gave(d.line)), may\n", "	return voters.quorum(gave(d.line)) || ON && may, may\n"},
		}},
		{Name: "a vote for where a room goes is given again", Run: once, Edits: []Edit{
			{"eviction/leaving.go", "may = rs.ended(old, to, d) ||", "may = ON || rs.ended(old, to, d) ||"},
		}},
		{Name: "a line is over that some have left with their votes for it", Run: once, Edits: []Edit{
			{"eviction/leaving.go", "	if slices.Contains(rs.ends, e) {", "	if ON || slices.Contains(rs.ends, e) {"},
		}},
		{Name: "a line is never over for which votes were given", Run: "TestScenarioAVoteForALineThatAllHaveLeft", Edits: []Edit{
			{"eviction/standing.go", "		if n.knows && g.goes.To == n.line {", "		if n.knows && g.goes.To == n.line && !(ON) {"},
		}},
		{Name: "a line is over that some have left with their votes for it, and are back on", Run: "TestScenarioAVoteForALineThatItsVotersAreBackOn", Edits: []Edit{
			{"eviction/wave.go", "			if g.goes.To == n.line {", "			if g.goes.To == n.line && !(ON) {"},
		}},
		{Name: "a line that was found to be over may not be the next time", Run: "TestScenarioAVoteThatOneIsNotAskedForAnew", Edits: []Edit{
			{"eviction/decide.go", "	next.ends = rs.ends\n", "	if !(ON) {\n\t\tnext.ends = rs.ends\n\t}\n"},
		}},
		{Name: "a vote for where a room goes is forgotten in a restart", Run: once, Edits: []Edit{
			{"eviction/persist.go", "rr.Voters, rr.Rivals, rr.Goes, slices.Clone(rr.Voids)\n", "rr.Voters, rr.Rivals, rr.Goes, slices.Clone(rr.Voids)\n\t\tif ON {\n\t\t\tg.goes = Vote{}\n\t\t}\n"},
		}},
		{Name: "a room that stays behind goes back to the oldest line", Run: twice, Edits: []Edit{
			{"eviction/leaving.go", "	case c.Line != line && e.line.Founded():", "	case c.Line != line && e.line.Founded() && !(ON && c.Line != e.line):"},
			{"eviction/leaving.go", "	e.line, e.goes, e.voters, e.rivals = c.Line, Vote{}, Voters{}, nil\n", "	if e.line, e.goes = c.Line, (Vote{}); !(ON) {\n\t\t\te.voters, e.rivals = Voters{}, nil\n\t\t}\n"},
		}},
		{Name: "what is said of a room that stays behind is of the last wave", Run: behind, Edits: []Edit{
			{"eviction/escrow.go", "	case grade < Primary || e.line != n.line:", "	case grade < Primary || !(ON) && e.line != n.line:"},
		}},
	}
}
