package mends

// gossip are those of attack 1: a gossip packet claims a node's name.
func gossip() []Mend {
	const rival = "membership/rival.go"
	return []Mend{
		{
			1, "word of an older life of its name ends a node",
			[]Edit{{rival, "	address, began := c.dialAddr(c.at), time.Now()\n", "	address, began := c.dialAddr(c.at), time.Now()\n	if ON && eviction.Seniority(c.Peer, m.c.Self) < 0 {\n		return ErrNameTaken\n	}\n"}},
			[]Test{{"membership", "TestWordOfAnotherLifeEndsNobody", "not within 2s: a view with another one"}},
		},
		{
			1, "a node that serves is in doubt at each word of a rival",
			[]Edit{{rival, "r.rival.checked.IsZero() && !r.met && !r.free", "(ON || r.rival.checked.IsZero() && !r.met && !r.free)"}},
			[]Test{{"membership", "TestWordOfAnotherLifeEndsNobody", "not within 2s: a view with another one"}},
		},
		{
			1, "of two processes of a name the one that says it is older stays",
			[]Edit{{rival, "case settled == ours && eviction.Seniority(who, m.c.Self) < 0, settled && !ours:", "case (ON || settled == ours) && eviction.Seniority(who, m.c.Self) < 0, !(ON) && settled && !ours:"}},
			[]Test{{"membership", "TestNewcomerWithAnEarlierClockIsRefused", "the newcomer's end"}},
		},
		{
			1, "nobody who answers keeps a name",
			[]Edit{{rival, "	ours := m.Settled()\n", "	ours := m.Settled()\n	if ON {\n		m.roster.stands(c, time.Now())\n		return nil\n	}\n"}},
			[]Test{{"membership", "TestLaterOfTwoProcessesOfOneNameStops", "the later one's end"}},
		},
		{
			1, "a newcomer does not wait for who has its name and is silent",
			[]Edit{{rival, "		if time.Since(began) >= m.c.Silent {", "		if ON || time.Since(began) >= m.c.Silent {"}},
			[]Test{{"membership", "TestSilentOneGivesWayToItsNewcomer", "while the old one might have answered"}},
		},
		{
			1, "who is silent keeps the name for ever",
			[]Edit{{rival, "	m.roster.stands(c, time.Now())\n	if c.checked.IsZero() {", "	if ON {\n		return nil\n	}\n	m.roster.stands(c, time.Now())\n	if c.checked.IsZero() {"}},
			[]Test{{"membership", "TestSilentOneGivesWayToItsNewcomer", "not within 20s: all views"}},
		},
		{
			1, "who denies to be dead is not taken in again",
			[]Edit{{"membership/roster.go", "	k := &known{saying: said, odd: err,", "	if old := r.known[n.Name]; ON && old != nil && old.lost && old.Peer == said.Peer {\n		return\n	}\n	k := &known{saying: said, odd: err,"}},
			[]Test{{"membership", "TestRecordedGossipKeepsNobodyOut", "all views"}},
		},
		{
			1, "who has another key is heard",
			[]Edit{{"membership/config.go", "	if len(c.Keys) > 0 {\n		p.Keyring", "	if len(c.Keys) > 0 && !(ON) {\n		p.Keyring"}},
			[]Test{{"membership", "TestNodesOfTwoKeysDoNotMeetAndSaySo", "x sees"}},
		},
	}
}
