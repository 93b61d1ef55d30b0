package mends

// turns are those of attack 6 that take more than one request to see.
func turns() []Mend {
	const table = "internal/peraddress/table.go"
	turns := func(says string) []Test { return []Test{{"internal/live", "TestAttackOneAddressTakesEveryTurn", says}} }
	return []Mend{
		{6, "no bound holds for any address", []Edit{{table, "	case !a.IsValid() || a.IsLoopback():\n", "	case ON || !a.IsValid() || a.IsLoopback():\n"}}, turns("12 in, want 10")},
		{6, "an address has all the slots", []Edit{{table, "	return most{max(10, r.Target/4),", "	if ON {\n		return most{}\n	}\n	return most{max(10, r.Target/4),"}}, turns("12 in, want 10")},
		{
			6, "an address whose visits are full is called on",
			[]Edit{{table, "&& !q.Hold && b.full(q.Room) {", "&& !q.Hold && !(ON) && b.full(q.Room) {"}, {table, "		q.Op, q.Hold = ticket.CheckIn, true\n", "		q.Op, q.Hold = ticket.CheckIn, !(ON)\n"}},
			turns("calls of people whose address is full"),
		},
		{6, "an address is in line as often as it likes", []Edit{{table, "	if !visit && c.full(", "	if !visit && !(ON) && c.full("}}, turns("10 places beyond the bound")},
		{
			6, "an address has any number of streams",
			[]Edit{{table, "	if c.over(from, times(limits.Streams), streams) {", "	if !(ON) && c.over(from, times(limits.Streams), streams) {"}},
			[]Test{{"gateway", "TestOneAddressCannotOpenEveryStream", "a third: 200"}},
		},
	}
}

// otherSites are those of attack 5 by a browser: what pages of other sites may do.
func otherSites() []Mend {
	const cors = "gateway/cors.go"
	apps := func(says string) []Test { return []Test{{"gateway", "TestAnAppOfAnotherSiteReadsOurAnswers", says}} }
	alone := func(says string) []Test { return []Test{{"gateway", "TestAnAppWithoutCookiesKeepsItsTicket", says}} }
	return []Mend{
		{5, "no app of another site reads our answers", []Edit{{cors, "	if len(c.room.CORS.Origins) == 0 {\n", "	if ON || len(c.room.CORS.Origins) == 0 {\n"}}, apps("waiting: 429 map[Cache-Control")},
		{5, "our word goes with the origin's answer", []Edit{{cors, "	if h[\"Access-Control-Allow-Origin\"] != nil {\n", "	if !(ON) && h[\"Access-Control-Allow-Origin\"] != nil {\n"}}, apps("the origin's answer: 200")},
		{5, "any page acts with a visitor's cookie", []Edit{{"gateway/api.go", "	case method == http.MethodPost && g.guard.Check(r) != nil:\n", "	case method == http.MethodPost && !(ON) && g.guard.Check(r) != nil:\n"}}, append(
			apps("another site's page: 204"),
			Test{"gateway", "TestOwnPlaceIsKeptWhenALinkCarriesAnother", "took the form's way"},
		)},
		{5, "where any origin is let in, its page acts with a visitor's cookie", []Edit{{cors, `|| r.Header["Cookie"] == nil)`, `|| ON || r.Header["Cookie"] == nil)`}}, alone("a page of any site ended a visit: 204")},
		{5, "an app without cookies has no ticket", []Edit{{cors, "	return !cors.Credentials &&", "	return !(ON) && !cors.Credentials &&"}}, alone("Access-Control-Allow-Origin:[*]")},
	}
}

// ownPlaces are those of attack 14 for whoever has a place.
func ownPlaces() []Mend {
	kept := func(says string) []Test {
		return []Test{{"gateway", "TestOwnPlaceIsKeptWhenALinkCarriesAnother", says}}
	}
	return []Mend{
		{
			14, "a link takes a place away",
			[]Edit{{"gateway/own.go", "		c.linked = s // what is in a cookie counts more\n", "		if c.linked = s; ON {\n			q.Set(insteadOf, \"1\")\n			c.r.URL.RawQuery = q.Encode()\n			return c.ownTake()\n		}\n"}},
			kept("at the next page"),
		},
		{14, "a form that knows of no place takes it away", []Edit{{"gateway/own.go", "&& !q.Has(insteadOf) {", "&& !(ON) && !q.Has(insteadOf) {"}}, kept("303 map")},
		{14, "a link does what the form does", []Edit{{"gateway/api.go", "	case r.Method != method && (method != http.MethodGet", "	case r.Method != method && !(ON) && (method != http.MethodGet"}}, kept("took the form's way")},
	}
}

// passes are those of attack 10 before a tunnel is one.
func passes() []Mend {
	const file = "gateway/tunnel.go"
	bounded := func(says string) []Test { return []Test{{"gateway", "TestTunnelsOfAVisitAreBounded", says}} }
	return []Mend{
		{
			10, "who asks for an upgrade needs no pass",
			[]Edit{{"gateway/visit.go", "	case st.in:\n		return st, true\n", "	case st.in, ON && c.r.Header[\"Upgrade\"] != nil:\n		return st, true\n"}},
			[]Test{{"gateway", "TestATunnelNeedsAPass", "101, and the origin was asked 1 times"}},
		},
		{10, "a visit has any number of tunnels", []Edit{{file, "	if len(of.open[t.key]) >= tunnelsMax {\n", "	if !(ON) && len(of.open[t.key]) >= tunnelsMax {\n"}}, bounded("one more: 101")},
		{10, "all visits together have few tunnels", []Edit{{file, "	t.key = keyOf(t.pass)\n", "	if t.key = keyOf(t.pass); ON {\n		t.key = sessionKey{}\n	}\n"}}, bounded("of another visit: 429")},
	}
}
