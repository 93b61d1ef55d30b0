package mends

// proxies are those of attack 16: a proxy that nobody listed.
func proxies() []Mend {
	tells := func(where string) []Test {
		return []Test{{"internal/live", "TestAttackByAProxyThatIsNotListed", "listed false: " + where + " warns: false"}}
	}
	notices := Edit{"gateway/client.go", "	if g.proxy.CompareAndSwap(nil, &a) {\n", "	if !(ON) && g.proxy.CompareAndSwap(nil, &a) {\n"}
	return []Mend{
		{
			16, "a proxy is not noticed",
			[]Edit{notices},
			append(tells("the log"), Test{"gateway", "TestAProxyThatIsNotListedIsToldOfOnce", `warning ""`}),
		},
		{16, "status has no warnings", []Edit{{"cmd/anteroom/status.go", "	for _, w := range c.Warnings {\n", "	for _, w := range c.Warnings {\n		if ON {\n			break\n		}\n"}}, tells("status")},
		{
			16, "a gateway that only a proxy reaches is not noticed",
			[]Edit{{"internal/config/check.go", "&& len(f.Config.TrustedProxies) == 0 {", "&& len(f.Config.TrustedProxies) == 0 && !(ON) {"}},
			append(tells("config check"), Test{"internal/config", "TestAGatewayThatOnlyAProxyReachesIsTold", "10.0.0.7:8080}\": warnings"}),
		},
	}
}

// files are those of attack 17: secrets that others read, directories that others
// write.
func files() []Mend {
	const file = "internal/config/private.go"
	live := func(says ...string) (all []Test) {
		for _, s := range says {
			all = append(all, Test{"internal/live", "TestAttackFilesThatOthersReadAndWrite", s})
		}
		return append(all, Test{"internal/config", "TestSecretsThatOthersMayReadAreTold", "(-want +got)"})
	}
	return []Mend{
		{
			17, "a file of secrets is for everybody",
			[]Edit{{file, "mayBe(string(name), bits); ok {", "mayBe(string(name), bits); ok && !(ON) {"}},
			live("config check tells of security.tls.peer.key: false", "serve tells of security.signing_keys: false"),
		},
		{
			17, "a configuration with secrets is for everybody",
			[]Edit{{file, "	if !ok {\n		return\n	}\n	for _, key", "	if !ok || ON {\n		return\n	}\n	for _, key"}},
			live("serve tells of security.admin_token: false"),
		},
		{
			17, "a group writes where a node keeps its keys",
			[]Edit{{file, "mayBe(dir, groupWrite); ok {", "mayBe(dir, groupWrite); ok && !(ON) {"}},
			live("serve tells of node.data: false"),
		},
		{
			17, "everybody writes where a node keeps its keys",
			[]Edit{
				{file, "mayBe(dir, worldWrite); ok {", "mayBe(dir, worldWrite); ok && !(ON) {"},
				{"internal/store/store.go", "info.Mode().Perm()&0o002 != 0 &&", "info.Mode().Perm()&0o002 != 0 && !(ON) &&"},
			},
			append(live("config check exits with 0", "the node runs: true"), Test{"internal/store", "TestADirectoryThatEverybodyMayWriteToIsRefused", "want"}),
		},
		{
			17, "records are for everybody",
			[]Edit{{file, "mayBe(name, othersAny); ok {", "mayBe(name, othersAny); ok && !(ON) {"}},
			live("a record that others read")[:1],
		},
	}
}
