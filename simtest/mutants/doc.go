// Package mutants checks the checker: it plants bugs in the protocol and
// demands that the simulated world notices each of them.
//
// A mutant is an edit of the production source. All of them are compiled into
// one test binary of package simtest, through the go command's -overlay, each
// behind a switch; the source itself holds no trace of them. An edit whose
// text is no longer found fails the test, so the list stays true to the code.
package mutants

// Mutant is one planted bug.
type Mutant struct {
	Name  string
	Edits []Edit
	// Run is the test that has to notice, by default the swarm.
	Run string
	// Oracles names which of the promises may be the one to break; empty: any.
	Oracles []string
}

// Edit replaces the only place in File where Old stands. ON in New stands for
// the switch: an expression that is true while the mutant is active.
type Edit struct{ File, Old, New string }
