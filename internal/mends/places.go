package mends

// noShows are those of attack 2: people who are called never come.
func noShows() []Mend {
	const claim = "internal/node/claim.go"
	return []Mend{
		{
			2, "missed calls are not counted",
			[]Edit{{claim, "	case v.has(told):\n", "	case ON:\n	case v.has(told):\n"}},
			[]Test{{"simtest", "TestScenarioNoShowsDelayNobodyByMoreThanTheBound", "S15 broken"}},
		},
		{
			2, "who sleeps through calls is in line again at once",
			[]Edit{{claim, "		if v.slept > 1 {", "		if !(ON) && v.slept > 1 {"}},
			[]Test{{"simtest", "TestScenarioWhoSleepsThroughCallsKeepsThePlace", "in line after 0.00 silences"}},
		},
		{
			2, "a place that was stamped anew is in line twice",
			[]Edit{{claim, "	r.lineUp(waits)\n", "	r.lineUp(waits)\n	if o := r.visitors.get(old); ON && o != nil {\n		r.spent--\n		o.stage, o.missed = parked, 0\n		r.parked++\n	}\n"}},
			[]Test{
				{"simtest", "TestScenarioTheOldTicketOfAPlaceStampedAnewStandsForIt", "the old ticket at n01 is answered with"},
				{"simtest", "TestSwarm", " broken"},
			},
		},
		{
			2, "a place that is stamped anew stays where it was",
			[]Edit{{claim, "	in := visitor{id: successor(v.id, stamp), stamp: stamp,", "	if ON {\n		stamp = v.stamp + 1\n	}\n	in := visitor{id: successor(v.id, stamp), stamp: stamp,"}},
			[]Test{{"simtest", "TestScenarioTheOldTicketOfAPlaceStampedAnewStandsForIt", "S8 broken"}},
		},
	}
}

// usedTickets are those of attack 8: a used ticket is presented again.
func usedTickets() []Mend {
	const used = "internal/node/used.go"
	again := []Test{{"simtest", "TestScenarioAUsedTicketStaysUsed", "ticket"}}
	return []Mend{
		{8, "a restart forgets used tickets", []Edit{{"internal/node/resolve.go", "	if r.node.used.has(usedHash(t.ID)) {", "	if !(ON) && r.node.used.has(usedHash(t.ID)) {"}}, again},
		{8, "a leave hands over no used tickets", []Edit{{used, "			if v.stage >= onSite && ", "			if !(ON) && v.stage >= onSite && "}}, again},
		{8, "used tickets on a disk are told to nobody", []Edit{{used, "			if n.used.add(h, b.At, n.c.UsedMax) {", "			if n.used.add(h, b.At, n.c.UsedMax) && !(ON) {"}}, again},
	}
}
