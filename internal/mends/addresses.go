package mends

// addresses are those of attack 6: one address takes all.
func addresses() []Mend {
	const table = "internal/peraddress/table.go"
	return []Mend{
		{
			6, "a visit that is extended goes on for ever",
			[]Edit{{"internal/node/session.go", "most > 0 {\n		end = ", "most > 0 && !(ON) {\n		end = "}},
			[]Test{{"internal/node", "TestAVisitEndsAtSessionMaxHoweverOftenItIsExtended", "still on the site after 1m0s"}},
		},
		{
			6, "an address joins as often as it likes",
			[]Edit{{table, "wait := c.join(from, b.limits.Joins, now); wait > 0 {", "wait := c.join(from, b.limits.Joins, now); wait > 0 && !(ON) {"}},
			[]Test{{"gateway", "TestOneAddressCannotFillTheQueue", "201"}},
		},
		{
			6, "an address has any number of visits",
			[]Edit{{table, "	if l.Active != Auto {\n", "	if ON {\n		return most{}\n	}\n	if l.Active != Auto {\n"}},
			[]Test{{"gateway", "TestOneAddressCannotTakeEverySlot", `201 {"room":"shop","state":"admitted"`}},
		},
		{
			6, "a program's address is not looked at",
			[]Edit{{"proto/waitingroom/waitingroom.go", "		by = peraddress.Visitor{Addr: addressOf(ctx), Room: &is}\n", "		if by.Room = &is; !(ON) {\n			by.Addr = addressOf(ctx)\n		}\n"}},
			[]Test{{"proto/waitingroom", "TestAProgramIsBoundedByItsAddress", "join 2: <nil>"}},
		},
		{
			6, "the people behind an address come one by one only",
			[]Edit{{"internal/peraddress/count.go", "max(c.addresses[a].ahead, now)+each-now-burst)\n", "max(c.addresses[a].ahead, now)+each-now-burst)\n		if ON {\n			wait = max(wait, c.addresses[a].ahead-now)\n		}\n"}},
			[]Test{{"internal/peraddress", "TestACampusBehindOneAddressGetsThrough", "{people:1000 within:1 served:20}"}},
		},
	}
}
