package mends

// running are the tests with real processes that must fail too, by the name of the
// mend.
func running() map[string]Test {
	live := func(name, says string) Test { return Test{"internal/live", name, says} }
	return map[string]Test{
		"word of an older life of its name ends a node": live("TestForgedGossipEndsNobody", "no longer: the three that there were"),
		"missed calls are not counted":                  live("TestAttackNoShowsHoldTheLineByABoundOnly", "an honest visitor is not in after"),
		"nobody who answers keeps a name":               live("TestSecondProcessOfANameIsRefusedUntilTheFirstIsSilent", "end of the second one"),
		"who is silent keeps the name for ever":         live("TestSecondProcessOfANameIsRefusedUntilTheFirstIsSilent", "second one in the waves"),
		"calls of strangers are read at the peer port":  live("TestThePeerPortHasNothingForStrangers", "want Unimplemented that names node.grpc"),
		"any token does for any method":                 live("TestProgramsFromElsewhereDoWhatTheirTokensAllow", "want PermissionDenied"),
		"whoever is quiet keeps the connection":         live("TestAFloodOfConnectionsStarvesNoPort", "no admin flooded: the admin port answers"),
		"preflights are the origin's to answer":         live("TestAttackPreflightsReachNobody", "the origin saw"),
		"an address has any number of visits":           live("TestAttackOneAddressTakesEverySlot", "200 came in, want 50"),
		"who shows nothing gets the signing keys":       live("TestLocalUserWithoutTheKeyGetsNoSigningKeys", "nothing: a request is answered"),
		"who has another key gets the signing keys":     live("TestLocalUserWithoutTheKeyGetsNoSigningKeys", "a key of its own: a request is answered"),
		"a restart forgets used tickets":                live("TestAttackUsedTicketAfterARestart", "answers a used ticket with"),
		"a leave hands over no used tickets":            live("TestAttackUsedTicketAfterALeave", "answers a used ticket with"),
		"a path is read in one way only":                live("TestAttackNoPathLeadsAroundARoom", "and the origin saw"),
		"nobody looks whether a tunnel's visit goes on": live("TestAttackTunnelsEndWithTheVisit", "want an end within"),
		"a ticket has any number of watches":            live("TestOneTicketHoldsTwoStreams", "streams of one ticket are superseded"),
		"any number of bodies is on its way":            live("TestSlowBodiesKeepNobodyOut", "bodies on their way at once"),
		"the admin port goes by any name":               live("TestAForeignHostGetsNothingAtTheAdminPort", "want 403"),
		"a browser takes the ticket of a link":          live("TestAttackLinkPlantsATicket", "the browser has a place that it was not asked about"),
		"headers say which address was asked for":       live("TestAttackNothingOfOursIsSmuggled", "the origin saw"),
	}
}
