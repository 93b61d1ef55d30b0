package seal

import (
	"bytes"
	"cmp"
	"crypto/hkdf"
	"crypto/sha256"
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
	// spare is of *scratch.
	spare sync.Pool
}

// New returns a ring without keys. Give it some with Rotate, Merge or Load.
func New(c Config) *Ring {
	c.Settle = cmp.Or(c.Settle, 5*time.Second)
	c.Keep = cmp.Or(c.Keep, 25*time.Hour)
	r := &Ring{c: c, spare: sync.Pool{New: func() any { return new(scratch) }}}
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

// Derive returns for another purpose a secret of each key, that of the key which
// seals first: all nodes of a cluster have the same.
func (r *Ring) Derive(purpose string) [][]byte {
	keys, active := *r.keys.Load(), r.active()
	secrets := make([][]byte, 0, len(keys))
	for _, k := range slices.Backward(keys) {
		secret, err := hkdf.Key(sha256.New, k.secret, nil, "anteroom "+purpose, sha256.Size)
		if err != nil {
			panic("seal: " + err.Error()) // 32 bytes are not too many
		}
		if secrets = append(secrets, secret); k == active {
			secrets[0], secrets[len(secrets)-1] = secret, secrets[0]
		}
	}
	return secrets
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
	s := r.spare.Get().(*scratch)
	defer r.spare.Put(s)
	s.plain = packTicket(s.begin(kindTicket, t.Room), t)
	return r.seal(s, kindTicket, t.Room)
}

// Pass seals p.
func (r *Ring) Pass(p ticket.Pass) (string, error) {
	s := r.spare.Get().(*scratch)
	defer r.spare.Put(s)
	s.plain = packPass(s.begin(kindPass, p.Room), p)
	return r.seal(s, kindPass, p.Room)
}

// OpenTicket returns the ticket for room that s was sealed from. The error is ErrInvalid.
func (r *Ring) OpenTicket(room, sealed string) (ticket.Ticket, error) {
	s := r.spare.Get().(*scratch)
	defer r.spare.Put(s)
	if plain, ok := r.open(s, kindTicket, room, sealed); ok {
		if t, ok := unpackTicket(room, plain); ok {
			return t, nil
		}
	}
	return ticket.Ticket{}, ErrInvalid
}

// OpenPass returns the pass for room that s was sealed from. The error is
// ErrInvalid. Whether the pass has expired is for the caller to see.
func (r *Ring) OpenPass(room, sealed string) (ticket.Pass, error) {
	s := r.spare.Get().(*scratch)
	defer r.spare.Put(s)
	if plain, ok := r.open(s, kindPass, room, sealed); ok {
		if p, ok := unpackPass(room, plain); ok {
			return p, nil
		}
	}
	return ticket.Pass{}, ErrInvalid
}

// scratch is memory to work in. Visitors' every request opens a string and
// mostly seals one, so it is used again.
type scratch struct {
	plain []byte // what tells contents apart, and then the contents
	head  int    // length of the former
	box   []byte // the sealed bytes
	extra []byte // what is authenticated beside them
	text  []byte // the sealed bytes as characters
}

// begin returns s.plain for the contents to be appended to.
func (s *scratch) begin(kind byte, room string) []byte {
	s.plain = append(append(s.plain[:0], kind, byte(len(room)), byte(len(room)>>8)), room...)
	s.head = len(s.plain)
	return s.plain
}

func (r *Ring) seal(s *scratch, kind byte, room string) (string, error) {
	k := r.active()
	if k == nil {
		return "", ErrNoKey
	}
	s.box = append(append(s.box[:0], kind), k.id[:]...)
	s.extra = append(append(s.extra[:0], s.box...), room...)
	s.box = k.appendNonce(s.box, s.plain)
	s.box = k.aead.Seal(s.box, s.box[headLen:], s.plain[s.head:], s.extra)
	s.text = base64.RawURLEncoding.AppendEncode(s.text[:0], s.box)
	return string(s.text), nil
}

// open returns what is sealed in text; it is in s. It is deciphered in place.
func (r *Ring) open(s *scratch, kind byte, room, text string) ([]byte, bool) {
	n := base64.RawURLEncoding.DecodedLen(len(text))
	if len(text) > sealedMax || n < headLen+nonceLen+tagLen {
		return nil, false
	}
	s.text = append(s.text[:0], text...)
	var err error
	s.box, err = base64.RawURLEncoding.Strict().AppendDecode(s.box[:0], s.text)
	if err != nil || len(s.box) != n || s.box[0] != kind { // n: the decoder skips line breaks, and a ticket has one spelling
		return nil, false
	}
	k := find(*r.keys.Load(), [idLen]byte(s.box[1:]))
	if k == nil {
		return nil, false
	}
	s.extra = append(append(s.extra[:0], s.box[:headLen]...), room...)
	nonce, sealed := s.box[headLen:headLen+nonceLen], s.box[headLen+nonceLen:]
	plain, err := k.aead.Open(sealed[:0], nonce, sealed, s.extra)
	return plain, err == nil
}
