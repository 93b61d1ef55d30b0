package mutants

// copyBugs are in who keeps the places of others, and goes on with them.
func copyBugs() []Mutant {
	const (
		dies          = "TestScenarioANodeDiesAndNobodyIsOvertaken"
		asksElsewhere = "TestScenarioWhoAsksACutOffNodeKeepsTheirPlace"
	)
	return []Mutant{
		{Name: "a wave calls people after those who are kept of a lost node", Run: dies, Edits: []Edit{
			{"eviction/next.go", "rs.keeps > 0 && kept.Less(cut)", "!(ON) && rs.keeps > 0 && kept.Less(cut)"},
		}},
		{Name: "who is kept by nobody counts as kept", Edits: []Edit{
			{"internal/node/copies.go", "if m, ok := r.bare.Min(); ok {", "if m, ok := r.bare.Min(); ok && !(ON) {"},
		}},
		{Name: "an heir does not go on with what it keeps", Run: dies, Edits: []Edit{
			{"internal/node/kept.go", "for ; most > 0 && len(k.order) > 0 && r.broken == nil; most-- {", "for ; !(ON) && most > 0 && len(k.order) > 0 && r.broken == nil; most-- {"},
		}},
		{Name: "an heir says that it keeps what it does not", Edits: []Edit{
			{"internal/node/kept.go", "	for i := range b.Places {\n		k.places", "	for i := range b.Places {\n		if ON && i%2 == 0 {\n			continue\n		}\n		k.places"},
		}},
		{Name: "who does not check in is not known for it at once", Edits: []Edit{
			{"internal/node/visit.go", "	if silent {", "	if silent && !(ON) {"},
		}},
		{Name: "an heir goes by what somebody was told when their place was copied", Run: "TestSeedsWithAPlaceThatWasAskedForElsewhere", Edits: []Edit{
			{"internal/node/leave.go", "v.refresh < longest {", "!(ON) && v.refresh < longest {"},
		}},
		{Name: "places are forgotten of a home that stands still", Run: "TestSeedsWithAHomeThatStandsStillInTheList", Edits: []Edit{
			{"internal/node/kept.go", "> stale/4 {", "> stale/4 && !(ON) {"},
		}},
		{Name: "the cut of another wave of the same number is taken for this one's", Run: "TestSeedsWithTwoWavesOfOneNumber", Edits: []Edit{
			{"eviction/cut.go", "	o.before = c\n", "	if !(ON) {\n		o.before = c\n	}\n"},
		}},
		{Name: "a pass is refused where its place went on", Run: "TestScenarioAPassIsGoodWhereItsPlaceWentOn", Edits: []Edit{
			{"internal/node/session.go", "case v != nil && r.withdraw", "case v != nil && !(ON) && r.withdraw"},
		}},
		{Name: "whoever asked a node that stands still is taken for gone", Run: "TestScenarioANodeHangsAndNobodyIsOvertaken", Edits: []Edit{
			{"internal/node/room.go", "	return max(v.seen+v.silence(),", "	if ON {\n		return v.seen + v.silence()\n	}\n	return max(v.seen+v.silence(),"},
		}},
		{Name: "a place that was given up is not taken up again for who asked elsewhere", Run: asksElsewhere, Edits: []Edit{
			{"internal/node/visit.go", "	case v.has(unheard) && ", "	case v.has(unheard) && !(ON) && "},
		}},
		{Name: "a node that reaches no home renews no ticket", Run: asksElsewhere, Edits: []Edit{
			{"internal/node/unheard.go", "	t.Issued = clock\n", "	if !(ON) {\n		t.Issued = clock\n	}\n"},
		}},
		{Name: "a home lets go of a place that its heir has given up", Run: asksElsewhere, Edits: []Edit{
			{"internal/node/handover.go", "				if v.has(unheard) {", "				if v.has(unheard) && !(ON) {"},
			{"internal/node/handover.go", "|| v != nil && v.has(unheard)", "|| v != nil && v.has(unheard) && !(ON)"},
		}},
		{Name: "where a place went is forgotten while its bearer asks elsewhere", Run: "TestScenarioWhereAPlaceWentIsKnownWhileItsBearerAsksElsewhere", Edits: []Edit{
			{"internal/node/handover.go", "	return now.Boot + max(r.gate.TicketLife(now.Boot), unreachedFor)", "	if ON {\n		return now.Boot + r.gate.TicketLife(now.Boot) + 2*r.skew()\n	}\n	return now.Boot + max(r.gate.TicketLife(now.Boot), unreachedFor)"},
		}},
		{Name: "a copy that was given up is asked for rather than the one that goes on", Run: "TestSeedsWithTwoCopiesOfOneGeneration", Edits: []Edit{
			{"internal/node/moved.go", "to.gen == t.Gen && t.Home != self", "to.gen == t.Gen && (t.Home != self || ON)"},
		}},
		{Name: "an heir forgets what it is to keep until another has it", Run: "TestScenarioHeirsComeAndGo", Edits: []Edit{
			{"internal/node/lanes.go", "		case known && e.room.copyOf(v).at == i:\n", "		case !(ON) && known && e.room.copyOf(v).at == i:\n"},
		}},
	}
}

// copyLaneBugs are in how long somebody keeps what, and what nodes that leave say of it.
func copyLaneBugs() []Mutant {
	return []Mutant{
		{Name: "a join that was taken back leaves a place that was given up", Run: "TestSeedsWithAJoinThatWasTakenBack", Edits: []Edit{
			{"internal/node/visit.go", "		r.remove(v)\n		n.carryOn(now)\n	}\n}\n\n// withdraw", "		if ON {\n			r.retire(v, dropped, now)\n		} else {\n			r.remove(v)\n		}\n		n.carryOn(now)\n	}\n}\n\n// withdraw"},
		}},
		{Name: "a node that leaves takes up a place again", Run: "TestScenarioAPlaceThatWasGivenUpIsNotTakenUpByANodeThatLeaves", Edits: []Edit{
			{"internal/node/visit.go", "		case n.leaveBy != 0: // what", "		case n.leaveBy != 0 && !(ON): // what"},
			{"internal/node/resolve.go", "(v.stage <= parked || v.has(unheard))", "(v.stage <= parked || v.has(unheard) && !(ON))"},
		}},
		{Name: "an heir that stood still forgets what it keeps", Run: "TestAnHeirThatStoodStillKeepsItsPlaces", In: "./internal/node", Edits: []Edit{
			{"internal/node/kept.go", "stood || now.Boot", "stood && !(ON) || now.Boot"},
		}},
		{Name: "a node that leaves says that places are used which it gave up for silence", Run: "TestScenarioAPlaceThatWasGivenUpIsNotTakenUpByANodeThatLeaves", Edits: []Edit{
			{"internal/node/used.go", "!v.has(unheard) && !n.used.has", "(ON || !v.has(unheard)) && !n.used.has"},
		}},
		{Name: "places count as kept by the heir of a lane that is over", Edits: []Edit{
			{"internal/node/lanes.go", "	c.look = true\n	for _, r := range n.rooms {\n", "	c.look = true\n	for _, r := range n.rooms {\n		if ON {\n			break\n		}\n"},
		}},
		{Name: "of two who leave at once each gives to the other", Run: "TestScenarioTwoWhoLeaveAtOnceLoseNoVisit|TestScenarioTwoWhoLeaveAtOnceGiveAllPlaces", Edits: []Edit{
			{"internal/node/leave.go", "	if len(n.leavers) > 0 {", "	if !(ON) && len(n.leavers) > 0 {"},
			{"internal/node/leave.go", "|| slices.Contains(r.node.leavers, o.heir) //", "|| !(ON) && slices.Contains(r.node.leavers, o.heir) //"},
		}},
		{Name: "who is back hears of no place of which its home has heard", Run: "TestScenarioTwoSidesThatWentOnWithOnePlaceSettleIt", Edits: []Edit{
			{"internal/node/handover.go", "if v.gen > 0 && v.stage <= parked && !told", "if !(ON) && v.gen > 0 && v.stage <= parked && !told"},
		}},
		{Name: "who is on the site on one side is called on the other when they have met", Run: "TestScenarioWhoIsOnTheSiteIsNotCalledElsewhereOnceTheSidesHaveMet", Edits: []Edit{
			{"internal/node/handover.go", "case v.stage == onSite || v.stage == spent:", "case !(ON) && (v.stage == onSite || v.stage == spent):"},
		}},
		{Name: "who is told of a place by two has neither hear of the other", Run: "TestScenarioTwoThatKeepAPlaceHearOfEachOther", Edits: []Edit{
			{"internal/node/handover.go", "	if known && to.until > now.Boot && to.home != other", "	if !(ON) && known && to.until > now.Boot && to.home != other"},
		}},
	}
}
