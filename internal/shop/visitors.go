package shop

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"sync"
	"time"
)

// Stats is who is, and was, in the shop.
type Stats struct {
	Now  int `json:"now"`  // people who are in
	Peak int `json:"peak"` // most people who were in at once
	Seen int `json:"seen"` // people who ever came in
}

// visitors are the people whose passes came by. A pass that was never seen
// again counts until it runs out: its bearer may come back at any moment.
type visitors struct {
	mu      sync.Mutex
	max     int
	expires map[string]time.Time
	peak    int
	seen    int
	next    time.Time // nobody in expires runs out before
}

func newVisitors(limit int) *visitors {
	return &visitors{max: limit, expires: make(map[string]time.Time)}
}

// see notes that a pass came by, or was renewed.
func (v *visitors) see(sub string, expires, now time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.sweep(now)
	had, known := v.expires[sub]
	switch {
	case !expires.After(now):
		return
	case !known && len(v.expires) >= v.max:
		return // it comes in uncounted
	case !known:
		v.seen++
	case !expires.After(had):
		return // an older copy of a pass that was renewed since
	}
	v.expires[sub] = expires
	if expires.Before(v.next) {
		v.next = expires
	}
	v.peak = max(v.peak, len(v.expires))
}

// end notes that someone left.
func (v *visitors) end(sub string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.expires, sub)
}

func (v *visitors) stats(now time.Time) Stats {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.sweep(now)
	return Stats{Now: len(v.expires), Peak: v.peak, Seen: v.seen}
}

// sweep forgets those whose time is up.
func (v *visitors) sweep(now time.Time) {
	if len(v.expires) > 0 && now.Before(v.next) {
		return
	}
	v.next = now.Add(time.Hour)
	for sub, expires := range v.expires {
		switch {
		case !expires.After(now):
			delete(v.expires, sub)
		case expires.Before(v.next):
			v.next = expires
		}
	}
}

// bearer reads who a pass is for and until when. It does not verify the pass:
// nothing but a number on a page depends on it. A real origin checks the
// signature against the gateway's /.well-known/jwks.json.
func bearer(jwt string) (sub string, expires time.Time, ok bool) {
	parts := strings.Split(jwt, ".")
	if len(parts) != 3 {
		return "", time.Time{}, false
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return "", time.Time{}, false
	}
	var claims struct {
		Sub string  `json:"sub"`
		Exp float64 `json:"exp"` // Unix seconds
	}
	if json.Unmarshal(payload, &claims) != nil || claims.Sub == "" || claims.Exp <= 0 || claims.Exp > 1<<40 {
		return "", time.Time{}, false
	}
	return claims.Sub, time.UnixMicro(int64(claims.Exp * 1e6)), true
}
