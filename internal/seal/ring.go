package seal

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anteroom/anteroom/internal/ticket"
)

// What Open functions and keys' owners branch on.
var (
	ErrInvalid = errors.New("seal: not made by this cluster, for another room, or damaged")
	ErrNoKey   = errors.New("seal: there is no key yet")
)

// The first byte of a sealed string: what it is, and the version of its form.
const (
	kindTicket byte = 0x11
	kindPass   byte = 0x21
)

const (
	idLen     = 8
	headLen   = 1 + idLen
	nonceLen  = 12
	tagLen    = 16
	nameMax   = 255  // bytes of a node's name; a longer one does not open again
	sealedMax = 2048 // characters; longer strings are refused unread
	keysMax   = 64   // of a ring
)

// Config is what a Ring needs. The zero value of a duration means its default.
type Config struct {
	Now    func() int64  // Unix microseconds
	Settle time.Duration // a new key waits this long before it seals [5s]
	// Keep is how long a key opens what it sealed after a newer one has taken
	// over: at least the longest life of a ticket and of a session [25h].
	Keep time.Duration
}

// Ring is a set of keys. It is safe for concurrent use; sealing and opening
// share no lock.
type Ring struct {
	c    Config
	mu   sync.Mutex // held by writers of keys
	keys atomic.Pointer[[]*key]
}

// New returns a ring without keys. Give it some with Rotate, Merge or Load.
func New(c Config) *Ring {
	c.Settle = cmp.Or(c.Settle, 5*time.Second)
	c.Keep = cmp.Or(c.Keep, 25*time.Hour)
	r := &Ring{c: c}
	r.keys.Store(new([]*key))
	return r
}

// Rotate makes a new key. It seals as soon as it has settled.
func (r *Ring) Rotate() error {
	now := r.c.Now()
	k, err := newKey(now)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(*r.keys.Load()) >= keysMax {
		return fmt.Errorf("seal: the ring has %d keys, the most it may have; wait until old ones are dropped", keysMax)
	}
	r.add([]*key{k}, now)
	return nil
}

// Merge takes in the keys of another ring, as Export gave them, and reports
// whether that changed this one.
func (r *Ring) Merge(other []byte) (changed bool, err error) {
	now := r.c.Now()
	keys, err := decodeKeys(other, now)
	if err != nil {
		return false, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var fresh []*key
	for _, k := range keys {
		if have := find(*r.keys.Load(), k.id); have == nil {
			fresh = append(fresh, k)
		}
	}
	if len(fresh)+len(*r.keys.Load()) > keysMax {
		return false, fmt.Errorf("seal: together the rings have over %d keys", keysMax)
	}
	return r.add(fresh, now), nil
}

// add puts keys in, drops those that are of no use any more, and reports
// whether the set changed. Callers hold r.mu.
func (r *Ring) add(fresh []*key, now int64) bool {
	old := *r.keys.Load()
	all := append(slices.Clone(old), fresh...)
	slices.SortFunc(all, func(a, b *key) int {
		return cmp.Or(cmp.Compare(a.created, b.created), bytes.Compare(a.id[:], b.id[:]))
	})
	late := (r.c.Settle + r.c.Keep).Microseconds()
	for len(all) > 1 && all[1].created+late < now {
		all = all[1:]
	}
	if slices.Equal(all, old) {
		return false
	}
	r.keys.Store(&all)
	return true
}

// active returns the key that seals: the newest that has settled, else the
// oldest, which the others are the likeliest to have; nil without keys.
func (r *Ring) active() *key {
	keys := *r.keys.Load()
	if len(keys) == 0 {
		return nil
	}
	if len(keys) > 1 {
		settled := r.c.Now() - r.c.Settle.Microseconds()
		for _, k := range slices.Backward(keys) {
			if max(k.created, k.learned) <= settled {
				return k
			}
		}
	}
	return keys[0]
}

func find(keys []*key, id [idLen]byte) *key {
	for _, k := range slices.Backward(keys) { // most strings are of the newest
		if k.id == id {
			return k
		}
	}
	return nil
}

// Ticket seals t.
func (r *Ring) Ticket(t ticket.Ticket) (string, error) {
	return r.seal(kindTicket, t.Room, packTicket(make([]byte, 0, 128), t))
}

// Pass seals p.
func (r *Ring) Pass(p ticket.Pass) (string, error) {
	return r.seal(kindPass, p.Room, packPass(make([]byte, 0, 128), p))
}

// OpenTicket returns the ticket for room that s was sealed from. The error is ErrInvalid.
func (r *Ring) OpenTicket(room, s string) (ticket.Ticket, error) {
	if plain, ok := r.open(kindTicket, room, s); ok {
		if t, ok := unpackTicket(room, plain); ok {
			return t, nil
		}
	}
	return ticket.Ticket{}, ErrInvalid
}

// OpenPass returns the pass for room that s was sealed from. The error is
// ErrInvalid. Whether the pass has expired is for the caller to see.
func (r *Ring) OpenPass(room, s string) (ticket.Pass, error) {
	if plain, ok := r.open(kindPass, room, s); ok {
		if p, ok := unpackPass(room, plain); ok {
			return p, nil
		}
	}
	return ticket.Pass{}, ErrInvalid
}

func (r *Ring) seal(kind byte, room string, plain []byte) (string, error) {
	k := r.active()
	if k == nil {
		return "", ErrNoKey
	}
	b := make([]byte, headLen+nonceLen, headLen+nonceLen+len(plain)+tagLen+headLen+len(room))
	b[0] = kind
	copy(b[1:], k.id[:])
	head, nonce := b[:headLen], b[headLen:]
	k.nonce(nonce, kind, room, plain)
	extra := append(append(b[len(b)+len(plain)+tagLen:len(b)+len(plain)+tagLen], head...), room...)
	return base64.RawURLEncoding.EncodeToString(k.aead.Seal(b, nonce, plain, extra)), nil
}

// open works in one buffer: s is decoded from its end to its start, where it
// is then deciphered in place. Visitors' every request comes through here.
func (r *Ring) open(kind byte, room, s string) ([]byte, bool) {
	n := base64.RawURLEncoding.DecodedLen(len(s))
	if len(s) > sealedMax || n < headLen+nonceLen+tagLen {
		return nil, false
	}
	buf := make([]byte, n, n+max(len(s), headLen+len(room)))
	spare := buf[n:n]
	got, err := base64.RawURLEncoding.Strict().Decode(buf, append(spare, s...))
	if err != nil || got != n || buf[0] != kind { // got: the decoder skips line breaks, and a ticket has one spelling
		return nil, false
	}
	k := find(*r.keys.Load(), [idLen]byte(buf[1:]))
	if k == nil {
		return nil, false
	}
	extra := append(append(spare, buf[:headLen]...), room...)
	nonce, sealed := buf[headLen:headLen+nonceLen], buf[headLen+nonceLen:]
	plain, err := k.aead.Open(sealed[:0], nonce, sealed, extra)
	return plain, err == nil
}
