package replog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/hashicorp/raft"
)

// Two sums of CRC-32C keep watch over an entry. The one of its commands is made
// where they were proposed and travels with the entry, so each member checks it
// when it applies them. The other is of all of the entry as a disk has it, is
// made when it is written there, and is checked whenever it is read. Both stand in
// the entry's Extensions, where versions of the program that knew no sums leave
// them alone.
const (
	commandsSummed = 0xC1 // first byte of the one
	entrySummed    = 0xC2 // and of the other
	sumLen         = 5    // with it
)

var errSum = errors.New("its checksum is wrong")

// appendSum adds a sum to b.
func appendSum(b []byte, kind byte, sum uint32) []byte {
	return binary.BigEndian.AppendUint32(append(b, kind), sum)
}

// cutSum takes the sum off the end of b.
func cutSum(b []byte, kind byte) (rest []byte, sum uint32, ok bool) {
	at := len(b) - sumLen
	if at < 0 || b[at] != kind {
		return b, 0, false
	}
	return b[:at:at], binary.BigEndian.Uint32(b[at+1:]), true
}

// proposed is an entry of commands with its sum.
func proposed(commands []byte) raft.Log {
	return raft.Log{Data: commands, Extensions: appendSum(nil, commandsSummed, crc32.Checksum(commands, castagnoli()))}
}

// applicable returns an error unless the commands of an entry are those that were
// proposed. Entries of earlier versions have no sum.
func applicable(l *raft.Log) error {
	if len(l.Extensions) == 0 {
		return nil
	}
	if _, sum, ok := cutSum(l.Extensions, commandsSummed); !ok || sum != crc32.Checksum(l.Data, castagnoli()) {
		return errSum
	}
	return nil
}

// summed are entries with the sums that a disk needs.
type summed struct {
	entries
	plain uint64 // entries up to this one have none: they are older than sums
}

func sumOf(l *raft.Log, extensions []byte) uint32 {
	var head [40]byte
	for i, v := range []uint64{l.Index, l.Term, uint64(l.Type), uint64(len(l.Data)), uint64(len(extensions))} {
		binary.BigEndian.PutUint64(head[8*i:], v)
	}
	c := crc32.Update(0, castagnoli(), head[:])
	c = crc32.Update(c, castagnoli(), l.Data)
	return crc32.Update(c, castagnoli(), extensions)
}

func (s *summed) StoreLog(l *raft.Log) error { return s.StoreLogs([]*raft.Log{l}) }

func (s *summed) StoreLogs(logs []*raft.Log) error {
	with, copies := make([]*raft.Log, len(logs)), make([]raft.Log, len(logs)) // raft goes on using its own
	for i, l := range logs {
		copies[i] = *l
		copies[i].Extensions = appendSum(l.Extensions[:len(l.Extensions):len(l.Extensions)], entrySummed, sumOf(l, l.Extensions))
		with[i] = &copies[i]
	}
	return s.entries.StoreLogs(with)
}

func (s *summed) GetLog(index uint64, l *raft.Log) error {
	if err := s.entries.GetLog(index, l); err != nil {
		return err
	}
	return checked(index, l, s.plain)
}

// checked takes the sum off an entry as it was read, and checks it.
func checked(index uint64, l *raft.Log, plain uint64) error {
	rest, sum, ok := cutSum(l.Extensions, entrySummed)
	if !ok && index <= plain && l.Index == index {
		return nil
	}
	if !ok || l.Index != index || sum != sumOf(l, rest) {
		return fmt.Errorf("entry %d: %w", index, errSum)
	}
	if l.Extensions = rest; len(rest) == 0 {
		l.Extensions = nil
	}
	return nil
}
