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
			3, "a client sends its token in the clear",
			[]Edit{{"client/client.go", "if !s.private && !onThisMachine(target) {", "if !(ON) && !s.private && !onThisMachine(target) {"}},
			[]Test{{"client", "TestATokenIsNotSentInClear", "10.0.0.1:7002: <nil>"}},
		},
	}
}
