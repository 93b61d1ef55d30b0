package ticket

// Pause is why nobody is called just now where somebody waits: a code, which nodes tell
// each other, and visitors' programs and pages are told. Empty: people are called.
type Pause string

// Reasons of the node, of the place, and of the room.
const (
	PausedClock     Pause = "clock_off"        // the node's clock is off, and waits to be measured again
	PausedJoining   Pause = "joining"          // it has found no cluster yet
	PausedFounding  Pause = "founding"         // a cluster starts with more nodes than are there
	PausedSplit     Pause = "no_majority"      // it is on a side without a quorum
	PausedUnreached Pause = "unreached"        // the home of the place does not answer, or calls nobody in the room
	PausedAddress   Pause = "address_limit"    // it is the visitor's turn, whose check-in asked to wait, see Request.Hold
	PausedHeld      Pause = "held"             // by an operator
	PausedOverLimit Pause = "over_limit"       // the limit was lowered below who is on the site
	PausedUnhealthy Pause = "origin_unhealthy" // by on_unhealthy: hold
)

// Text says it in English, for who reads answers and logs; empty where there is none. A
// code that is not known, of a newer node, is its own.
func (p Pause) Text() string {
	switch p {
	case PausedClock:
		return "its clock is off; it waits to be measured again"
	case PausedJoining:
		return "waiting for a cluster to join"
	case PausedFounding:
		return "waiting for more nodes to start a cluster together"
	case PausedSplit:
		return "on a side without a quorum"
	case PausedUnreached:
		return "the node that keeps this place does not answer just now; the place is safe"
	case PausedAddress:
		return "as many people on your network are on the site as one address may have; your place is kept"
	case PausedHeld:
		return "nobody is let in for now; places are kept"
	case PausedOverLimit:
		return "there are more people on the site than its limit, which was lowered; calls go on when some have left"
	case PausedUnhealthy:
		return "the site does not answer as it should, so nobody is let in; places are kept, and calls go on when it is well again"
	}
	return string(p)
}
