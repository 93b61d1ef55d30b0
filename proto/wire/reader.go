package wire

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/anteroom/anteroom/eviction"
	peerv1 "github.com/anteroom/anteroom/proto/anteroom/peer/v1"
	"github.com/anteroom/anteroom/qpid"
)

// weightSize is the length of an encoded weight.
const weightSize = 8 + len(qpid.ItemID{})

// reader decodes. Its first error sticks; what it returns after that is of no
// use, but never wild.
type reader struct{ err error }

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: "+format, append([]any{ErrMalformed}, args...)...)
	}
}

// list decodes each of in, which may be most long. An empty list becomes nil.
func list[P, T any](r *reader, what string, in []P, most int, decode func(P) T) []T {
	if len(in) > most {
		r.fail("%d %s, at most %d", len(in), what, most)
	}
	if len(in) == 0 || r.err != nil {
		return nil
	}
	out := make([]T, len(in))
	for i, p := range in {
		out[i] = decode(p)
	}
	return out
}

// encoded is list the other way.
func encoded[T, P any](in []T, encode func(T) P) []P {
	if len(in) == 0 {
		return nil
	}
	out := make([]P, len(in))
	for i, t := range in {
		out[i] = encode(t)
	}
	return out
}

func same[T any](t T) T { return t }

func (r *reader) text(what, s string, most int) string {
	if len(s) > most {
		r.fail("%s of %d bytes, at most %d", what, len(s), most)
		return ""
	}
	return s
}

func (r *reader) name(s string) string { return r.text("name", s, nameMax) }

func (r *reader) node(s string) qpid.NodeID { return qpid.NodeID(r.name(s)) }

// number decodes an int, which may be narrower than 64 bits.
func (r *reader) number(n int64) int {
	if int64(int(n)) != n {
		r.fail("number %d is too large", n)
		return 0
	}
	return int(n)
}

// index decodes a place in a list of nodes.
func (r *reader) index(i uint32) int {
	if i >= nodesMax {
		r.fail("index %d", i)
		return 0
	}
	return int(i)
}

// rate decodes a number of something per second.
func (r *reader) rate(f float64) float64 {
	if !(f >= 0) || math.IsInf(f, 0) {
		r.fail("rate %v", f)
		return 0
	}
	return f
}

// enum decodes a value that the wire counts from 1.
func (r *reader) enum(what string, v int32, last uint8) uint8 {
	if v < 1 || v > int32(last)+1 {
		r.fail("%s %d", what, v)
		return 0
	}
	return uint8(v - 1)
}

// small decodes a number of one byte.
func (r *reader) small(n uint32) uint8 {
	if n > math.MaxUint8 {
		r.fail("number %d is too large", n)
	}
	return uint8(n)
}

// fill copies b, which is as long as to or absent.
func (r *reader) fill(what string, to, b []byte) {
	if len(b) != 0 && len(b) != len(to) {
		r.fail("%s of %d bytes, not %d", what, len(b), len(to))
		return
	}
	copy(to, b)
}

func (r *reader) id(b []byte) (id qpid.ItemID) {
	r.fill("id", id[:], b)
	return id
}

func (r *reader) seed(b []byte) (seed [32]byte) {
	r.fill("seed", seed[:], b)
	return seed
}

// bytesOf encodes an id or a seed; nothing stands for all zeros.
func bytesOf(b []byte) []byte {
	for _, x := range b {
		if x != 0 {
			return b
		}
	}
	return nil
}

func appendWeight(to []byte, w qpid.Weight) []byte {
	return append(binary.BigEndian.AppendUint64(to, w.Stamp), w.ID[:]...)
}

func fromWeight(w qpid.Weight) []byte {
	if w == (qpid.Weight{}) {
		return nil
	}
	return appendWeight(make([]byte, 0, weightSize), w)
}

func (r *reader) weight(b []byte) (w qpid.Weight) {
	switch len(b) {
	case 0:
	case weightSize:
		w.Stamp = binary.BigEndian.Uint64(b)
		copy(w.ID[:], b[8:])
	default:
		r.fail("weight of %d bytes", len(b))
	}
	return w
}

func fromWeights(ws []qpid.Weight) []byte {
	if len(ws) == 0 {
		return nil
	}
	out := make([]byte, 0, weightSize*len(ws))
	for _, w := range ws {
		out = appendWeight(out, w)
	}
	return out
}

func (r *reader) weights(b []byte) []qpid.Weight {
	if len(b)%weightSize != 0 || len(b) > weightSize*weightsMax {
		r.fail("weights of %d bytes", len(b))
	}
	if len(b) == 0 || r.err != nil {
		return nil
	}
	out := make([]qpid.Weight, len(b)/weightSize)
	for i := range out {
		out[i] = r.weight(b[weightSize*i : weightSize*(i+1)])
	}
	return out
}

func fromMember(m eviction.Member) *peerv1.Member {
	if m == (eviction.Member{}) {
		return nil
	}
	return &peerv1.Member{Name: string(m.Name), Boot: m.Boot}
}

func (r *reader) member(p *peerv1.Member) eviction.Member {
	return eviction.Member{Name: r.node(p.GetName()), Boot: p.GetBoot()}
}

// FromMember encodes who a node is.
func FromMember(m eviction.Member) *peerv1.Member { return fromMember(m) }

// ToMember decodes who a node is; nobody has no name.
func ToMember(p *peerv1.Member) (eviction.Member, error) {
	var r reader
	m := r.member(p)
	if m.Name == "" {
		r.fail("a member without a name")
	}
	return m, r.err
}

func fromPeer(p eviction.Peer) *peerv1.PeerInfo {
	if p == (eviction.Peer{}) {
		return nil
	}
	return &peerv1.PeerInfo{Member: fromMember(p.Member), Start: p.Start}
}

// FromPeer encodes which life of a node it is; ToPeer decodes it.
func FromPeer(p eviction.Peer) *peerv1.PeerInfo { return fromPeer(p) }

// ToPeer decodes which life of a node it is. Nobody has no name, and a life has
// begun at some time.
func ToPeer(p *peerv1.PeerInfo) (eviction.Peer, error) {
	var r reader
	who := r.peer(p)
	if who.Name == "" || who.Start <= 0 {
		r.fail("a member without a name, or without the time at which it started")
	}
	return who, r.err
}

func (r *reader) peer(p *peerv1.PeerInfo) eviction.Peer {
	return eviction.Peer{Member: r.member(p.GetMember()), Start: p.GetStart()}
}

func fromAccount(a eviction.Account) *peerv1.Account {
	if a == (eviction.Account{}) {
		return nil
	}
	return &peerv1.Account{Member: fromMember(a.Member), Born: a.Born}
}

func (r *reader) account(p *peerv1.Account) eviction.Account {
	return eviction.Account{Member: r.member(p.GetMember()), Born: p.GetBorn()}
}

func fromEpoch(e qpid.Epoch) *peerv1.Epoch {
	if e == (qpid.Epoch{}) {
		return nil
	}
	return &peerv1.Epoch{Num: e.Num, Coordinator: string(e.Coordinator)}
}

func (r *reader) epoch(p *peerv1.Epoch) qpid.Epoch {
	return qpid.Epoch{Num: p.GetNum(), Coordinator: r.node(p.GetCoordinator())}
}

func fromDuration(d time.Duration) int64 { return int64(d) }

func toDuration(ns int64) time.Duration { return time.Duration(ns) }
