// Package mends checks the tests that SECURITY.md names: each of them must fail
// when what it is about is taken out.
//
// A mend is what holds an attack off, in the production source. An entry of the
// list says how to take it out, by an edit of the source, and which tests must
// then fail, saying what. All edits are compiled into one test binary for each
// package, each behind a switch; the source itself holds no trace of them. An
// edit whose text is no longer found fails the ordinary tests, as does a test of
// SECURITY.md's table that no entry names, so the list stays true to both.
//
//	go test ./internal/mends                             # is the list true to the code
//	go test ./internal/mends -mends -v -timeout 30m      # take each mend out
//	go test ./internal/mends -mends -run 'Mend/gateway$' # those of one package
//
// Tests with real processes are among them where ANTEROOM_E2E is set.
package mends

import "slices"

// Mend is one of those that hold an attack off.
type Mend struct {
	Attack int    // its number in SECURITY.md
	Name   string // what is so without it
	Edits  []Edit // that take it out
	Fails  []Test // at least one
}

// Edit replaces the only place in File where Old stands. ON in New stands for
// the switch: an expression that is true while the mend is out.
type Edit struct{ File, Old, New string }

// Test is one that must fail without the mend, and what it says then: a part of
// its output that shows that it fails for that reason and no other.
type Test struct{ Package, Name, Says string }

// All lists the mends.
func All() []Mend {
	all := slices.Concat(
		gossip(), noShows(), programs(), callsUnderWay(), connections(), preflights(), otherSites(), addresses(), turns(), cluster(), usedTickets(), paths(), readings(),
		tunnels(), passes(), streams(), bodies(), adminPort(), links(), ownPlaces(), headers(), proxies(), files(), pushes(),
	)
	more := running()
	for i := range all {
		if test, ok := more[all[i].Name]; ok {
			all[i].Fails = append(slices.Clone(all[i].Fails), test)
			delete(more, all[i].Name)
		}
	}
	for name := range more {
		panic("no mend is called " + name)
	}
	return all
}
