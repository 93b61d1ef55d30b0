package eviction

import (
	"encoding/binary"
	"hash/fnv"
	"time"
)

// Nodes compare the settings of a room by a sum of their bytes. These must be the
// same at nodes of two releases, so they are written here field by field:
//
//	settings = version field*
//	field    = number value          of those that are not zero, by number
//	value    = int                   a number, a duration in nanoseconds; 1: true
//	         | length byte*          a string; bytes; an event or a member, which is field*
//
// Version is settingsVersion, one byte; number and length are unsigned varints of
// encoding/binary, int is a signed one. What is repeated is a field for each, in
// order. A field that is zero is not there: so a release that has a new one agrees
// with those that do not know it, as long as nobody uses it. Hence numbers are never
// used again for something else, and what a number means does not change.
//
// Not in it: Version, as two nodes may have been given different settings under one.
const settingsVersion = 1

// settings are bytes that are being written.
type settings []byte

// Sum is the same for equal contents, whatever the version. Nodes that were
// configured by hand may have different contents of one version.
func (r Room) Sum() uint64 {
	r = r.WithDefaults()
	h := fnv.New64a()
	_, _ = h.Write(r.settings())
	return h.Sum64()
}

// settings are the bytes that say what the room is like.
func (r *Room) settings() []byte {
	s := make(settings, 1, 256)
	s[0] = settingsVersion
	s.text(1, r.Name)
	s.int(2, int64(r.Target))
	s.int(3, int64(r.NewPerMinute))
	s.duration(4, r.Session)
	s.duration(5, r.SessionMax)
	s.bool(6, r.NoRenewal)
	s.int(7, int64(r.Method))
	s.bool(8, r.QueueAll)
	s.duration(9, r.Refresh)
	s.duration(10, r.TicketTTL)
	s.duration(11, r.ClaimWindow)
	s.int(12, int64(r.ClaimsMax))
	s.int(13, int64(r.Algorithm))
	s.int(14, int64(r.OnPartition))
	s.duration(15, r.Survivor)
	s.int(16, int64(r.QueueMax))
	for i := range r.Events {
		s.bytes(17, r.Events[i].settings())
	}
	s.some(18, r.Event.settings())
	s.int(19, int64(r.Mode))
	for _, m := range r.Reclaimed {
		s.bytes(20, m.settings())
	}
	s.text(21, r.Settings)
	return s
}

func (e *Event) settings() []byte {
	var s settings
	s.text(1, e.Name)
	s.int(2, e.Prequeue)
	s.int(3, e.Start)
	s.int(4, e.End)
	s.bool(5, e.Shuffle)
	if e.Seed != [32]byte{} {
		s.bytes(6, e.Seed[:])
	}
	s.int(7, int64(e.Set))
	s.int(8, int64(e.Target))
	s.int(9, int64(e.NewPerMinute))
	s.duration(10, e.Session)
	s.bool(11, e.NoRenewal)
	s.int(12, int64(e.Method))
	return s
}

func (m Member) settings() []byte {
	var s settings
	s.text(1, string(m.Name))
	s.int(2, int64(m.Boot))
	return s
}

func (s *settings) int(number uint64, v int64) {
	if v != 0 {
		*s = binary.AppendVarint(binary.AppendUvarint(*s, number), v)
	}
}

func (s *settings) duration(number uint64, d time.Duration) { s.int(number, d.Nanoseconds()) }

func (s *settings) bool(number uint64, v bool) {
	if v {
		s.int(number, 1)
	}
}

func (s *settings) text(number uint64, v string) { s.some(number, []byte(v)) }

// some writes v unless it is empty.
func (s *settings) some(number uint64, v []byte) {
	if len(v) > 0 {
		s.bytes(number, v)
	}
}

// bytes writes v, which counts also if it is empty: as one of several.
func (s *settings) bytes(number uint64, v []byte) {
	*s = binary.AppendUvarint(*s, number)
	*s = append(binary.AppendUvarint(*s, uint64(len(v))), v...)
}
