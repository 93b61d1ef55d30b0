package broker

import (
	"errors"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/qpid"
)

// Handle names an item and where it is.
type Handle struct {
	Kind   Kind
	Node   qpid.NodeID // empty if the item is replicated
	Number uint64
}

// ErrHandle is a handle or a receipt that no broker made.
var ErrHandle = errors.New("not one that this service has given out")

const kindLetters = "mdr"

// String is what callers are given.
func (h Handle) String() string {
	return fmt.Sprintf("%c.%s.%s", kindLetters[h.Kind], strconv.FormatUint(h.Number, 36), h.Node)
}

// ParseHandle reads what String made.
func ParseHandle(s string) (Handle, error) {
	parts := strings.SplitN(s, ".", 3)
	if len(parts) != 3 || len(parts[0]) != 1 {
		return Handle{}, ErrHandle
	}
	k := strings.Index(kindLetters, parts[0])
	n, err := strconv.ParseUint(parts[1], 36, 64)
	if k < 0 || err != nil || n == 0 || (parts[2] == "") != (Kind(k) == Replicated) {
		return Handle{}, ErrHandle
	}
	return Handle{Kind: Kind(k), Node: qpid.NodeID(parts[2]), Number: n}, nil
}

// Receipt is what the holder of a lease shows.
func (h Handle) Receipt(lease uint64) string {
	return fmt.Sprintf("%s.%s", strconv.FormatUint(lease, 36), h)
}

// ParseReceipt reads what Receipt made.
func ParseReceipt(s string) (Handle, uint64, error) {
	number, rest, _ := strings.Cut(s, ".")
	lease, err := strconv.ParseUint(number, 36, 64)
	if err != nil || lease == 0 {
		return Handle{}, 0, ErrHandle
	}
	h, err := ParseHandle(rest)
	return h, lease, err
}

// MadeAt is an id that is at home at node, as long as that is there.
func MadeAt(node qpid.NodeID, random string) string { return random + "@" + string(node) }

// home returns the member of the list at which an item of that id is at home:
// the one that the id names, or else the winner of a rendezvous of all (Thaler
// and Ravishankar 1998), so that a retry at another node comes to the same one.
func home(queue, id string, list []eviction.Member) eviction.Member {
	if i := strings.LastIndexByte(id, '@'); i >= 0 {
		for _, m := range list {
			if string(m.Name) == id[i+1:] {
				return m
			}
		}
	}
	var best eviction.Member
	var most uint64
	for i, m := range list {
		h := fnv.New64a()
		_, _ = h.Write([]byte(m.Name)) // never fails
		_, _ = h.Write([]byte{0})
		_, _ = h.Write([]byte(queue))
		_, _ = h.Write([]byte{0})
		_, _ = h.Write([]byte(id))
		if score := mix(h.Sum64()); i == 0 || score > most {
			best, most = m, score
		}
	}
	return best
}

// mix spreads what FNV leaves together.
func mix(h uint64) uint64 {
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	return h
}
