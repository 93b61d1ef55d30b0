package mends

// adminPort are those of attack 13: a web page reaches the admin port.
func adminPort() []Mend {
	return []Mend{
		{
			13, "the admin port goes by any name",
			[]Edit{{"gateway/admin/hosts.go", "if !a.goesBy(r) && !a.proved(r) {", "if !(ON) && !a.goesBy(r) && !a.proved(r) {"}},
			[]Test{{"gateway/admin", "TestTheAdminPortAnswersByItsOwnNamesOnly", "evil.example"}},
		},
	}
}
