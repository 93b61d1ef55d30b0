package mends

// cluster are those of attack 7: a user of the machine takes the signing keys.
func cluster() []Mend {
	return []Mend{
		{
			7, "a caller on this machine is a member",
			[]Edit{{"proto/auth/auth.go", "	if p.server == nil {\n		return errAlone\n	}\n", "	if p.server == nil {\n		if a := from.Addr.String(); ON && len(a) > 3 && (a[:3] == \"127\" || a[:3] == \"[::\") {\n			return nil\n		}\n		return errAlone\n	}\n"}},
			[]Test{{"proto/auth", "TestWithoutAKeyNobodyIsAPeer", "Check(127.0.0.1:0) = <nil>"}},
		},
	}
}
