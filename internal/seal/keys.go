package seal

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"math"
	"sync"
	"time"
)

// key seals and signs.
type key struct {
	id      [idLen]byte
	created int64 // Unix microseconds, by the clock of the node that made it
	learned int64 // when this ring got it
	secret  []byte
	nonces  sync.Pool   // of hash.Hash, keyed with what is derived from secret
	aead    cipher.AEAD // of secret
	signing *ecdsa.PrivateKey
	header  string // of the JWTs that it signs, encoded
}

func newKey(now int64) (*key, error) {
	signing, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("seal: make a signing key: %w", err)
	}
	k := &key{created: now, learned: now, secret: make([]byte, 32), signing: signing}
	rand.Read(k.id[:]) // crypto/rand: it never fails
	rand.Read(k.secret)
	return k, k.ready()
}

func (k *key) ready() error {
	k.header = k.jwtHeader()
	block, err := aes.NewCipher(k.secret)
	if err != nil {
		return err
	}
	k.aead, err = cipher.NewGCM(block)
	derived := sha256.Sum256(append([]byte("anteroom nonces 1"), k.secret...))
	k.nonces.New = func() any { return hmac.New(sha256.New, derived[:]) }
	return err
}

// appendNonce appends what is drawn from the contents alone, and from what tells
// them apart from others, so that the same pass is the same string whenever it is
// sealed with the same key. Different contents have the same nonce as seldom as
// if they were drawn at random.
func (k *key) appendNonce(b, contents []byte) []byte {
	h := k.nonces.Get().(hash.Hash)
	defer k.nonces.Put(h)
	h.Reset()
	h.Write(contents)
	return h.Sum(b)[:len(b)+nonceLen]
}

func (k *key) name() string { return hex.EncodeToString(k.id[:]) }

// keyFile is the form of a ring in a file and between nodes. It holds secrets.
type keyFile struct {
	Keys []keyEntry `json:"keys"`
}

type keyEntry struct {
	ID      string    `json:"id"`
	Created time.Time `json:"created"`
	Secret  []byte    `json:"secret"`  // AES-256
	Signing []byte    `json:"signing"` // P-256 private scalar
}

// Export returns the ring's keys for Merge. They are secrets.
func (r *Ring) Export() []byte {
	f := keyFile{Keys: []keyEntry{}}
	for _, k := range *r.keys.Load() {
		scalar, err := k.signing.Bytes()
		if err != nil {
			panic(fmt.Sprintf("seal: key %s does not encode: %v", k.name(), err)) // it was checked on its way in
		}
		f.Keys = append(f.Keys, keyEntry{ID: k.name(), Created: time.UnixMicro(k.created).UTC(), Secret: k.secret, Signing: scalar})
	}
	b, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		panic(fmt.Sprintf("seal: keys do not encode: %v", err)) // strings, bytes and years below 10000
	}
	return append(b, '\n')
}

// decodeKeys is strict, and none of its errors quotes its input.
func decodeKeys(b []byte, now int64) ([]*key, error) {
	var f keyFile
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if d.Decode(&f) != nil || d.More() {
		return nil, fmt.Errorf("%w: not a key file", ErrKeys)
	}
	if len(f.Keys) > keysMax {
		return nil, fmt.Errorf("%w: %d keys, over %d", ErrKeys, len(f.Keys), keysMax)
	}
	keys := make([]*key, 0, len(f.Keys))
	for i, e := range f.Keys {
		k := &key{created: e.Created.UnixMicro(), learned: now, secret: e.Secret}
		id, err := hex.DecodeString(e.ID)
		if err != nil || len(id) != idLen || find(keys, [idLen]byte(id)) != nil {
			return nil, fmt.Errorf("%w: key %d: id: want %d hexadecimal digits that no other key has", ErrKeys, i+1, 2*idLen)
		}
		k.id = [idLen]byte(id)
		if k.created < 0 || e.Created.Year() > yearMax {
			return nil, fmt.Errorf("%w: key %d: created: want a date from 1970 to %d", ErrKeys, i+1, yearMax)
		}
		if len(k.secret) != 32 {
			return nil, fmt.Errorf("%w: key %d: secret: want 32 bytes in base64", ErrKeys, i+1)
		}
		if k.signing, err = ecdsa.ParseRawPrivateKey(elliptic.P256(), e.Signing); err != nil {
			return nil, fmt.Errorf("%w: key %d: signing: want the 32 bytes of a P-256 private key in base64", ErrKeys, i+1)
		}
		if err := k.ready(); err != nil {
			return nil, fmt.Errorf("%w: key %d: %w", ErrKeys, i+1, err)
		}
		keys = append(keys, k)
	}
	return keys, nil
}

// yearMax keeps times far from where they no longer encode.
const yearMax = 9000

// KeyInfo says of a key what everybody may know.
type KeyInfo struct {
	ID      string    `json:"id"`
	Created time.Time `json:"created"`
	Active  bool      `json:"active"`           // it seals and signs
	Dropped time.Time `json:"dropped,omitzero"` // when it leaves the ring; zero: not yet replaced
}

// Keys lists the ring's keys, the oldest first.
func (r *Ring) Keys() []KeyInfo {
	keys, active := *r.keys.Load(), r.active()
	list := make([]KeyInfo, len(keys))
	for i, k := range keys {
		list[i] = KeyInfo{ID: k.name(), Created: time.UnixMicro(k.created).UTC(), Active: k == active}
		if i+1 < len(keys) {
			list[i].Dropped = time.UnixMicro(keys[i+1].created).UTC().Add(r.c.Settle + r.c.Keep)
		}
	}
	return list
}

// Empty reports whether the ring has no key yet.
func (r *Ring) Empty() bool { return len(*r.keys.Load()) == 0 }

// Newest returns when the newest key was made, in Unix microseconds, so that
// the owner knows when to rotate; math.MinInt64 without keys.
func (r *Ring) Newest() int64 {
	keys := *r.keys.Load()
	if len(keys) == 0 {
		return math.MinInt64
	}
	return keys[len(keys)-1].created
}
