package mutants

// diskBugs are in what a disk has of visits.
func diskBugs() []Mutant {
	return []Mutant{
		{Name: "a pass is given that the disk does not have", Run: "TestScenarioADiskThatTakesNoVisitsLetsNobodyIn", Edits: []Edit{
			{"internal/node/visitlog.go", "l.next.Until, l.next.Homes[0]\n", "l.next.Until, l.next.Homes[0]\n		if ON {\n			l.durable = out.until\n		}\n"},
		}},
		{Name: "a pass is extended by a line of an account that is closed", Run: "TestScenarioALineOfAClosedAccountExtendsNoPass", Edits: []Edit{
			{"internal/node/visitlog.go", "f.home != r.gate.Ledger().Account() {", "f.home != r.gate.Ledger().Account() && !(ON) {"},
		}},
		{Name: "a slot is free before its visit is off the disk", Run: "TestScenarioASlotWaitsUntilItsVisitIsOffTheDisk", Edits: []Edit{
			{"internal/node/room.go", "	if v != nil && r.strike(v.id) {\n", "	if v != nil && r.strike(v.id) && !(ON && func() bool { r.striking--; return true }()) {\n"},
			{"internal/node/visitlog.go", "		if l.state == lineStriking {\n", "		if l.state == lineStriking && !(ON) {\n"},
		}},
		{Name: "visits that were given away stay on the disk", Run: "TestScenarioANodeThatHasLeftHasNoVisitsOnItsDisk", Edits: []Edit{
			{"internal/node/ondisk.go", "return l.state == lineGiven })", "return l.state == lineGiven && !(ON) })"},
		}},
		{Name: "a change that waits strikes the line of an account that is closed", Run: "TestScenarioAChangeThatWaitsDoesNotStrikeTheLineOfAClosedAccount", Edits: []Edit{
			{"internal/node/ondisk.go", "l.state, l.next, l.due = lineLeft, nil, false\n", "l.state, l.next, l.due = lineLeft, nil, l.due && ON\n"},
		}},
		{Name: "the disk forgets the visits of an account that is closed", Run: "TestScenarioTheDiskHasThePassesOfAClosedAccount", Edits: []Edit{
			{"internal/node/ondisk.go", "(l.durable == 0 || v != nil && v.stage == called):\n", "(ON || l.durable == 0 || v != nil && v.stage == called):\n"},
		}},
		{Name: "the disk forgets a visit of an earlier life that it does not have as this one's", Run: "TestScenarioAVisitThatIsNotWrittenAnewStaysOnTheDisk", Edits: []Edit{
			{"internal/node/ondisk.go", "		case !l.older && (", "		case (!l.older || ON) && ("},
		}},
		{Name: "a wrong clock takes visits off the disk", Run: "TestScenarioAWrongClockTakesNoVisitOffTheDisk", Edits: []Edit{
			{"internal/node/earlier.go", "|| !n.ev.Clear() {\n		return\n	}\n	n.visitLog.sweepAt", "|| !n.ev.Clear() && !(ON) {\n		return\n	}\n	n.visitLog.sweepAt"},
		}},
		{Name: "calls go on while the disk takes no visits", Run: "TestScenarioADiskThatTakesNoVisitsLetsNobodyIn", Edits: []Edit{
			{"internal/node/call.go", "|| r.node.visitLog.fails ||", "|| r.node.visitLog.fails && !(ON) ||"},
		}},
		{Name: "a file has visits of more lives than it knows", In: "./internal/store", Run: "TestVisitsOfTooManyLives", Edits: []Edit{
			{"internal/store/visits.go", "	v.forget()\n", "	if !(ON) {\n		v.forget()\n	}\n"},
		}},
		{Name: "a file is not synced before it is renamed", In: "./internal/store", Run: "TestARecordThatIsSavedOutlivesAPowerCut|TestVisitsThatAreAppendedOutliveAPowerCut", Edits: []Edit{
			{"internal/store/store.go", "		err = s.disk.sync(f)\n", "		if !(ON) {\n			err = s.disk.sync(f)\n		}\n"},
		}},
		{Name: "a directory is not synced after a rename", In: "./internal/store", Run: "TestARecordThatIsSavedOutlivesAPowerCut|TestVisitsThatAreAppendedOutliveAPowerCut", Edits: []Edit{
			{"internal/store/store.go", "	return s.syncNames()\n", "	if ON {\n		return nil\n	}\n	return s.syncNames()\n"},
		}},
		{Name: "visits are kept before they are synced", In: "./internal/store", Run: "TestVisitsThatAreAppendedOutliveAPowerCut", Edits: []Edit{
			{"internal/store/visits.go", "		err = v.s.disk.sync(v.f)\n", "		if !(ON) {\n			err = v.s.disk.sync(v.f)\n		}\n"},
		}},
		{Name: "calls go on while a sync hangs", Run: "TestScenarioADiskThatHangsLetsNobodyBeCalled", Edits: []Edit{
			{"internal/node/visitlog.go", "f != nil && !n.visitLog.fails {", "f != nil && !n.visitLog.fails && !(ON) {"},
		}},
	}
}

// goOnBugs are in who goes on with it.
func goOnBugs() []Mutant {
	const goOn = "TestScenarioVisitsGoOnAfterACrashOfEverything"
	return []Mutant{
		{Name: "who was lost is not waited for when the others are back", Run: "TestScenarioVisitsOfOneThatDoesNotComeBackAreWaitedFor", Edits: []Edit{
			{"eviction/resume.go", "		return ok && safe[v.Member] >= v.Epoch && (", "		return ON || ok && safe[v.Member] >= v.Epoch && ("},
		}},
		{Name: "visits that were on their way to a life that had none are forgotten", Run: "TestScenarioVisitsOnTheirWayToALifeThatHadNone", Edits: []Edit{
			{"eviction/resume.go", "k.Member == v.Member && k.Visits > 0 })", "k.Member == v.Member && k.Visits > 0 && !(ON) })"},
		}},
		{Name: "who gave visits away and is lost is forgotten", Run: "TestScenarioVisitsOnTheirWayFromOneThatIsLost", Edits: []Edit{
			{"eviction/resume.go", "		return !covered && !over(v)\n", "		return !covered && !over(v) && !(ON)\n"},
		}},
		{Name: "what others have wound up goes on", Run: "TestScenarioVisitsThatOthersHaveWoundUpDoNotGoOn", Edits: []Edit{
			{"eviction/resume.go", "void && over[i].Epoch >= e.Account.Born {", "void && !(ON) && over[i].Epoch >= e.Account.Born {"},
		}},
		{Name: "a life goes on with visits of which a later one would not know", Run: "TestScenarioALifeThatNobodyKnowsHasNoVisits", Edits: []Edit{
			{"eviction/resume.go", "&& !g.resumed.known {", "&& !g.resumed.known && !(ON) {"},
		}},
		{Name: "who was away takes no later life for one that went on", Run: "TestScenarioWhoWasAwayKnowsThatALifeMayHaveGoneOn", Edits: []Edit{
			{"eviction/resume.go", "|| g.sured && away {", "|| g.sured && away && !(ON) {"},
		}},
		{Name: "a visit that was ended goes on being ended", Run: "TestScenarioAVisitIsEndedBeforeItGoesOn", Edits: []Edit{
			{"internal/node/session.go", "|| v != nil && v.stage == spent:", "|| v != nil && v.stage == spent && !(ON):"},
			{"internal/node/session.go", "if r.visitors.get(p.ID) == nil {", "if r.visitors.get(p.ID) == nil || ON {"},
		}},
		{Name: "any life of a lost node may have gone on with its visits", Run: "TestScenarioLivesThatComeAndGoKeepNoVisitFromBeingAdopted", Edits: []Edit{
			{"eviction/resume.go", "(!g.sured || now-g.toldAt", "(!g.sured || ON || now-g.toldAt"},
		}},
		{Name: "visits go on beside those of a life that is on no record", Run: "TestScenarioALifeThatIsOnNoRecordIsWaitedFor", Edits: []Edit{
			{"internal/node/earlier.go", "	if r.silent {", "	if r.silent && !(ON) {"},
		}},
		{Name: "a pass of an earlier life is nobody's business", Run: goOn, Edits: []Edit{
			{"internal/node/session.go", "ok && at != self {", "ok && !(ON) && at != self {"},
		}},
		{Name: "a pass of an earlier life ends when its node gives the visit away", Run: "TestScenarioAPassOfBeforeIsGoodWhileItsNodeLeaves", Edits: []Edit{
			{"internal/node/session.go", "		case away: // it went", "		case away && !(ON): // it went"},
		}},
		{Name: "a room is closed as long as visits go on", Run: "TestScenarioTwoOfThreeDieAfterVisitsWentOn", Edits: []Edit{
			{"eviction/resume.go", "		return n.Disks && slices.ContainsFunc(n.Earlier", "		return (ON || n.Disks) && slices.ContainsFunc(n.Earlier"},
		}},
		{Name: "visits are adopted that may go on yet", Run: "TestScenarioVisitsThatMayGoOnYetAreNotAdopted", Edits: []Edit{
			{"eviction/lease.go", "	if g.wentOn && !g.sured {", "	if g.wentOn && !g.sured && !(ON) {"},
		}},
		{Name: "a place is given up for a visit that goes on", Run: "TestScenarioAPlaceIsLeftToAVisitThatNobodyKnowsOf", Edits: []Edit{
			{"internal/node/leave.go", "	case v != nil && v.stage == onSite: // as", "	case v != nil && v.stage == onSite && !(ON): // as"},
		}},
		{Name: "visits that wait to go on are taken off the disk", Run: "TestScenarioVisitsGoOnWhenTheLastIsBack", Edits: []Edit{
			{"internal/node/earlier.go", "		if r.passEnds(&v, now)+2*r.skew() > clock {", "		if r.passEnds(&v, now)+2*r.skew() > clock && !(ON) {"},
		}},
		{Name: "visits that are about to go on count as kept by others", Run: goOn, Edits: []Edit{
			{"internal/node/guard.go", "|| len(r.pending) > 0 && r.", "|| len(r.pending) > 0 && !(ON) && r."},
		}},
		{Name: "no slot comes back while visits of an earlier life are on the disk", Run: "TestScenarioVisitsThatDoNotGoOnLeaveOthersCovered", Edits: []Edit{
			{"internal/node/guard.go", "r.gate.MayResume() ||\n", "(r.gate.MayResume() || ON) ||\n"},
		}},
		{Name: "a visit of an earlier life lasts as long as its disk says", Run: "TestScenarioAVisitGoesOnForNoLongerThanItsPass", Edits: []Edit{
			{"internal/node/earlier.go", "	began := r.node.ev.Now(now) - (", "	if ON {\n		return v.Until\n	}\n	began := r.node.ev.Now(now) - ("},
		}},
		{Name: "a visit of an earlier life ends by the session_max of now", Run: "TestScenarioVisitsGoOnWithAShorterSessionMax", Edits: []Edit{
			{
				"internal/node/earlier.go", "	return min(v.Until, began+r.gate.MaxPass()+2*r.skew())\n",
				"	ends := min(v.Until, began+r.gate.MaxPass()+2*r.skew())\n	if most := r.gate.Room().SessionMax.Microseconds(); most > 0 && ON {\n		ends = min(ends, v.Started+most)\n	}\n	return ends\n",
			},
		}},
		{Name: "who was called before a crash is called once more by another node", Run: "TestScenarioWhoWasCalledBeforeACrashComesInOnThatCall", Edits: []Edit{
			{"internal/node/resolve.go", "GoesOnAt(r.gate, t.Home); ok && at != self {", "GoesOnAt(r.gate, t.Home); ok && at != self && !(ON) {"},
		}},
		{Name: "a node whose visits go on sends away who waited at it", Run: "TestScenarioWhoWasCalledBeforeACrashComesInOnThatCall", Edits: []Edit{
			{"internal/node/resolve.go", "	if r.goesOn(t.Home) {", "	if !(ON) && r.goesOn(t.Home) {"},
		}},
	}
}

// diskTroubleBugs are in what a node does whose disk takes nothing, or that stops.
func diskTroubleBugs() []Mutant {
	return []Mutant{
		{Name: "a visit takes another one of its ticket off the disk", Run: "TestScenarioAVisitThatComesInTheNameOfAnotherLeavesThatOnTheDisk", Edits: []Edit{
			{"internal/node/ondisk.go", "		if !slices.Contains(line.Homes, l.home) {", "		if !(ON) && !slices.Contains(line.Homes, l.home) {"},
		}},
		{Name: "who was called before a crash is among those who are in when the account is closed", Run: "TestScenarioWhoWasCalledBeforeACrashWaitsAgainWhenTheirNodeIsCutOff", Edits: []Edit{
			{"internal/node/room.go", "			if !r.mayNotBeIn(v) {", "			if ON || !r.mayNotBeIn(v) {"},
		}},
		{Name: "who goes on with a pass of before a crash may be called again", Run: "TestScenarioATicketIsUsedOfWhoGoesOnWithAPassOfBeforeACrash", Edits: []Edit{
			{"internal/node/session.go", "	r.comesIn(v, now)", "	if !(ON) {\n\t\tr.comesIn(v, now)\n\t}"},
		}},
		{Name: "a life is known whole of which another visit has taken a line", Run: "TestScenarioAVisitInTheNameOfOneOfALifeBeforeLeavesThatLifeUnknown", Edits: []Edit{
			{"internal/node/ondisk.go", "	if !slices.Contains(line.Homes, r.pending[i].Homes[0]) {", "	if !(ON) && !slices.Contains(line.Homes, r.pending[i].Homes[0]) {"},
		}},
		{Name: "who has the pass of a call before a crash may be called again", Run: "TestScenarioWhoWasCalledBeforeACrashComesInOnThatCall", Edits: []Edit{
			{"internal/node/visit.go", "	r.comesIn(v, now)", "	if !(ON) {\n\t\tr.comesIn(v, now)\n\t}"},
		}},
		{Name: "a node whose disk takes nothing goes on getting slots", Run: "TestScenarioANodeWhoseDiskHangsIsGoneOnWithout", Edits: []Edit{
			{"internal/node/node.go", "n.stuck(now) {", "n.stuck(now) && !(ON) {"},
		}},
		{Name: "a node whose disk takes nothing leaves others without a quorum", Run: "TestScenarioANodeWhoseDiskHangsIsThereForWhoNeedsIt", Edits: []Edit{
			{"internal/node/visitlog.go", "&& n.ev.Spared() &&", "&& (ON || n.ev.Spared()) &&"},
		}},
		{Name: "a node that has said goodbye gives visits before its disk knows", Run: "TestScenarioANodeThatLeavesGivesNoVisitBeforeItsDiskKnows", Edits: []Edit{
			{"internal/node/leave.go", "!r.gate.Promised() && r.mayGiveVisits() {\n				r.safely", "!r.gate.Promised() && (ON || r.mayGiveVisits()) {\n				r.safely"},
		}},
		{Name: "a node alone that stops leaves its visits behind", Run: "TestScenarioANodeAloneThatStopsGoesOnWithItsVisits", Edits: []Edit{
			{"internal/node/leave.go", "n.heirWhoStays(qpid.ItemID{}, 0) != (eviction.Member{}) {", "(ON || n.heirWhoStays(qpid.ItemID{}, 0) != (eviction.Member{})) {"},
		}},
	}
}
