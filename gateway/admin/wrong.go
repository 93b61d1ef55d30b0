package admin

import (
	"log/slog"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	wrongBurst   = 10               // wrong tokens of one address that are answered at once,
	wrongEvery   = time.Second      // and one more each
	wrongQuiet   = 30 * time.Second // without one: the next is another burst, and logged
	wrongTracked = 1024             // addresses; who is forgotten begins anew
)

// wrongTokens slows down who tries tokens. While an address has used up its tries,
// none of its tokens is looked at, right or wrong: it learns nothing. Logins that
// there are go on.
type wrongTokens struct {
	log *slog.Logger

	mu   sync.Mutex
	from map[netip.Prefix]*tries
}

type tries struct {
	left *rate.Limiter
	last time.Time
}

// networkOf is what counts as one address: an IPv6 host has a whole /64.
func networkOf(r *http.Request) netip.Prefix {
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Prefix{} // of a test
	}
	bits := 32
	if ip := at.Addr().Unmap(); ip.Is6() {
		bits = 64
	}
	p, _ := at.Addr().Unmap().WithZone("").Prefix(bits)
	return p
}

// spent reports whether who asks has no try left.
func (t *wrongTokens) spent(r *http.Request, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	of := t.from[networkOf(r)]
	return of != nil && of.left.TokensAt(now) < 1
}

// add counts a wrong token.
func (t *wrongTokens) add(r *http.Request, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	from := networkOf(r)
	of := t.from[from]
	if of == nil {
		if t.from == nil || len(t.from) == wrongTracked {
			t.from = make(map[netip.Prefix]*tries)
		}
		of = &tries{left: rate.NewLimiter(rate.Every(wrongEvery), wrongBurst)}
		t.from[from] = of
	}
	of.left.AllowN(now, 1)
	if now.Sub(of.last) > wrongQuiet {
		t.log.Warn("wrong token at the admin port; more from there are not logged until it is quiet", "from", from.Addr())
	}
	of.last = now
}

// slowed answers who has no try left.
func (a *admin) slowed(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Retry-After", "1")
	a.fail(w, r, http.StatusTooManyRequests, "too_many_requests", "Too many wrong tokens came from your address. Wait a moment.")
}
