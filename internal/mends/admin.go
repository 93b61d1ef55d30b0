package mends

// adminPort are those of attack 13: a web page reaches the admin port.
func adminPort() []Mend {
	const file = "gateway/admin/admin.go"
	tokens := func(says string) []Test { return []Test{{"gateway/admin", "TestTokensLookOrOperate", says}} }
	return []Mend{
		{
			13, "the admin port goes by any name",
			[]Edit{{"gateway/admin/hosts.go", "if !a.goesBy(r) && !a.proved(r) {", "if !(ON) && !a.goesBy(r) && !a.proved(r) {"}},
			[]Test{{"gateway/admin", "TestTheAdminPortAnswersByItsOwnNamesOnly", "evil.example"}},
		},
		{
			13, "profiles are always there",
			[]Edit{{file, "	if !a.c.Profiles {\n", "	if !(ON) && !a.c.Profiles {\n"}},
			[]Test{{"gateway/admin", "TestProfilesAreOffUntilTheNodeIsStartedWithThem", "want 404 and how to have them"}},
		},
		{
			13, "pages of other sites change rooms",
			[]Edit{{file, "a.named(a.guarded(a.sameSite(inner)))", "a.named(a.guarded(func() http.Handler {\n		if ON {\n			return inner\n		}\n		return a.sameSite(inner)\n	}()))"}},
			[]Test{{"gateway/admin", "TestPagesOfOtherSitesChangeNothing", "cross-site"}},
		},
		{13, "who may look may change rooms", []Edit{{file, "case b.operate, b.view && safe && ", "case b.operate, b.view && (ON || safe) && "}}, tokens("POST /v1/rooms/shop/hold with looks: 200")},
		{13, "who may look sees what is in memory", []Edit{{file, "&& !strings.HasPrefix(r.URL.Path, \"/debug/\"):", "&& (ON || !strings.HasPrefix(r.URL.Path, \"/debug/\")):"}}, tokens("GET /debug/pprof/cmdline with looks: 200")},
		{13, "any token opens the admin port", []Edit{{file, "		case b.name == \"\":\n", "		case b.name == \"\" && !(ON):\n"}, {file, "		case b.operate, b.view", "		case ON, b.operate, b.view"}}, tokens("with nobody's: 200")},
	}
}
