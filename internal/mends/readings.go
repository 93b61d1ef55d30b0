package mends

// readings are those of attack 9: what servers take one path for.
func readings() []Mend {
	const pkg, file = "internal/rules", "internal/rules/readings.go"
	tests := func(says string) []Test {
		return []Test{{pkg, "TestEachServersReadingIsAmongThem", says}, {pkg, "FuzzReadings", says}}
	}
	var all []Mend
	for _, r := range []struct{ what, reader, says string }{
		{"no codes are read", "decodedOnce", `Go reads "/checkout"`},
		{"encoded slashes are always slashes", "decodedButSlashes", `slashes left encoded reads "/checkout%2fx"`},
		{`\ is never a slash`, "func(p string) string { return strings.ReplaceAll(p, `\\`, \"/\") }", `Windows reads "/checkout"`},
		{"segments have no parameters", `func(p string) string { return eachSegment(p, upTo(";")) }`, `Tomcat reads "/checkout`},
		{"a path has no parameters", "\n\t\tupTo(\";\")", `parameters to the end reads "/checkout"`},
		{"? is never an end", `upTo("?")`, `decoded, and Node's URL reads "/checkout"`},
		{"# is never an end", `upTo("#")`, `decoded, and Node's URL reads "/checkout"`},
		{"zero is never an end", `upTo("\x00")`, `C reads "/checkout"`},
		{"tabs are never dropped", `strings.NewReplacer("\t", "", "\n", "", "\r", "").Replace`, `Node's URL reads "/checkout/\x01x"`},
		{"double slashes are two", "\t\tmerged", `Go reads "/checkout"`},
		{"dots lead nowhere", "\t\twithoutDots", `Go reads "/checkout"`},
		{"double slashes begin no host", "\t\twithoutHost", `Node's URL reads "/"`},
		{"spaces are never dropped", `func(p string) string { return eachSegment(p, func(s string) string { return strings.Trim(s, " ") }) }`, `trims reads "/checkout"`},
		{"dots at an end are never dropped", "func(p string) string { return eachSegment(p, withoutEnd) }", `Windows reads "/checkout"`},
		{"full-width letters are no letters", "\t\tasNarrow", `ASCII reads "/checkout"`},
	} {
		without := "func(p string) string {\n\t\t\tif ON {\n\t\t\t\treturn p\n\t\t\t}\n\t\t\treturn (" + r.reader + ")(p)\n\t\t},"
		all = append(all, Mend{9, r.what, []Edit{{file, r.reader + ",", without}}, tests(r.says)})
	}
	plain := func(what, old, now, says string) Mend {
		return Mend{9, "a path is plain though " + what, []Edit{{file, old, now}}, tests(says)}
	}
	bound := func(what, old string) Mend {
		return Mend{9, what, []Edit{{file, old, "!(ON) && " + old}}, []Test{{pkg, "TestWhatHasTooManyReadingsMayBeAnyPath", "all of them: true"}}}
	}
	return append(
		all,
		plain("a segment has parameters", " || c == ';'", " || !(ON) && c == ';'", `"/checkout;x" is plain`),
		plain(`it has a \`, ` || c == '\\' ||`, ` || !(ON) && c == '\\' ||`, `"/x/..%5ccheckout" is plain`),
		plain("it is encoded twice", "odd || coded(p[i:])", "odd || !(ON) && coded(p[i:])", `"/x/%252e%252e/checkout" is plain`),
		plain("it has an encoded slash", `u.RawPath != "" && encodedSlash(u.RawPath) {`, `!(ON) && u.RawPath != "" && encodedSlash(u.RawPath) {`, `"/checkout%2fx" is plain`),
		plain("a segment ends in a dot", "|| s[len(s)-1] == '.'", "|| !(ON) && s[len(s)-1] == '.'", `"/checkout." is plain`),
		plain("a segment is dots", "\t\t\tdots = true", "\t\t\tdots = !(ON)", `"/x/../checkout" is plain`),
		plain("a slash is double", "double || 0 < i", "double || !(ON) && 0 < i", `"//checkout" is plain`),
		plain("it has full-width letters", "odd || p[i:] != asRead(p[i:])", "odd || !(ON) && p[i:] != asRead(p[i:])", `"/x/..／checkout" is plain`),
		bound("a path has any number of readings", "len(paths) > readingsMax"),
		bound("readings have any length", "size > readingsLenMax"),
		Mend{
			9, "what is no UTF-8 is read as UTF-8",
			[]Edit{{file, "if !utf8.ValidString(paths[i]) {", "if !(ON) && !utf8.ValidString(paths[i]) {"}},
			tests(`UTF-8 of any length reads "/checkout"`),
		},
	)
}
