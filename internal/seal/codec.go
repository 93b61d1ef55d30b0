package seal

import (
	"encoding/binary"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/ticket"
	"github.com/anteroom/anteroom/qpid"
)

// The plain bytes of a ticket or a pass: fixed fields big-endian, small
// numbers as varints, names with their length in front. The room's name is not
// among them; it is authenticated beside them.

func packTicket(b []byte, t ticket.Ticket) []byte {
	b = append(b, t.ID[:]...)
	b = binary.BigEndian.AppendUint64(b, t.Stamp)
	b = binary.BigEndian.AppendUint64(b, uint64(t.Issued))
	b = binary.AppendUvarint(b, uint64(t.Gen))
	b = binary.AppendUvarint(b, uint64(t.Position))
	b = packMember(b, t.Home)
	for _, m := range t.Past {
		b = packMember(b, m)
	}
	if calls := uint64(t.Hand)<<17 | uint64(t.Slept)<<9 | uint64(t.Missed)<<1; calls > 0 || t.Anew { // few have this, and those of before nobody
		if t.Anew {
			calls |= 1
		}
		b = binary.AppendUvarint(b, calls)
	}
	return b
}

func unpackTicket(room string, b []byte) (ticket.Ticket, bool) {
	r := reader{rest: b}
	t := ticket.Ticket{Room: room, ID: r.id(), Stamp: r.uint64(), Issued: int64(r.uint64())}
	t.Gen, t.Position = r.uint32(), r.uint32()
	t.Home = r.member()
	for i := range t.Past {
		t.Past[i] = r.member()
	}
	if !r.bad && len(r.rest) > 0 {
		calls := r.uvarint(1<<25 - 1)
		t.Hand, t.Slept, t.Missed, t.Anew = uint8(calls>>17), uint8(calls>>9), uint8(calls>>1), calls&1 == 1
		r.bad = r.bad || calls == 0
	}
	return t, r.done()
}

func packPass(b []byte, p ticket.Pass) []byte {
	b = append(b, p.ID[:]...)
	b = binary.BigEndian.AppendUint64(b, p.Stamp)
	b = binary.BigEndian.AppendUint64(b, uint64(p.Expires))
	b = binary.BigEndian.AppendUint64(b, p.Home.Born)
	b = packMember(b, p.Home.Member)
	if p.Started == 0 { // as they were before there was a session_max: nodes of that time read them
		return b
	}
	return binary.BigEndian.AppendUint64(b, uint64(p.Started))
}

func unpackPass(room string, b []byte) (ticket.Pass, bool) {
	r := reader{rest: b}
	p := ticket.Pass{Room: room, ID: r.id(), Stamp: r.uint64(), Expires: int64(r.uint64())}
	p.Home.Born = r.uint64()
	p.Home.Member = r.member()
	if len(r.rest) > 0 {
		p.Started = int64(r.uint64())
		r.bad = r.bad || p.Started == 0 // one pass, one spelling
	}
	return p, r.done()
}

// packMember spends one byte on nobody.
func packMember(b []byte, m eviction.Member) []byte {
	b = binary.AppendUvarint(b, uint64(len(m.Name)))
	if m == (eviction.Member{}) {
		return b
	}
	b = append(b, m.Name...)
	return binary.BigEndian.AppendUint64(b, m.Boot)
}

// reader takes fields from rest. After the first that is not there everything
// reads as zero, and done reports false.
type reader struct {
	rest []byte
	bad  bool
}

func (r *reader) take(n int) []byte {
	if r.bad || n > len(r.rest) {
		r.bad = true
		return nil
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

func (r *reader) id() (id qpid.ItemID) {
	copy(id[:], r.take(len(id)))
	return id
}

func (r *reader) uint64() uint64 {
	if b := r.take(8); b != nil {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

func (r *reader) uvarint(most uint64) uint64 {
	v, n := binary.Uvarint(r.rest)
	if r.bad || n <= 0 || v > most {
		r.bad = true
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

func (r *reader) uint32() uint32 { return uint32(r.uvarint(1<<32 - 1)) }

func (r *reader) member() (m eviction.Member) {
	n := r.uvarint(nameMax)
	if n == 0 {
		return m
	}
	m.Name = qpid.NodeID(r.take(int(n)))
	m.Boot = r.uint64()
	return m
}

func (r *reader) done() bool { return !r.bad && len(r.rest) == 0 }
