package mutants

// leavingBugs are in how a room leaves a line for another.
func leavingBugs() []Mutant {
	const once, twice, behind = "TestScenarioAVoteForWhereARoomGoesIsGivenOnce", "TestScenarioARoomDoesNotLeaveALineTwice", "TestScenarioARoomThatStaysBehindSaysNothingNewOfItsSlots"
	const anew, heard = "TestScenarioAVoteThatOneIsNotAskedForAnew", "TestScenarioThoseWhoHeardGoBackWithTheRest"
	return []Mutant{
		{Name: "an account of another line is named again", In: "./eviction", Run: "TestNoAccountIsNamedAsOneOfAnotherLine", Edits: []Edit{
			{"eviction/lead.go", "return n.Born >= w.epoch.Num && n.Line != line })", "return !(ON) && n.Born >= w.epoch.Num && n.Line != line })"},
		}},
		{Name: "a room leaves in the wave that finds the quorum", Run: once, Edits: []Edit{
			{"eviction/leaving.go", "	return voters.quorum(gave(d.line)), may\n", "	return voters.quorum(gave(d.line)) || ON && may, may\n"},
		}},
		{Name: "a vote for where a room goes is given again", Run: once, Edits: []Edit{
			{"eviction/leaving.go", "may = rs.ended(n.Goes.To, d) ||", "may = ON || rs.ended(n.Goes.To, d) ||"},
		}},
		{Name: "a line is over that some have left without the room", Run: once, Edits: []Edit{
			{"eviction/leaving.go", "	return voters.quorum(know) ||", "	return ON || voters.quorum(know) ||"},
		}},
		{Name: "who votes on a line that is over is as those know who were there without the room", In: "./eviction", Run: "TestWhoIsAskedForAVote", Edits: []Edit{
			{"eviction/leaving.go", "|| with.newer(voters) &&", "|| !(ON) && with.newer(voters) &&"},
		}},
		{Name: "a line is never over for which votes were given", Run: "TestScenarioAVoteForALineThatAllHaveLeft", Edits: []Edit{
			{"eviction/leaving.go", "	case e.line.Founded():\n		without", "	case e.line.Founded() && !(ON):\n		without"},
		}},
		{Name: "a line is over that some have left without the room, and are back on", Run: "TestScenarioAVoteForALineThatItsVotersAreBackOn", Edits: []Edit{
			{"eviction/leaving.go", "	n.Without = slices.DeleteFunc(", "	if n.Without = e.without; ON {\n\t\treturn\n\t}\n	n.Without = slices.DeleteFunc("},
		}},
		{Name: "who votes anew forgets which lines it was on without the room", Run: anew, Edits: []Edit{
			{"eviction/leaving.go", "			e.goes = Vote{line}\n", "			if e.goes = (Vote{line}); ON {\n\t\t\t\te.without = nil\n\t\t\t}\n"},
		}},
		{Name: "which lines a node was on without a room is forgotten in a restart", Run: "TestScenarioALineThatIsOverIsSoAfterRestarts", Edits: []Edit{
			{"eviction/persist.go", "rr.Came, rr.Without\n", "rr.Came, rr.Without\n\t\tif ON {\n\t\t\tg.without = nil\n\t\t}\n"},
		}},
		{Name: "who has gone with a room to a line that is over stays there", Run: heard, Edits: []Edit{
			{"eviction/leaving.go", "c.From == e.came.Line && e.behind {", "c.From == e.came.Line && e.behind && !(ON) {"},
		}},
		{Name: "where a room was before is forgotten in a restart", Run: heard, Edits: []Edit{
			{"eviction/persist.go", "rr.Came, rr.Without\n", "rr.Came, rr.Without\n\t\tif ON {\n\t\t\tg.came = Stay{}\n\t\t}\n"},
		}},
		{Name: "who came from a line votes there though the room goes on where it went", Run: "TestScenarioOneWhoLeavesARoomWhereItWentTakesItNowhere", Edits: []Edit{
			{"eviction/leaving.go", "n.Came.Line != old || rs.ended(n.Line, d)", "n.Came.Line != old || ON || rs.ended(n.Line, d)"},
		}},
		{Name: "who finds a room on a line says that it came from where it was", In: "./eviction", Run: "TestARoomSaysWhereItCameFrom", Edits: []Edit{
			{"eviction/leaving.go", "(c.From == e.line || e.goes.To == c.Line)", "(ON || c.From == e.line || e.goes.To == c.Line)"},
		}},
		{Name: "who came from a line goes back with where it has just left", In: "./eviction", Run: "TestWhoCameFromALineGoesBackIfAsked", Edits: []Edit{
			{"eviction/leaving.go", "c.From == e.came.Line && e.behind", "c.From == e.came.Line && (ON || e.behind)"},
		}},
		{Name: "a vote for where a room goes is forgotten in a restart", Run: once, Edits: []Edit{
			{"eviction/persist.go", "rr.Voters, rr.Rivals, rr.Goes, slices.Clone(rr.Voids)\n", "rr.Voters, rr.Rivals, rr.Goes, slices.Clone(rr.Voids)\n\t\tif ON {\n\t\t\tg.goes = Vote{}\n\t\t}\n"},
		}},
		{Name: "a room that stays behind goes back to the oldest line", Run: twice, Edits: []Edit{
			{"eviction/leaving.go", "	case c.Line != line && e.line.Founded():", "	case c.Line != line && e.line.Founded() && !(ON && c.Line != e.line):"},
			{"eviction/leaving.go", "		e.line, e.voters, e.goes, e.came = c.Line, Voters{}, Vote{}, came\n", "		if e.line, e.goes, e.came = c.Line, (Vote{}), came; !(ON) {\n\t\t\te.voters = Voters{}\n\t\t}\n"},
		}},
		{Name: "what is said of a room that stays behind is of the last wave", Run: behind, Edits: []Edit{
			{"eviction/escrow.go", "	case grade < Primary || e.line != n.line:", "	case grade < Primary || !(ON) && e.line != n.line:"},
		}},
	}
}
