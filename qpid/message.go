package qpid

import "fmt"

// Kind says what a message is for.
type Kind uint8

const (
	// MsgUpdate corrects the weight table of the sender's parent.
	MsgUpdate Kind = iota + 1
	// MsgFindRoot hands the root over, one hop towards the lightest item.
	MsgFindRoot
	// MsgDeleteMin asks the root for its lightest item. It follows the parent
	// pointers and belongs to no epoch.
	MsgDeleteMin
	// MsgTaken answers a MsgDeleteMin. It goes straight to the caller.
	MsgTaken
)

func (k Kind) String() string {
	switch k {
	case MsgUpdate:
		return "update"
	case MsgFindRoot:
		return "findRoot"
	case MsgDeleteMin:
		return "deleteMin"
	case MsgTaken:
		return "taken"
	default:
		return fmt.Sprintf("kind(%d)", uint8(k))
	}
}

// OpID names one deleteMin. The caller numbers its own and uses a number again
// only to repeat that very deleteMin; after a restart it goes on above all
// numbers that it used before.
type OpID struct {
	Caller NodeID
	Seq    uint64
}

func (o OpID) String() string { return fmt.Sprintf("%s#%d", o.Caller, o.Seq) }

// Outcome is how a deleteMin ended.
type Outcome uint8

const (
	// Taken: Weight was the lightest item; it has left the queue at Home.
	Taken Outcome = iota + 1
	// NothingWaits: the root's queue was empty, and so was the network as far
	// as the root had heard.
	NothingWaits
	// Refused: nothing was taken, because a bound was hit. The caller may
	// repeat the deleteMin.
	Refused
)

func (o Outcome) String() string {
	switch o {
	case Taken:
		return "taken"
	case NothingWaits:
		return "nothing waits"
	case Refused:
		return "refused"
	default:
		return fmt.Sprintf("outcome(%d)", uint8(o))
	}
}

// Message is what nodes send each other. It is comparable and holds no
// pointers: print it, hash it, use it as a map key.
type Message struct {
	Kind     Kind
	From, To NodeID
	// Epoch is the sender's installed epoch, and Seq counts the messages that
	// it sent to To since it installed it, from 1. MsgUpdate and MsgFindRoot.
	Epoch Epoch
	Seq   uint64
	// Weight is the lightest on From's side of the link in MsgUpdate and
	// MsgFindRoot, the item taken in MsgTaken.
	Weight Weight
	// Op is the deleteMin that MsgDeleteMin and MsgTaken are about.
	Op      OpID
	Hops    uint32  // MsgDeleteMin: links crossed, this one included
	Outcome Outcome // MsgTaken
}

func (m Message) String() string {
	s := fmt.Sprintf("%s→%s %s", m.From, m.To, m.Kind)
	switch m.Kind {
	case MsgUpdate, MsgFindRoot:
		return fmt.Sprintf("%s %v (epoch %v, seq %d)", s, m.Weight, m.Epoch, m.Seq)
	case MsgDeleteMin:
		return fmt.Sprintf("%s %v (hop %d)", s, m.Op, m.Hops)
	default:
		return fmt.Sprintf("%s %v: %v", s, m.Op, m.answer())
	}
}

// answer is what a MsgTaken tells the caller.
func (m Message) answer() Answer {
	return Answer{Op: m.Op, Outcome: m.Outcome, Home: m.From, Weight: m.Weight}
}

// Answer is the result of a deleteMin that was called at this node.
type Answer struct {
	Op      OpID
	Outcome Outcome
	Home    NodeID // who answered: where the item was, if one was taken
	Weight  Weight // of the item, if one was taken
}

func (a Answer) String() string {
	if a.Outcome == Taken {
		return fmt.Sprintf("%v at %s", a.Weight, a.Home)
	}
	return fmt.Sprintf("%v, says %s", a.Outcome, a.Home)
}

// Removal is an item that a deleteMin took out of this node's queue.
type Removal struct {
	Op     OpID
	Weight Weight
}

// Ready is the work that a node wants done. The caller owns the slices.
type Ready struct {
	Messages []Message // send each at most once, those to one node in this order
	Removed  []Removal // items that left the queue here: let them in, or lease them
	Answers  []Answer  // to deleteMins that were called here
}
