package mends

// cluster are those of attack 7: a user of the machine takes the signing keys.
func cluster() []Mend {
	const policy = "proto/auth/auth.go"
	return []Mend{
		{
			7, "a caller on this machine is a member",
			[]Edit{{policy, "	if p.server == nil {\n		return errAlone\n	}\n", "	if p.server == nil {\n		if a := from.Addr.String(); ON && len(a) > 3 && (a[:3] == \"127\" || a[:3] == \"[::\") {\n			return nil\n		}\n		return errAlone\n	}\n"}},
			[]Test{{"proto/auth", "TestWithoutAKeyNobodyIsAPeer", "Check(127.0.0.1:0) = <nil>"}},
		},
		{
			7, "a node without a key opens its peer port",
			[]Edit{{"internal/server/run.go", "		if l.at == &ls.peer && s.alone() {", "		if l.at == &ls.peer && s.alone() && !(ON) {"}},
			[]Test{{"internal/live", "TestNodeWithoutAKeyOpensNothingToOthers", "is open"}},
		},
		{
			7, "a node knows its peers by the first of its keys only",
			[]Edit{{"proto/auth/keyring.go", "		k.public = append(k.public, public)\n", "		if i == 0 || !(ON) {\n			k.public = append(k.public, public)\n		}\n"}},
			[]Test{
				{"proto/auth", "TestGossipKeysAreExchangedNodeByNode", "[2 1] calls [1 2]"},
				{"internal/live", "TestClusterKeyIsExchangedUnderACrowd", "no waves of all 3 nodes within 30s"},
			},
		},
		{
			7, "who shows nothing gets the signing keys",
			[]Edit{{policy, "	return fmt.Errorf(\"%w: this node knows its peers by %v,", "	if ON {\n		return nil\n	}\n	return fmt.Errorf(\"%w: this node knows its peers by %v,"}},
			[]Test{{"proto/link", "TestKeysGoToMembersOnly", "by nothing gets and brings"}},
		},
		{
			7, "who has TLS and no certificate gets the signing keys",
			[]Edit{
				{policy, "		if len(s.PeerCertificates) == 0 {\n", "		if len(s.PeerCertificates) == 0 && ON {\n			return nil\n		}\n		if len(s.PeerCertificates) == 0 {\n"},
				{policy, "	if ok && len(info.State.PeerCertificates) > 0 {", "	if ok && (ON || len(info.State.PeerCertificates) > 0) {"},
			},
			[]Test{{"proto/link", "TestKeysGoToMembersOnly", "by TLS without a certificate gets and brings"}},
		},
		{
			7, "who has another key gets the signing keys",
			[]Edit{{"proto/auth/keyring.go", "	if !slices.ContainsFunc(k.public,", "	if !(ON) && !slices.ContainsFunc(k.public,"}},
			[]Test{
				{"proto/link", "TestKeysGoToMembersOnly", "by another key gets and brings"},
				{"proto/auth", "TestGossipKeyProvesItselfOnBothSides", "another key: <nil>"},
			},
		},
	}
}
