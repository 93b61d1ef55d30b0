package admin

import (
	"crypto/rand"
	"crypto/sha256"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	loginFor    = 12 * time.Hour // a shift, and its handover
	loginsMax   = 256            // at a node; the oldest ends for one more
	tokenLength = 4096           // bytes of a login form
	// The gateway takes cookies that are named so out of what it sends to a site: to a
	// browser the ports of a host are one.
	loginCookie = "anteroom_operator"
)

// bearer is who shows a token, and what that one may.
type bearer struct {
	name          string // empty: nobody
	view, operate bool
}

// logins are the browsers that have shown a token. The cookie of each is random,
// so that the token itself is nowhere but in the form; they end with the node.
type logins struct {
	mu  sync.Mutex
	all []login // by age
}

type login struct {
	cookie [sha256.Size]byte // its hash
	until  time.Time
	bearer bearer
}

// begin returns the cookie of a new login.
func (l *logins) begin(b bearer, now time.Time) string {
	cookie := rand.Text()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = slices.DeleteFunc(l.all, func(o login) bool { return now.After(o.until) })
	if len(l.all) == loginsMax {
		l.all = slices.Delete(l.all, 0, 1)
	}
	l.all = append(l.all, login{sha256.Sum256([]byte(cookie)), now.Add(loginFor), b})
	return cookie
}

// find returns whose a cookie is. It is found by its hash, so that how long that
// takes says nothing about the cookie.
func (l *logins) find(cookie string, now time.Time) bearer {
	sum := sha256.Sum256([]byte(cookie))
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, o := range l.all {
		if o.cookie == sum && now.Before(o.until) {
			return o.bearer
		}
	}
	return bearer{}
}

func (l *logins) end(cookie string) {
	sum := sha256.Sum256([]byte(cookie))
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = slices.DeleteFunc(l.all, func(o login) bool { return o.cookie == sum })
}

// loginCookieOf is the name of the cookie: over TLS no other host of the domain can
// set one of that name.
func loginCookieOf(r *http.Request) string {
	if r.TLS != nil {
		return "__Host-" + loginCookie
	}
	return loginCookie
}

func (a *admin) setLogin(w http.ResponseWriter, r *http.Request, value string, age time.Duration) {
	seconds := int(age.Seconds())
	if seconds == 0 {
		seconds = -1 // how http.Cookie spells Max-Age=0
	}
	http.SetCookie(w, &http.Cookie{
		Name: loginCookieOf(r), Value: value, Path: "/", MaxAge: seconds, HttpOnly: true, Secure: r.TLS != nil, SameSite: http.SameSiteStrictMode,
	})
}

// loggedIn is who has logged in by the browser that asks.
func (a *admin) loggedIn(r *http.Request) bearer {
	k, err := r.Cookie(loginCookieOf(r))
	if err != nil {
		return bearer{}
	}
	return a.logins.find(k.Value, time.Now())
}

// wantsPage reports whether a person looks, rather than a program.
func wantsPage(r *http.Request) bool {
	return r.Method == http.MethodGet && r.URL.Path == "/" && strings.Contains(r.Header.Get("Accept"), "text/html")
}

// login takes a token by form, and keeps who has shown it in a cookie.
func (a *admin) login(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", "POST")
		a.fail(w, r, http.StatusMethodNotAllowed, "method_not_allowed", "Use POST.")
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, tokenLength)
	if r.ParseForm() != nil {
		a.fail(w, r, http.StatusBadRequest, "request_invalid", "Send a form with the token.")
		return
	}
	switch b, wait := a.shown(r, strings.TrimSpace(r.PostForm.Get("token"))); {
	case wait:
		a.slowed(w, r)
	case b.name == "":
		a.loginPage(w, r, "Nobody has this token.")
	case !b.view:
		a.loginPage(w, r, "The token "+b.name+" may not look at this: it takes view or operate, and rooms: [\"*\"].")
	default:
		a.setLogin(w, r, a.logins.begin(b, time.Now()), loginFor)
		http.Redirect(w, r, "/", http.StatusSeeOther)
	}
}

// logout ends a login.
func (a *admin) logout(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", "POST")
		a.fail(w, r, http.StatusMethodNotAllowed, "method_not_allowed", "Use POST.")
		return
	}
	if k, err := r.Cookie(loginCookieOf(r)); err == nil {
		a.logins.end(k.Value)
	}
	a.setLogin(w, r, "", 0)
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

func (a *admin) loginPage(w http.ResponseWriter, r *http.Request, wrong string) {
	if err := a.board.Login(w, r, wrong); err != nil {
		a.c.Logger.Error("admin page", "error", err)
		a.fail(w, r, http.StatusInternalServerError, "internal", "Something went wrong here.")
	}
}
