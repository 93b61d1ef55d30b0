// Package tokens says what the bearer of a token may do at a node: which
// operations, on which rooms and queues.
//
// A token is 256 random bits behind a prefix by which scanners of secrets know
// it. Nodes keep its SHA-256. Passwords need a slow, salted hash because people
// choose them from few; of 2^256 nobody tries even a small part, however fast.
package tokens

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// Right is a kind of operation.
type Right uint8

const (
	Put       Right = iota // bring in: people into rooms, items into queues
	Take                   // take items, and say that they are done
	Manage                 // change what others have put, and how a queue runs
	Authorize              // ask whether a visitor's request may go on, as Envoy does
	View                   // see state and items, change nothing
	Operate                // all that an operator may: View, Manage, and changes on the admin port
	rights
)

func names() [rights]string {
	return [...]string{"put", "take", "manage", "authorize", "view", "operate"}
}

func (r Right) String() string { return names()[r] }

// Names lists the rights as they are written.
func Names() []string { n := names(); return n[:] }

// ParseRight reads what String made.
func ParseRight(s string) (Right, bool) {
	for i, n := range names() {
		if n == s {
			return Right(i), true
		}
	}
	return 0, false
}

// Rights are several.
type Rights uint8

// RightsOf joins rights.
func RightsOf(all ...Right) (r Rights) {
	for _, one := range all {
		r |= 1 << one
		if one == Operate {
			r |= 1<<View | 1<<Manage
		}
	}
	return r
}

// Any reports whether r has one of those in of.
func (r Rights) Any(of Rights) bool { return r&of != 0 }

func (r Rights) String() string {
	var all []string
	for i, n := range names() {
		if r&(1<<i) != 0 {
			all = append(all, n)
		}
	}
	return strings.Join(all, " or ")
}

// Patterns are names of rooms or queues. One that ends in * stands for all that
// begin as it does.
type Patterns []string

// Match reports whether name is one of them.
func (p Patterns) Match(name string) bool {
	for _, one := range p {
		if start, open := strings.CutSuffix(one, "*"); open && strings.HasPrefix(name, start) || one == name {
			return true
		}
	}
	return false
}

// All reports whether every name is.
func (p Patterns) All() bool {
	for _, one := range p {
		if one == "*" {
			return true
		}
	}
	return false
}

// Hash is what a node knows of a token.
type Hash [sha256.Size]byte

const hashPrefix = "sha256:"

func (h Hash) String() string { return hashPrefix + hex.EncodeToString(h[:]) }

// ParseHash reads what String made. The error does not repeat it: somebody may
// have put the token itself in its place.
func ParseHash(s string) (h Hash, err error) {
	if strings.HasPrefix(s, Prefix) {
		return h, errors.New("is the token itself, which only its bearer may have: make another one, and give the hash that is printed with it")
	}
	text, ok := strings.CutPrefix(s, hashPrefix)
	b, err := hex.DecodeString(text)
	if !ok || err != nil || len(b) != len(h) {
		return h, fmt.Errorf("is no hash of a token, which is %s and %d hexadecimal digits", hashPrefix, 2*len(h))
	}
	return Hash(b), nil
}

// Token is one of a node's.
type Token struct {
	Name   string // of the bearer, for logs
	Hash   Hash
	May    Rights
	Rooms  Patterns
	Queues Patterns
}

const (
	// Prefix is how every token begins.
	Prefix  = "anteroom_"
	bytes   = 32
	letters = "abcdefghijklmnopqrstuvwxyz234567"
	length  = (bytes*8 + 4) / 5 // five bits a letter
)

// New makes a token.
func New() string {
	var b [bytes]byte
	_, _ = rand.Read(b[:]) // never fails
	return Prefix + base32.NewEncoding(letters).WithPadding(base32.NoPadding).EncodeToString(b[:])
}

// HashOf is the hash of a token; false: it is none.
func HashOf(token string) (Hash, bool) {
	text, ok := strings.CutPrefix(token, Prefix)
	if !ok || len(text) != length || strings.Trim(text, letters) != "" {
		return Hash{}, false
	}
	return sha256.Sum256([]byte(token)), true
}

// Bearer returns the token in the values of an Authorization header. There must
// be one value, of one token.
func Bearer(values []string) (string, bool) {
	if len(values) != 1 {
		return "", false
	}
	kind, token, _ := strings.Cut(values[0], " ")
	token = strings.Trim(token, " ")
	_, ok := HashOf(token)
	return token, ok && strings.EqualFold(kind, "Bearer")
}

// Set is the tokens that a node takes. It does not change.
type Set struct{ all []Token }

// NewSet returns a set of all.
func NewSet(all []Token) *Set { return &Set{all} }

// Empty reports whether no token is taken, so that none can be asked for.
func (s *Set) Empty() bool { return len(s.all) == 0 }

// Find returns whose token that is, nil if it is nobody's. How long it takes says
// nothing about how much of it is right.
func (s *Set) Find(token string) (found *Token) {
	h, ok := HashOf(token)
	if !ok {
		return nil
	}
	for i := range s.all {
		if subtle.ConstantTimeCompare(h[:], s.all[i].Hash[:]) == 1 {
			found = &s.all[i]
		}
	}
	return found
}
