package mends

// connections are those of attack 4: a flood of them.
func connections() []Mend {
	const file, pool = "internal/conns/limiter.go", "internal/conns/pool.go"
	return []Mend{
		{
			4, "one address may have all connections of a port",
			[]Edit{{file, "p != nil && len(p.conns) >= l.perAddress()*groupTimes[i] {", "p != nil && !(ON) && len(p.conns) >= l.perAddress()*groupTimes[i] {"}},
			[]Test{{"internal/conns", "TestOneAddressDoesNotFillAPort", "160 connections, 0 evicted"}},
		},
		{
			4, "a household has as many connections as addresses",
			[]Edit{{"internal/conns/address.go", "	g[0], _ = a.Prefix(64)", "	if ON {\n		g[0], _ = a.Prefix(128)\n		return g\n	}\n	g[0], _ = a.Prefix(64)"}},
			[]Test{{"internal/conns", "TestWhoCountsAsOneAddress", "an IPv6 /64: 100 connections, want 20"}},
		},
		{
			4, "an address whose connections are all busy gets more",
			[]Edit{{file, "	case full && victim == nil:\n", "	case full && victim == nil && !(ON):\n"}, {file, "	case full:\n		_ = victim.Close()", "	case victim != nil:\n		_ = victim.Close()"}},
			[]Test{
				{"internal/conns", "TestAnAddressWhoseConnectionsAllCarryRequestsIsRefused", "an address got more than its part"},
				{"internal/conns", "TestNewcomersAreRefusedOnlyWhenAllCarryRequests", "one too many is still open"},
			},
		},
		{
			4, "a port has any number of connections",
			[]Edit{{file, "	if !full && len(l.all.conns) >= l.max {", "	if !full && !(ON) && len(l.all.conns) >= l.max {"}},
			[]Test{{"internal/conns", "TestWhoeverHoldsAConnectionForNothingMakesWay", "4 connections and 0 refused after 1 came"}},
		},
		{
			4, "whoever is quiet keeps the connection",
			[]Edit{{pool, "			if since := c.quietSince(); since > 0 {", "			if since := c.quietSince(); since > 0 && !(ON) {"}},
			[]Test{
				{"internal/conns", "TestWhoeverHoldsAConnectionForNothingMakesWay", "is still open"},
				{"internal/conns", "TestVisitorsGetThroughAFlood", "a visitor: "},
			},
		},
		{
			4, "any quiet connection makes way, not the longest",
			[]Edit{{pool, "cmp.Compare(a.since, b.since)", "func() int {\n			if ON {\n				return cmp.Compare(b.since, a.since)\n			}\n			return cmp.Compare(a.since, b.since)\n		}()"}},
			[]Test{{"internal/conns", "TestTheLongestIdleGoesFirst", "the one that was idle for longest"}},
		},
		{
			4, "a call over gRPC does not keep its connection",
			[]Edit{{"internal/conns/grpc.go", "	return l.from[at]\n", "	if ON {\n		return nil\n	}\n	return l.from[at]\n"}},
			[]Test{{"internal/conns", "TestCallsOverGRPCKeepTheirConnection", "want"}},
		},
		{
			4, "visitors may have all files",
			[]Edit{{"internal/conns/shares.go", "	s.Visitors = within(left/2, visitsMin, most)\n", "	if ON {\n		left = n\n	}\n	s.Visitors = within(left/2, visitsMin, most)\n"}},
			[]Test{{"internal/conns", "TestSharesLeaveFilesForTheNodeItself", "are left for the node"}},
		},
	}
}
