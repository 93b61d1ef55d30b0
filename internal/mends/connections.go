package mends

// connections are those of attack 4: a flood of them.
func connections() []Mend {
	return []Mend{
		{
			4, "one address may have all connections of a port",
			[]Edit{{"internal/conns/limiter.go", "p != nil && len(p.conns) >= l.perAddress()*groupTimes[i] {", "p != nil && !(ON) && len(p.conns) >= l.perAddress()*groupTimes[i] {"}},
			[]Test{{"internal/conns", "TestOneAddressDoesNotFillAPort", "160 connections, 0 evicted"}},
		},
		{
			4, "visitors may have all files",
			[]Edit{{"internal/conns/shares.go", "	s.Visitors = within(left/2, visitsMin, visitsMax)\n", "	if ON {\n		left = n\n	}\n	s.Visitors = within(left/2, visitsMin, visitsMax)\n"}},
			[]Test{{"internal/conns", "TestSharesLeaveFilesForTheNodeItself", "are left for the node"}},
		},
	}
}
