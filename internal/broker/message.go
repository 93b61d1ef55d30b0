package broker

import (
	"errors"
	"math"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/pqueue"
	"github.com/anteroom/anteroom/qpid"
)

// MsgKind says what a message is for.
type MsgKind uint8

const (
	MsgGather   MsgKind = iota + 1 // Epoch, List: freeze, and say so
	MsgFrozen                      // Epoch, States, Fronts, Whole, Known
	MsgCommit                      // Epoch, States, Fronts, Whole: install
	MsgBroken                      // Epoch, the highest seen: another round, please
	MsgVouch                       // Epoch, Seq: is that still the epoch?
	MsgVouched                     // Epoch, Seq: it was when this was asked
	MsgQPID                        // Queue, QPID, For, Pace; For of a findRoot: the latest turn that was given
	MsgGranted                     // Queue, Seq, Result, For: how a deleteMin has ended
	MsgRequest                     // Seq, Command; Seq 0: no answer wanted
	MsgResponse                    // Seq, Result
	MsgWaiting                     // Queue, For: somebody waits for its items here
	MsgWake                        // Queue: an item has come
	MsgWatch                       // Queue, For: tell of changes
	MsgChange                      // Change
	MsgFreed                       // Epoch, Seq, Slots: on their way to the root
	MsgOffice                      // Epoch, Seq, Slots: what goes with the office of the root, which follows
	MsgReport                      // Epoch, Made, Slots: before MsgFrozen
	MsgShares                      // Epoch, Slots: before MsgCommit
	MsgKeyAsk                      // Epoch, Seq: which keys that are at home here do you lease?
	MsgKeyHeld                     // Epoch, Seq of MsgKeyAsk, For: which part of the answer, Whole: the last, Keys
	MsgKeyWant                     // Epoch, Keys: lend me
	MsgKeyLend                     // Epoch, Keys
	MsgKeyBack                     // Epoch, Keys: nothing of them is leased any more
	msgEnd
)

func (k MsgKind) String() string {
	if k == 0 || k >= msgEnd {
		return "nothing"
	}
	return [...]string{
		"gather", "frozen", "commit", "broken", "vouch", "vouched", "qpid", "granted", "request", "response", "waiting", "wake", "watch", "change",
		"freed", "office", "report", "shares", "key ask", "key held", "key want", "key lend", "key back",
	}[k-1]
}

// Message is what brokers send each other. Each kind uses the fields named with it.
type Message struct {
	From, To eviction.Member // not part of the encoding: links know them
	Kind     MsgKind
	Epoch    qpid.Epoch
	List     []eviction.Member
	Queue    string
	QPID     qpid.Message // From and To as those of the message
	Seq      uint64
	For      int64 // µs
	Whole    bool
	Known    bool
	States   []State
	Fronts   []Front
	Pace     Pace
	Made     qpid.Epoch // installed at the sender; zero: none
	Slots    []Slots
	Keys     []KeyLock
	Command  pqueue.Command
	Result   pqueue.Result
	Change   pqueue.Change
}

// State is what a round hands on of one queue.
type State struct {
	Queue string
	Mode  pqueue.ModeSetting
	Pace  Pace
}

// Front is the lightest item that a member has of a queue when a round begins.
type Front struct {
	Queue  string
	At     int // position of the member in the round's list
	Weight qpid.Weight
}

var errMessage = errors.New("broker: not a message of this version")

// Encode is the message without From and To.
func (m Message) Encode() []byte {
	e := pqueue.Encoder{B: []byte{byte(m.Kind)}}
	switch m.Kind {
	case MsgGather:
		epoch(&e, m.Epoch)
		e.Uint(uint64(len(m.List)))
		for _, o := range m.List {
			e.String(string(o.Name))
			e.Uint(o.Boot)
		}
	case MsgFrozen, MsgCommit:
		epoch(&e, m.Epoch)
		e.Bool(m.Whole)
		e.Bool(m.Known)
		e.Uint(uint64(len(m.States)))
		for _, s := range m.States {
			e.String(s.Queue)
			e.Bytes(pqueue.Command{Op: pqueue.OpMode, Mode: s.Mode}.Encode(nil))
			s.Pace.encode(&e)
		}
		e.Uint(uint64(len(m.Fronts)))
		for _, f := range m.Fronts {
			e.String(f.Queue)
			e.Uint(uint64(f.At))
			e.Weight(f.Weight)
		}
	case MsgBroken:
		epoch(&e, m.Epoch)
	case MsgVouch, MsgVouched:
		epoch(&e, m.Epoch)
		e.Uint(m.Seq)
	case MsgQPID:
		e.String(m.Queue)
		encodeQPID(&e, m.QPID)
		e.Int(m.For)
		m.Pace.encode(&e)
	case MsgGranted:
		e.String(m.Queue)
		e.Uint(m.Seq)
		e.Int(m.For)
		e.B = m.Result.Encode(e.B)
	case MsgRequest:
		e.Uint(m.Seq)
		e.B = m.Command.Encode(e.B)
	case MsgResponse:
		e.Uint(m.Seq)
		e.B = m.Result.Encode(e.B)
	case MsgWaiting, MsgWatch:
		e.String(m.Queue)
		e.Int(m.For)
	case MsgWake:
		e.String(m.Queue)
	case MsgChange:
		encodeChange(&e, m.Change)
	case MsgFreed, MsgOffice, MsgReport, MsgShares:
		epoch(&e, m.Epoch)
		epoch(&e, m.Made)
		e.Uint(m.Seq)
		e.Uint(uint64(len(m.Slots)))
		for _, s := range m.Slots {
			s.encode(&e)
		}
	case MsgKeyAsk, MsgKeyHeld, MsgKeyWant, MsgKeyLend, MsgKeyBack:
		encodeKeys(&e, m)
	default:
		panic("broker: no way to encode a message of kind " + m.Kind.String())
	}
	return e.B
}

// Decode reads what Encode wrote. What is in it may be part of b.
func Decode(b []byte) (m Message, err error) {
	if len(b) == 0 {
		return m, errMessage
	}
	m.Kind = MsgKind(b[0])
	d := pqueue.NewDecoder(b[1:])
	switch m.Kind {
	case MsgGather:
		m.Epoch = toEpoch(d)
		for range d.Count(2) {
			m.List = append(m.List, eviction.Member{Name: qpid.NodeID(d.String()), Boot: d.Uint()})
		}
	case MsgFrozen, MsgCommit:
		m.Epoch, m.Whole, m.Known = toEpoch(d), d.Bool(), d.Bool()
		for range d.Count(5) {
			s := State{Queue: d.String()}
			mode, err := pqueue.DecodeCommand(d.Bytes())
			if err != nil {
				return Message{}, err
			}
			s.Mode, s.Pace = mode.Mode, toPace(d)
			m.States = append(m.States, s)
		}
		for range d.Count(26) {
			m.Fronts = append(m.Fronts, Front{Queue: d.String(), At: int(min(d.Uint(), math.MaxInt32)), Weight: d.Weight()})
		}
	case MsgBroken:
		m.Epoch = toEpoch(d)
	case MsgVouch, MsgVouched:
		m.Epoch, m.Seq = toEpoch(d), d.Uint()
	case MsgQPID:
		m.Queue, m.QPID = d.String(), toQPID(d)
		m.For, m.Pace = d.Int(), toPace(d)
	case MsgGranted:
		m.Queue, m.Seq, m.For = d.String(), d.Uint(), d.Int()
		m.Result, err = pqueue.DecodeResult(d.Rest())
	case MsgRequest:
		m.Seq = d.Uint()
		m.Command, err = pqueue.DecodeCommand(d.Rest())
	case MsgResponse:
		m.Seq = d.Uint()
		m.Result, err = pqueue.DecodeResult(d.Rest())
	case MsgWaiting, MsgWatch:
		m.Queue, m.For = d.String(), d.Int()
	case MsgWake:
		m.Queue = d.String()
	case MsgChange:
		m.Change, err = toChange(d)
	case MsgFreed, MsgOffice, MsgReport, MsgShares:
		m.Epoch, m.Made, m.Seq = toEpoch(d), toEpoch(d), d.Uint()
		for range d.Count(9) {
			s, ok := toSlots(d)
			if !ok {
				return Message{}, errMessage
			}
			m.Slots = append(m.Slots, s)
		}
	case MsgKeyAsk, MsgKeyHeld, MsgKeyWant, MsgKeyLend, MsgKeyBack:
		toKeys(d, &m)
	default:
		return m, errMessage
	}
	if err == nil {
		err = d.Err()
	}
	if err != nil {
		return Message{}, err
	}
	return m, nil
}

func encodeKeys(e *pqueue.Encoder, m Message) {
	epoch(e, m.Epoch)
	e.Uint(m.Seq)
	e.Int(m.For)
	e.Bool(m.Whole)
	e.Uint(uint64(len(m.Keys)))
	for _, l := range m.Keys {
		e.String(l.Queue)
		e.String(l.Key)
		e.Uint(l.Seq)
	}
}

func toKeys(d *pqueue.Decoder, m *Message) {
	m.Epoch, m.Seq, m.For, m.Whole = toEpoch(d), d.Uint(), d.Int(), d.Bool()
	for range d.Count(3) {
		m.Keys = append(m.Keys, KeyLock{Queue: d.String(), Key: d.String(), Seq: d.Uint()})
	}
}

func epoch(e *pqueue.Encoder, v qpid.Epoch) {
	e.Uint(v.Num)
	e.String(string(v.Coordinator))
}

func toEpoch(d *pqueue.Decoder) qpid.Epoch {
	return qpid.Epoch{Num: d.Uint(), Coordinator: qpid.NodeID(d.String())}
}

func encodeQPID(e *pqueue.Encoder, m qpid.Message) {
	e.Uint(uint64(m.Kind))
	if m.Kind == qpid.MsgDeleteMin {
		e.String(string(m.Op.Caller))
		e.Uint(m.Op.Seq)
		e.Uint(uint64(m.Hops))
		return
	}
	epoch(e, m.Epoch)
	e.Uint(m.Seq)
	e.Weight(m.Weight)
}

func toQPID(d *pqueue.Decoder) qpid.Message {
	m := qpid.Message{Kind: qpid.Kind(d.Uint())}
	if m.Kind == qpid.MsgDeleteMin {
		m.Op = qpid.OpID{Caller: qpid.NodeID(d.String()), Seq: d.Uint()}
		m.Hops = uint32(d.Uint())
		return m
	}
	m.Epoch, m.Seq, m.Weight = toEpoch(d), d.Uint(), d.Weight()
	return m
}

// encodeChange leaves the weights out: only their owner needs them.
func encodeChange(e *pqueue.Encoder, c pqueue.Change) {
	e.String(c.Queue)
	e.Uint(uint64(c.Kind))
	e.Int(c.At)
	e.Uint(uint64(c.Mode))
	e.B = pqueue.Result{Items: []pqueue.Item{c.Item}}.Encode(e.B)
}

func toChange(d *pqueue.Decoder) (pqueue.Change, error) {
	c := pqueue.Change{Queue: d.String(), Kind: pqueue.Kind(d.Uint()), At: d.Int(), Mode: pqueue.Mode(d.Uint())}
	r, err := pqueue.DecodeResult(d.Rest())
	if err != nil || len(r.Items) != 1 || c.Mode > pqueue.Draining || c.Kind == 0 || c.Kind > pqueue.BecameReady {
		return pqueue.Change{}, errMessage
	}
	c.Item = r.Items[0]
	return c, nil
}
