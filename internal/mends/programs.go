package mends

// programs are those of attack 3: programs at the peer port, and at their own.
func programs() []Mend {
	const guard = "proto/rpc/guard.go"
	right := []Test{{"proto/rpc", "TestEveryMethodAsksForItsRight", "want PermissionDenied, not_allowed"}}
	return []Mend{
		{
			3, "no token is asked for",
			[]Edit{{guard, "	if o.open {\n", "	if o.open || ON && len(info.Header.Get(\"authorization\")) == 0 {\n"}},
			[]Test{{"proto/rpc", "TestEveryMethodAsksForItsRight", "without a token"}},
		},
		{3, "any token does for any method", []Edit{{guard, "!t.May.Any(o.needs):", "!(ON) && !t.May.Any(o.needs):"}}, right},
		{3, "any token does for any room and queue", []Edit{{guard, "!may.Match(name) {", "!(ON) && !may.Match(name) {"}}, right},
		{3, "any token does for any room of a proxy's", []Edit{{guard, "ok && !t.Rooms.Match(room) {", "ok && !(ON) && !t.Rooms.Match(room) {"}}, right},
		{
			3, "who has no token calls from anywhere where there are none",
			[]Edit{{guard, "known && !a.IsLoopback() {\n		return nil, refusal(", "known && !(ON) && !a.IsLoopback() {\n		return nil, refusal("}},
			[]Test{{"proto/rpc", "TestWithoutTokensOnlyThisMachineMayCall", "from 198.51.100.7: <nil>"}},
		},
		{
			3, "calls are read before it is known who calls",
			[]Edit{{guard, "		grpc.InTapHandle(g.enter),\n", "		grpc.InTapHandle(func(ctx context.Context, i *tap.Info) (context.Context, error) {\n			in, err := g.enter(ctx, i)\n			if ON && err != nil {\n				return ctx, nil\n			}\n			return in, err\n		}),\n"}},
			[]Test{{"proto/rpc", "TestRefusedCallsAreNotRead", "want token_required, not a word on its size"}},
		},
		{
			3, "calls of strangers are read at the peer port",
			[]Edit{{"proto/rpc/rpc.go", "		if err := c.Policy.Check(ctx); err != nil {\n", "		if err := c.Policy.Check(ctx); err != nil && !(ON) {\n"}},
			[]Test{{"proto/rpc", "TestPeersAnswerMembersOnly", "want Unimplemented that names node.grpc"}},
		},
		{
			3, "a stranger talks to the peer port for as long as it likes",
			[]Edit{{"proto/auth/conn.go", "	if s.left <= 0 {\n", "	if s.left <= 0 && !(ON) {\n"}, {"proto/auth/conn.go", "s.Conn.Read(p[:min(len(p), s.left)])", "s.Conn.Read(p[:min(len(p), max(s.left, 1000))])"}},
			[]Test{{"proto/rpc", "TestStrangersOfThePeersAreCutOff", "a stranger said 200 kB on one connection"}},
		},
		{
			3, "a port for programs opens without proof",
			[]Edit{{"internal/config/tokens.go", "		f.fault(\"node.grpc\", \"%s can be reached", "		fault := f.fault\n		if ON {\n			fault = f.warn\n		}\n		fault(\"node.grpc\", \"%s can be reached"}},
			[]Test{
				{"internal/config", "TestPortForProgramsOffLoopbackNeedsTLSAndTokens", "want"},
				{"internal/live", "TestAPortForProgramsWithoutProofDoesNotOpen", "it runs"},
			},
		},
		{
			3, "a client sends its token in the clear",
			[]Edit{{"client/client.go", "if !s.private && !onThisMachine(target) {", "if !(ON) && !s.private && !onThisMachine(target) {"}},
			[]Test{{"client", "TestATokenIsNotSentInClear", "10.0.0.1:7002: <nil>"}},
		},
	}
}

// callsUnderWay are those of attack 3 that bound what one caller has at a time.
func callsUnderWay() []Mend {
	const guard = "proto/rpc/guard.go"
	return []Mend{
		{
			3, "an address has any number of calls under way",
			[]Edit{{guard, "counted && g.byAddress[from] >= callsAddress {", "counted && !(ON) && g.byAddress[from] >= callsAddress {"}},
			[]Test{
				{"proto/rpc", "TestCallsUnderWayAreBoundedPerAddress", "one more than 2500 of an address is under way"},
				{"proto/rpc", "TestEachHasAShareOfTheCallsUnderWay", "has a call beyond 2500"},
			},
		},
		{
			3, "a household has as many calls under way as addresses",
			[]Edit{{guard, "	bits := 64\n", "	bits := 64\n	if ON {\n		bits = 128\n	}\n"}},
			[]Test{{"proto/rpc", "TestEachHasAShareOfTheCallsUnderWay", "2001:db8::9 with token three has a call beyond 2500"}},
		},
		{
			3, "a token has any number of calls under way",
			[]Edit{{guard, "g.byToken[t] >= callsToken", "!(ON) && g.byToken[t] >= callsToken"}},
			[]Test{{"proto/rpc", "TestEachHasAShareOfTheCallsUnderWay", "with token one has a call beyond 5000"}},
		},
		{
			3, "together they have any number of calls under way",
			[]Edit{{guard, "	if g.all >= callsAll ||", "	if !(ON) && g.all >= callsAll ||"}},
			[]Test{{"proto/rpc", "TestEachHasAShareOfTheCallsUnderWay", "has a call beyond 10000"}},
		},
		{
			3, "calls that are over still count",
			[]Edit{{guard, "	context.AfterFunc(ctx, leave)", "	if ON {\n		return ctx, nil\n	}\n	context.AfterFunc(ctx, leave)"}},
			[]Test{{"proto/rpc", "TestCallsUnderWayAreBoundedPerAddress", "the calls that are over still count"}},
		},
	}
}
