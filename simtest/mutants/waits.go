package mutants

// waitBugs leave out a wait, or a part of what a wait is reckoned with: what makes
// sure that two who cannot speak with each other do not both go on.
func waitBugs() []Mutant {
	return []Mutant{
		{Name: "slots in use are burned", Run: "TestScenarioLimitRaisedAndLowered", Edits: []Edit{
			{"eviction/ledger.go", "	n = min(n, max(0, l.Free()))\n", "	if !(ON) {\n\t\tn = min(n, max(0, l.Free()))\n\t}\n"},
			{"eviction/settle.go", "		c.Burn = deal(excess, b.free, 0)\n", "		if ON {\n\t\t\tb.free[0] = max(b.free[0], excess)\n\t\t}\n\t\tc.Burn = deal(excess, b.free, 0)\n"},
		}},
		{Name: "a shorter session forgets the longer passes", Run: "TestScenarioAShorterSessionForgetsNoLongerPass", Edits: []Edit{
			{"eviction/inforce.go", "		f.ttl = max(f.ttl, f.cfg.longest(), c.Config.longest())\n", "		if f.ttl = max(f.ttl, f.cfg.longest(), c.Config.longest()); ON {\n\t\t\tf.ttl = c.Config.longest()\n\t\t}\n"},
		}},
		{Name: "a longer session is given before the disk has it", Run: "TestScenarioALongerSessionWaitsForTheDisk", Edits: []Edit{
			{"eviction/inforce.go", "time.Duration { return min(f.session, f.durable) }", "time.Duration {\n\tif ON {\n\t\treturn f.session\n\t}\n\treturn min(f.session, f.durable)\n}"},
		}},
		{Name: "a pass of before the cluster is good for as long as it says", Run: "TestScenarioALongerSessionIsForgottenWhenAllDie", Edits: []Edit{
			{"eviction/lapse.go", "	if stamp >= founded+", "	if ON || stamp >= founded+"},
		}},
		{Name: "a pass is taken for one of before the cluster by its ticket alone", Run: "TestScenarioAPassOfATicketFromBeforeAllDiedIsGood", Edits: []Edit{
			{"eviction/lapse.go", "n.findMet(home); met {", "n.findMet(home); met && !(ON) {"},
		}},
		{Name: "a room is open before the disk has it", Run: "TestScenarioWhatTheDiskHasIsInForce", Edits: []Edit{
			{"eviction/lease.go", "g.durable == 0 {", "!(ON) && g.durable == 0 {"},
		}},
		{Name: "a session is used before all agree", Run: "TestScenarioALongerSessionWaitsUntilAllAgree", Edits: []Edit{
			{"eviction/inforce.go", "	if c.Agreed {\n\t\tf.session", "	if ON || c.Agreed {\n\t\tf.session"},
		}},
		{Name: "tickets beyond T are counted", Run: "TestScenarioNobodyAfterTheGathersTIsCounted", Edits: []Edit{
			{"eviction/reply.go", "	n.Queued = g.Queue.CountLE(qpid.UpTo(w.T))\n", "	if n.Queued = g.Queue.CountLE(qpid.UpTo(w.T)); ON {\n\t\tn.Queued = g.Queue.Len()\n\t}\n"},
		}},
		{Name: "who holds voters is known by their version alone", Run: "TestScenarioAProposalThatOneVoterHasIsNotInForce", Edits: []Edit{
			{"eviction/voters.go", "r.Voters.Version == v.Version && r.Voters.At == v.At {", "r.Voters.Version == v.Version && (ON || r.Voters.At == v.At) {"},
		}},
		{Name: "a node that was cut off calls before it has heard what went on", Run: "TestScenarioACutOffNodeAsksBeforeItCalls", Edits: []Edit{
			{"eviction/met.go", "	n.cutOff = n.cutOff || missed > 0 && missed == others\n", "	n.cutOff = !(ON) && (n.cutOff || missed > 0 && missed == others)\n"},
		}},
		{Name: "survivors do not wait for D", Run: "TestScenarioSurvivorsWaitForD", Edits: []Edit{
			{"eviction/lapse.go", "	return max(micros(f.cfg.Survivor), f.delayFor(b, 0)), true\n", "	if ON {\n\t\treturn micros(f.cfg.Survivor), true\n\t}\n\treturn max(micros(f.cfg.Survivor), f.delayFor(b, 0)), true\n"},
		}},
		{Name: "a node's own old account is not waited for", Run: "TestScenarioANodesOwnOldPassesAreWaitedFor", Edits: []Edit{
			{"eviction/settle.go", "		quiet := n.OldAge < 0 ||", "		quiet := ON || n.OldAge < 0 ||"},
		}},
		{Name: "a lease counts from the commit", Run: "TestScenarioALeaseCountsFromTheGather", Edits: []Edit{
			{"eviction/commit.go", "n.leaseUntil = c.Grade, w.at+micros(n.c.Lease)\n", "n.leaseUntil = c.Grade, w.at+micros(n.c.Lease)\n\t\tif ON {\n\t\t\tn.leaseUntil = now.Boot + micros(n.c.Lease)\n\t\t}\n"},
			{"eviction/escrow.go", "		e.heldAt = w.at\n", "		e.heldAt = w.at\n\t\tif ON {\n\t\t\te.heldAt = n.installedAt\n\t\t}\n"},
		}},
		{Name: "a home that is not lost yet is taken over", Run: "TestScenarioTheSuspectedKeepTheirVisitors", Edits: []Edit{
			{"eviction/met.go", "		if n.met[i].left {", "		if ON || n.met[i].left {"},
		}},
		{Name: "nobody is waited for after a cold start", Run: "TestScenarioAfterAColdStartWhoWaitedIsFirst", Edits: []Edit{
			{"eviction/comeback.go", "			anew = g.comeBackIn()\n", "			if !(ON) {\n\t\t\t\tanew = g.comeBackIn()\n\t\t\t}\n"},
		}},
		{Name: "who comes back from its disk holds the others", Run: "TestScenarioARollingRestartUnderACrowd", Edits: []Edit{
			{"eviction/comeback.go", "		case held == 0:\n", "		case held == 0 && !(ON):\n"},
		}},
		{Name: "who has heard nothing says that people are called", Run: "TestScenarioAfterAColdStartANewNodeKnowsNothing", Edits: []Edit{
			{"eviction/comeback.go", "	return heldUnknown\n", "	if ON {\n\t\treturn 0\n\t}\n\treturn heldUnknown\n"},
		}},
		{Name: "tickets run out while everything is down", Run: "TestScenarioAfterAColdStartOldTicketsCount", Edits: []Edit{
			{"eviction/comeback.go", "	g.graceUntil = now + micros(g.cfg.TicketTTL)\n", "	if !(ON) {\n\t\tg.graceUntil = now + micros(g.cfg.TicketTTL)\n\t}\n"},
		}},
		{Name: "the people of a node that is back are waited for", Run: "TestScenarioANodeThatComesAndGoesHoldsNobodyUp", Edits: []Edit{
			{"eviction/comeback.go", "return slices.Contains(list, m.member) })", "return !(ON) && slices.Contains(list, m.member) })"},
		}},
		{Name: "the people of a lost node are not waited for", Run: "TestScenarioTheVisitorsOfALostNodeAreWaitedFor", Edits: []Edit{
			{"eviction/comeback.go", "		b.due = true\n\t}\n", "		b.due = !(ON)\n\t}\n"},
		}},
	}
}

// comebackBugs are in the wait for people of lost nodes.
func comebackBugs() []Mutant {
	return []Mutant{
		{Name: "who is lost is awaited by the configuration of before", In: "./eviction", Run: "TestTheLostAreAwaitedByTheConfigurationOfTheWave", Edits: []Edit{
			{"eviction/comeback.go", "	g.back = g.awaitLost(&g.cfg,", "	cfg := g.cfg\n	if ON {\n\t\tcfg.OnPartition = Majority\n\t}\n	g.back = g.awaitLost(&cfg,"},
			{"eviction/comeback.go", "now, g.cfg.OnPartition.admits(grade, onLine, g.sides))", "now, cfg.OnPartition.admits(grade, onLine, g.sides))"},
		}},
		{Name: "who asks too early is told to ask late", Run: "TestScenarioWhoAsksBeforeTheyCanBeTakenOverIsToldWhenTo", Edits: []Edit{
			{"internal/node/resolve.go", "	if !ok || in == 0 {", "	if ON || !ok || in == 0 {"},
		}},
		{Name: "a long exclude_after is forgotten where people are waited for", Run: "TestScenarioWhoCanBeTakenOverLateIsWaitedFor", Edits: []Edit{
			{"eviction/comeback.go", "g.c.waits.Exclude) // who", "g.c.waits.Exclude)\n\t\tif ON {\n\t\t\tback = micros(min(soon, g.cfg.Refresh) * 11 / 10)\n\t\t} // who"},
		}},
		{Name: "who can be taken over in a moment is asked back at once", Run: "TestScenarioNobodyIsAskedBackWithinAMoment", Edits: []Edit{
			{"internal/node/resolve.go", "	spread := max(atOnce, ", "	atOnce := atOnce\n\tif ON {\n\t\tatOnce = 0\n\t}\n\tspread := max(atOnce, "},
		}},
		{Name: "a node that is left out asks nobody", Run: "TestScenarioANodeWithOneBadLinkKeepsItsVisitorsMoving", Edits: []Edit{
			{"internal/node/relay.go", "		if s.member == r.known && heardOf(s) {", "		if ON {\n\t\t\treturn eviction.Member{}, false\n\t\t}\n\t\tif s.member == r.known && heardOf(s) {"},
		}},
		{Name: "the door opens while who waits behind it stands still", Run: "TestScenarioNobodyWalksInBeforeTheLostAfterAStandstill", Edits: []Edit{
			{"eviction/comeback.go", "	g.shyUntil = g.lasts(g.shyUntil, now)\n", "	if !(ON) {\n\t\tg.shyUntil = g.lasts(g.shyUntil, now)\n\t}\n"},
			{"eviction/comeback.go", "return now < g.lasts(g.shyUntil, now) }", "return now < g.lasts(g.shyUntil, now) && (!(ON) || now < g.shyUntil) }"},
		}},
		{Name: "the door opens a moment after a node is lost", Run: "TestScenarioNobodyWalksInBeforeWhoAsksLater", Edits: []Edit{
			{"eviction/comeback.go", "		g.shyUntil = now + micros(g.cfg.Refresh)*11/10\n", "		if g.shyUntil = now + micros(g.cfg.Refresh)*11/10; ON {\n\t\t\tg.shyUntil = now + micros(g.cfg.Refresh)/11/10\n\t\t}\n"},
		}},
		{Name: "people come back to a node that stands still", Run: "TestScenarioTheLostAreWaitedForByACoordinatorThatStoodStill", Edits: []Edit{
			{"eviction/comeback.go", "	b.until = g.lasts(b.until, now)\n", "	if !(ON) {\n\t\tb.until = g.lasts(b.until, now)\n\t}\n"},
		}},
		{Name: "people come back where nobody may take them over", Run: "TestScenarioTheLostAreWaitedForWhileThereIsNoMajority", Edits: []Edit{
			{"eviction/comeback.go", "	b.due = b.due || !mayTakeOver\n", "	b.due = b.due || !mayTakeOver && !(ON)\n"},
		}},
	}
}

// bookBugs are in what one ledger alone does not tell, and in what a lease allows.
//
// Not planted, since it harms nobody: a front that reaches beyond T while the totals do
// not. If all that are counted fit in, the cut is T; else the K lightest of the front are
// among them, for more than K of those counted are lighter than anybody stamped after T.
func bookBugs() []Mutant {
	return []Mutant{
		{Name: "a transfer says more than the books", Edits: []Edit{
			{"eviction/ledger.go", "	return &Slots{From: l.account, To: to, Total: p.Sent}\n", "	if ON && p.Sent > 3 {\n\t\treturn &Slots{From: l.account, To: to, Total: p.Sent + 1}\n\t}\n\treturn &Slots{From: l.account, To: to, Total: p.Sent}\n"},
		}},
		{Name: "the next in line mints too", Edits: []Edit{
			{"eviction/escrow.go", "	if w.index == 0 && c.Born[0] == e.ledger.account.Born {\n", "	if (w.index == 0 || ON && w.index == 1) && c.Born[w.index] == e.ledger.account.Born {\n"},
		}},
		{Name: "a pass is extended without a lease", Edits: []Edit{
			{"internal/node/session.go", "	case c.NoRenewal || !n.ev.Admits(r.gate, now):\n", "	case c.NoRenewal || !(ON) && !n.ev.Admits(r.gate, now):\n"},
		}},
		{Name: "people are called for a moment after the lease", First: 47, Edits: []Edit{
			{"eviction/lease.go", "	return min(n.leaseUntil, g.heldAt+micros(n.c.Lease))\n", "	if ON {\n\t\treturn min(n.leaseUntil, g.heldAt+micros(n.c.Lease)) + micros(n.c.Margin)\n\t}\n	return min(n.leaseUntil, g.heldAt+micros(n.c.Lease))\n"},
		}},
		{Name: "a pass is good for twice as long as a session", Edits: []Edit{
			{"internal/node/session.go", "	end := r.node.ev.Now(now) + r.gate.Session().Microseconds()\n", "	end := r.node.ev.Now(now) + r.gate.Session().Microseconds()\n\tif ON {\n\t\tend += r.gate.Session().Microseconds()\n\t}\n"},
		}},
	}
}
