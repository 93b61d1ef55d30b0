// Package mutants checks the checker: it plants bugs in the protocol and
// demands that the simulated world notices each of them.
//
// A mutant is an edit of the production source. All of them are compiled into
// one test binary of the package whose tests are to notice, most often simtest, through the
// go command's -overlay, each behind a switch; the source itself holds no trace of them. An edit whose
// text is no longer found fails the test, so the list stays true to the code.
package mutants

import "cmp"

// Mutant is one planted bug.
type Mutant struct {
	Name  string
	Edits []Edit
	// Run names the tests that have to notice, joined by |.
	// Empty: the swarm, by a broken promise. A directed test takes less time and
	// says what it is about; the swarm's part is to notice what nobody thought of.
	Run string
	// In is the package of those tests, from the root of the module; empty: ./simtest.
	In string
	// First is a seed from which on the swarm notices soon; 0: the first.
	First int
	// By is part of what the swarm of the queues says when it notices, where another
	// check than the one for it might be the first to fail. Empty: anything.
	By string
}

// Package is where the tests are that have to notice m.
func (m Mutant) Package() string { return cmp.Or(m.In, "./simtest") }

// Edit replaces the only place in File where Old stands. ON in New stands for
// the switch: an expression that is true while the mutant is active.
type Edit struct{ File, Old, New string }
