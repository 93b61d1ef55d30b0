package replog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/raft"
)

// StateMachine is what a log drives. Calls never overlap.
type StateMachine interface {
	// Apply applies committed commands in the order of the log, on every member.
	// It returns one result for each. With an error none of them is applied: one
	// cannot be read. The log stops there, see Unreadable.
	Apply(commands [][]byte) (results [][]byte, err error)
	// Snapshot returns the whole state. The log owns the bytes.
	Snapshot() []byte
	// Restore replaces the state by one that Snapshot returned somewhere, perhaps
	// in another version of the program.
	Restore(snapshot []byte) error
	// Size is how many bytes Snapshot would return, more or less. It may be called
	// at any time.
	Size() int64
}

// entryVersion and snapshotVersion are the first bytes of an entry of the log
// and of a snapshot.
const (
	entryVersion    = 1
	snapshotVersion = 1
)

var errEntry = errors.New("it is no entry of a version that this release knows")

// appendCommand adds a command to an entry, which begins empty.
func appendCommand(entry, command []byte) []byte {
	if len(entry) == 0 {
		entry = append(entry, entryVersion)
	}
	entry = binary.AppendUvarint(entry, uint64(len(command)))
	return append(entry, command...)
}

// commandsOf returns the commands of an entry, which share its bytes.
func commandsOf(entry []byte) ([][]byte, error) {
	if len(entry) == 0 || entry[0] != entryVersion {
		return nil, errEntry
	}
	var commands [][]byte
	for rest := entry[1:]; len(rest) > 0; {
		size, n := binary.Uvarint(rest)
		if n <= 0 || size > uint64(len(rest)-n) {
			return nil, errEntry
		}
		end := n + int(size)
		commands = append(commands, rest[n:end:end])
		rest = rest[end:]
	}
	return commands, nil
}

// machine is the caller's state machine as raft sees it. It tells the caller
// about leadership too, so that neither happens during the other.
type machine struct {
	alone       bool // a durable log's
	snapshotMax int64
	leads       func(bool)

	mu       sync.Mutex
	state    StateMachine
	leading  bool   // as the caller knows it
	term     uint64 // since when
	grown    int64  // bytes of entries since the last snapshot
	snapshot int64  // bytes of the last snapshot
	full     chan struct{}
	failed   error                      // of the last Restore
	unread   atomic.Pointer[Unreadable] // the entry that was the last; nil: all can be read
	compact  int64                      // a token goes into full when the log has grown by this much
}

var _ raft.BatchingFSM = (*machine)(nil)

// Apply is for a raft that does not batch.
func (m *machine) Apply(l *raft.Log) any { return m.ApplyBatch([]*raft.Log{l})[0] }

// ApplyBatch applies entries. The answer to one is its results or an error.
func (m *machine) ApplyBatch(logs []*raft.Log) []any {
	m.mu.Lock()
	defer m.mu.Unlock()
	answers := make([]any, len(logs))
	for i, l := range logs {
		if m.leading && l.Term > m.term && !m.alone {
			m.lead(false, 0) // somebody else led meanwhile; raft's own word is still under way
		}
		if l.Type == raft.LogCommand {
			if err := applicable(l); err != nil {
				panic(fmt.Sprintf("replog: entry %d of the queues' log is not what was proposed: %v; memory or disk is damaged", l.Index, err))
			}
			answers[i] = m.apply(l.Index, l.Data)
		}
	}
	return answers
}

func (m *machine) apply(index uint64, entry []byte) any {
	if u := m.unread.Load(); u != nil {
		return u
	}
	m.grown += int64(len(entry))
	if m.grown >= max(m.compact, m.snapshot) {
		select {
		case m.full <- struct{}{}:
		default:
		}
	}
	commands, err := commandsOf(entry)
	var results [][]byte
	if err == nil {
		results, err = m.state.Apply(commands)
	}
	if err != nil {
		u := &Unreadable{index, err}
		m.unread.Store(u)
		m.lead(false, 0)
		return u
	}
	if len(results) != len(commands) {
		panic(fmt.Sprintf("replog: %d results of %d commands", len(results), len(commands)))
	}
	return results
}

// lead tells the caller who leads, unless it knows. The caller holds m.mu.
func (m *machine) lead(leading bool, term uint64) {
	if m.leading == leading {
		return
	}
	m.leading, m.term = leading, term
	m.leads(leading)
}

// sizes returns how many bytes a snapshot would have, and the log since the last
// one.
func (m *machine) sizes() (snapshot, grown int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.state.Size(), m.grown
}

// Snapshot takes the state as it is now.
func (m *machine) Snapshot() (raft.FSMSnapshot, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if u := m.unread.Load(); u != nil {
		return nil, u
	}
	s := snapshot(m.state.Snapshot())
	m.grown, m.snapshot = 0, int64(len(s))
	if int64(len(s)) > m.snapshotMax {
		return nil, fmt.Errorf("a snapshot of %d bytes is larger than the bound of %d", len(s), m.snapshotMax)
	}
	return s, nil
}

// Restore replaces the state.
func (m *machine) Restore(from io.ReadCloser) error {
	defer from.Close() //nolint:errcheck // it was only read
	err := m.restore(from)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.failed = err
	return err
}

func (m *machine) restore(from io.Reader) error {
	var head [9]byte
	if _, err := io.ReadFull(from, head[:]); err != nil {
		return fmt.Errorf("snapshot: %w", err)
	}
	if head[0] != snapshotVersion {
		return fmt.Errorf("snapshot: it is of version %d, and this program knows %d", head[0], snapshotVersion)
	}
	size := binary.BigEndian.Uint64(head[1:])
	if size > uint64(m.snapshotMax) {
		return fmt.Errorf("snapshot: %d bytes are more than the bound of %d", size, m.snapshotMax)
	}
	state := make([]byte, size)
	if _, err := io.ReadFull(from, state); err != nil {
		return fmt.Errorf("snapshot: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.state.Restore(state); err != nil {
		return fmt.Errorf("snapshot: %w", err)
	}
	m.grown, m.snapshot = 0, int64(size)
	return nil
}

// snapshot is a state on its way to a file.
type snapshot []byte

// Persist writes the snapshot, with its size so that a torn one is noticed.
func (s snapshot) Persist(sink raft.SnapshotSink) error {
	head := binary.BigEndian.AppendUint64([]byte{snapshotVersion}, uint64(len(s)))
	for _, part := range [][]byte{head, s} {
		if _, err := sink.Write(part); err != nil {
			_ = sink.Cancel()
			return err
		}
	}
	return sink.Close()
}

// Release has nothing to let go of.
func (s snapshot) Release() {}
