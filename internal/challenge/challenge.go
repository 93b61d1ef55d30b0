// Package challenge asks of those who join a room for a token that the
// operator's own page, such as one with a captcha, has signed. It puts a price on
// a place in line and says nothing about the order of the line.
//
// A token is base64url(payload).base64url(HMAC-SHA256(key, payload)), without
// padding, of a JSON payload:
//
//	{"room": "shop", "exp": 1767225600, "id": "16 to 64 letters, digits, - and _"}
//
// # Once at each node
//
// A node remembers the ids of the tokens that were spent there until they expire,
// and nodes do not tell each other: a token may buy one place at each. A node
// remembers 100,000. When that is full it refuses joins with a token that is good,
// to be tried again later: to forget one would let it buy a second place.
package challenge

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/anteroom/anteroom/internal/peraddress"
	"github.com/anteroom/anteroom/internal/ticket"
)

const (
	// KeyMin is how long a key must be, in bytes.
	KeyMin = 32
	// Ahead is how long a token may be good for, at most.
	Ahead = 10 * time.Minute

	tokenMax    = 1024
	idMin       = 16
	idMax       = 64
	spentMax    = 100_000
	sweepEvery  = int64(time.Second / time.Microsecond)
	retryFull   = 60 // seconds; tokens expire by the clock alone
	perSecond   = int64(time.Second / time.Microsecond)
	tokenFormat = "Get one at challenge_url, and join with it."
)

// Error refuses a join for want of a good token.
type Error struct {
	Reason     string // missing, invalid, expired, used or full
	URL        string // where tokens come from
	RetryAfter int    // seconds; 0: another token is needed
}

func (e *Error) Error() string { return "challenge: the token is " + e.Reason }

// Full reports that the token is good and the node cannot take it now.
func (e *Error) Full() bool { return e.RetryAfter > 0 }

// Detail says what to do about it.
func (e *Error) Detail() string {
	switch e.Reason {
	case "missing":
		return "Joining this room takes a challenge token. " + tokenFormat
	case "full":
		return "The node remembers as many challenge tokens as it can. This one is not spent. Try again after the time in Retry-After."
	default:
		return "The challenge token is " + e.Reason + ". " + tokenFormat
	}
}

// Table has the rooms of this node that ask for a token. A nil one has none.
type Table struct {
	key      []byte
	clock    func() int64
	rooms    atomic.Pointer[map[string]string]
	refusals *prometheus.CounterVec

	mu    sync.Mutex
	spent map[string]int64 // when each id expires
	swept int64
}

// New returns a table without rooms. The clock is pass time, in Unix microseconds.
// Without a key no token is good.
func New(key string, clock func() int64) *Table {
	t := &Table{key: []byte(key), clock: clock, spent: make(map[string]int64), refusals: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "anteroom_challenge_refusals_total", Help: "Joins refused for want of a good challenge token, by room and reason.",
	}, []string{"room", "reason"})}
	t.rooms.Store(&map[string]string{})
	return t
}

// SetRooms replaces the rooms that ask for a token, each with the address where
// tokens come from. What is spent stays spent.
func (t *Table) SetRooms(rooms map[string]string) { t.rooms.Store(&rooms) }

// Metrics are what there is to register.
func (t *Table) Metrics() []prometheus.Collector { return []prometheus.Collector{t.refusals} }

// URL is where a room's tokens come from; empty: the room asks for none.
func (t *Table) URL(room string) string {
	if t == nil {
		return ""
	}
	return (*t.rooms.Load())[room]
}

// Spend takes a token for a join. It fails with an *Error if the room asks for one
// and this one is not good. Call settle with what became of the join: if it was
// refused at the door the token is good again.
func (t *Table) Spend(room, token string) (settle func(error), err error) {
	url := t.URL(room)
	if url == "" {
		return func(error) {}, nil
	}
	id, reason := t.spend(room, token)
	if reason == "" {
		return func(err error) {
			if atDoor(err) {
				t.mu.Lock()
				defer t.mu.Unlock()
				delete(t.spent, id)
			}
		}, nil
	}
	t.refusals.WithLabelValues(room, reason).Inc()
	e := &Error{Reason: reason, URL: url}
	if reason == "full" {
		e.RetryAfter = retryFull
	}
	return nil, e
}

// atDoor reports that a join has brought nobody a ticket, for a reason that is not
// the visitor's: who breaks off has spent the token.
func atDoor(err error) bool {
	var full *peraddress.Error
	return errors.As(err, &full) || errors.Is(err, ticket.ErrBusy) || errors.Is(err, ticket.ErrQueueFull) || errors.Is(err, ticket.ErrUnavailable) || errors.Is(err, ticket.ErrRejected)
}

func (t *Table) spend(room, token string) (id, refused string) {
	if token == "" {
		return "", "missing"
	}
	p, err := parse(t.key, token)
	if err != nil || p.Room != room {
		return "", "invalid"
	}
	now := t.clock()
	switch {
	case p.Exp <= now/perSecond:
		return "", "expired"
	case p.Exp > now/perSecond+int64(Ahead/time.Second)+1:
		return "", "invalid"
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, used := t.spent[p.ID]; used {
		return "", "used"
	}
	if len(t.spent) >= spentMax && now-t.swept >= sweepEvery {
		t.swept = now
		for id, until := range t.spent {
			if until <= now {
				delete(t.spent, id)
			}
		}
	}
	if len(t.spent) >= spentMax {
		return "", "full"
	}
	t.spent[p.ID] = p.Exp * perSecond
	return p.ID, ""
}

// payload is what a token says.
type payload struct {
	Room string `json:"room"`
	Exp  int64  `json:"exp"` // Unix seconds
	ID   string `json:"id"`
}

var errToken = errors.New("challenge: not a token of this key")

// parse opens a token. Nothing of it is read before its signature was found good.
func parse(key []byte, token string) (p payload, err error) {
	body, sum, ok := strings.Cut(token, ".")
	if !ok || len(key) < KeyMin || len(token) > tokenMax {
		return p, errToken
	}
	text, err := base64.RawURLEncoding.Strict().DecodeString(body)
	if err != nil {
		return p, errToken
	}
	signed, err := base64.RawURLEncoding.Strict().DecodeString(sum)
	if err != nil {
		return p, errToken
	}
	h := hmac.New(sha256.New, key)
	h.Write(text)
	if !hmac.Equal(signed, h.Sum(nil)) {
		return p, errToken
	}
	if json.Unmarshal(text, &p) != nil || !validID(p.ID) {
		return payload{}, errToken
	}
	return p, nil
}

func validID(id string) bool {
	for _, c := range []byte(id) {
		if c != '-' && c != '_' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return len(id) >= idMin && len(id) <= idMax
}
