package queueloop

import (
	"github.com/anteroom/anteroom/internal/broker"
)

// StateMachine is what a Log drives. Its calls never overlap.
type StateMachine interface {
	// Apply applies committed commands in the order of the log, on every replica,
	// and returns one result for each. With an error, which says that one cannot be
	// read, none is applied.
	Apply(commands [][]byte) (results [][]byte, err error)
	// Snapshot is the whole state after what was applied so far.
	Snapshot() []byte
	// Restore replaces the state by one that Snapshot returned. Bytes that are no
	// such thing are an error, and change nothing.
	Restore(snapshot []byte) error
	// Size is how many bytes Snapshot would return, more or less.
	Size() int64
}

// Log makes commands durable. Its methods are safe for concurrent use.
type Log interface {
	// Propose appends a command, which adds to the state or does not, and returns at
	// once. Then is called exactly once, on any goroutine: with what Apply returned
	// here, or with an error. Refused says of the error whether the command is certain
	// never to be applied, and Full whether it is for want of room, for which Room
	// says what there is.
	Propose(command []byte, adds bool, then func(result []byte, err error))
	Refused(err error) bool
	Full(err error) bool
	Room() broker.Room
}

// Machine returns the state machine that the log of that kind drives. The log
// also calls Leads at every change: true only after all that was committed
// earlier has been applied here, false at once.
func (l *Loop) Machine(k broker.Kind) StateMachine { return machine{l, k} }

// Leads says that this node leads the log of that kind from now on, or does so
// no more.
func (l *Loop) Leads(k broker.Kind, leads bool) {
	l.with(func(b *broker.Broker, now broker.Time) { b.Leads(now, k, leads) })
}

type machine struct {
	loop *Loop
	kind broker.Kind
}

func (m machine) Apply(commands [][]byte) (results [][]byte, err error) {
	m.loop.with(func(b *broker.Broker, now broker.Time) { results, err = b.Apply(now, m.kind, commands) })
	return results, err
}

func (m machine) Snapshot() (snapshot []byte) {
	m.loop.with(func(b *broker.Broker, _ broker.Time) { snapshot = b.Snapshot(m.kind) })
	return snapshot
}

func (m machine) Size() (size int64) {
	m.loop.with(func(b *broker.Broker, _ broker.Time) { size = b.Size(m.kind) })
	return size
}

func (m machine) Restore(snapshot []byte) (err error) {
	m.loop.with(func(b *broker.Broker, now broker.Time) { err = b.Restore(now, m.kind, snapshot) })
	return err
}

// proposer hands commands to a log in their order, apart from the broker's
// lock: the log may answer at once.
type proposer struct {
	loop    *Loop
	kind    broker.Kind
	log     Log
	waiting []broker.Proposal // guarded by loop.mu; bounded by the broker
	wake    chan struct{}
}

func (p *proposer) run(done <-chan struct{}) {
	for {
		select {
		case <-done:
			return
		case <-p.wake:
		}
		p.loop.mu.Lock()
		batch := p.waiting
		p.waiting = nil
		p.loop.mu.Unlock()
		for _, c := range batch {
			p.log.Propose(c.Command, c.Adds, func(result []byte, err error) {
				if err != nil {
					result = nil
				}
				refused, full := err != nil && p.log.Refused(err), err != nil && p.log.Full(err)
				room := broker.RoomForNone // until the log's room is told again
				if refused && full {
					room = p.log.Room()
				}
				p.loop.with(func(b *broker.Broker, now broker.Time) {
					if full {
						b.SetRoom(now, p.kind, room)
					}
					b.Proposed(now, c.Token, result, refused, full)
				})
			})
		}
	}
}
