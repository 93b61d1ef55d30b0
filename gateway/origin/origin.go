package origin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

const (
	passHeader    = "X-Anteroom-Pass"
	commandHeader = "Anteroom-Command"

	// tokenMax is as long as a pass may be, in bytes. They have some 400.
	tokenMax = 4 << 10
)

// What is wrong with a request.
var (
	ErrNoPass = errors.New("origin: no pass")
	ErrPass   = errors.New("origin: the pass is not good")
	// ErrNoKeys says nothing about the pass: try again.
	ErrNoKeys = errors.New("origin: no keys to check passes with")
	// ErrConfig is a configuration that New refuses.
	ErrConfig = errors.New("origin: invalid configuration")
)

// Config says whose passes are good. Room and JWKS are needed.
type Config struct {
	Room    string           // aud of the passes
	JWKS    string           // address of a node's, or all nodes', /_anteroom/.well-known/jwks.json
	Issuer  string           // iss of the passes [anteroom]
	Gateway string           // where browsers without a pass are sent, such as https://shop.example.com [nowhere: they are refused]
	Leeway  time.Duration    // by which the clocks here and there may differ [30s]
	Refresh time.Duration    // keys older than this are looked at again [5m]
	Every   time.Duration    // they are fetched at most this often [10s]
	Keep    time.Duration    // they work this long while no node answers [24h]
	Client  *http.Client     // that fetches them [one that gives up after 5s]
	Now     func() time.Time // [time.Now]

	// Refuse answers in place of the site when there is no good pass, or no key
	// to check it with [403 or 503, with a problem as JSON].
	Refuse func(w http.ResponseWriter, r *http.Request, err error)
}

// Claims are what a pass says.
type Claims struct {
	Room     string
	Visitor  string // the same through all renewals, another one after joining again
	ID       string // of this pass: another one after each renewal
	JoinedAt time.Time
	IssuedAt time.Time
	Expires  time.Time
}

// Passes checks passes. It is safe for concurrent use.
type Passes struct {
	c      Config
	keys   *keys
	parser *jwt.Parser
}

// New returns a checker. It fetches nothing yet.
func New(c Config) (*Passes, error) {
	if c.Room == "" {
		return nil, fmt.Errorf("%w: Room is empty", ErrConfig)
	}
	if err := isAddress(c.JWKS); err != nil {
		return nil, fmt.Errorf("%w: JWKS: %w", ErrConfig, err)
	}
	if c.Gateway != "" {
		if err := isAddress(c.Gateway); err != nil {
			return nil, fmt.Errorf("%w: Gateway: %w", ErrConfig, err)
		}
		c.Gateway = strings.TrimSuffix(c.Gateway, "/")
	}
	c.Issuer = cmp.Or(c.Issuer, "anteroom")
	c.Leeway = cmp.Or(c.Leeway, 30*time.Second)
	c.Refresh = cmp.Or(c.Refresh, 5*time.Minute)
	c.Every = cmp.Or(c.Every, 10*time.Second)
	c.Keep = cmp.Or(c.Keep, 24*time.Hour)
	if c.Client == nil {
		c.Client = &http.Client{Timeout: fetchWithin}
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Refuse == nil {
		c.Refuse = refuse
	}
	return &Passes{c: c, keys: newKeys(c), parser: jwt.NewParser(
		jwt.WithValidMethods([]string{jwt.SigningMethodES256.Alg()}), jwt.WithStrictDecoding(),
		jwt.WithIssuer(c.Issuer), jwt.WithAudience(c.Room), jwt.WithExpirationRequired(),
		jwt.WithLeeway(c.Leeway), jwt.WithTimeFunc(c.Now),
	)}, nil
}

func isAddress(s string) error {
	u, err := url.Parse(s)
	if err != nil {
		return err
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return fmt.Errorf("%q is not an address such as https://shop.example.com", s)
	}
	return nil
}

// Require lets requests with a good pass on to next, and no others. There
// FromContext knows what the pass says.
func (p *Passes) Require(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		claims, err := p.Check(r)
		if err != nil {
			p.turnAway(w, r, err)
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), claimsKey{}, claims)))
	})
}

// Accept lets requests without a pass on as well, but none with a bad one.
func (p *Passes) Accept(next http.Handler) http.Handler {
	required := p.Require(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.Header[passHeader]) == 0 {
			next.ServeHTTP(w, r)
			return
		}
		required.ServeHTTP(w, r)
	})
}

// Check reads the pass of a request. Its errors are ErrNoPass, ErrPass and
// ErrNoKeys, or wrap them.
func (p *Passes) Check(r *http.Request) (Claims, error) {
	switch sent := r.Header[passHeader]; len(sent) {
	case 0:
		return Claims{}, ErrNoPass
	case 1:
		return p.Verify(r.Context(), sent[0])
	default:
		return Claims{}, fmt.Errorf("%w: there are %d", ErrPass, len(sent))
	}
}

// Verify reads a pass that came in another way: the pass_jwt of the API, say.
func (p *Passes) Verify(ctx context.Context, token string) (Claims, error) {
	if len(token) > tokenMax {
		return Claims{}, fmt.Errorf("%w: it is over %d bytes", ErrPass, tokenMax)
	}
	said := claims{}
	_, err := p.parser.ParseWithClaims(token, &said, func(t *jwt.Token) (any, error) {
		if _, ok := t.Header["crit"]; ok { // RFC 7515, section 4.1.11: to be refused by who does not know what it names
			return nil, errors.New("it has critical extensions")
		}
		kid, _ := t.Header["kid"].(string)
		return p.keys.named(ctx, kid)
	})
	switch {
	case errors.Is(err, ErrNoKeys):
		return Claims{}, err
	case err != nil:
		return Claims{}, fmt.Errorf("%w: %w", ErrPass, err)
	case said.Subject == "":
		return Claims{}, fmt.Errorf("%w: it says nothing of a visitor", ErrPass)
	}
	return Claims{
		Room: p.c.Room, Visitor: said.Subject, ID: said.ID, JoinedAt: moment(said.JoinedAt),
		IssuedAt: moment(said.IssuedAt), Expires: moment(said.ExpiresAt),
	}, nil
}

// claims are a pass as it is written.
type claims struct {
	jwt.RegisteredClaims
	JoinedAt *jwt.NumericDate `json:"joined_at"`
}

func moment(d *jwt.NumericDate) time.Time {
	if d == nil {
		return time.Time{}
	}
	return d.UTC()
}

type claimsKey struct{}

// FromContext returns what the pass of a request says, if it came with one
// through Require or Accept.
func FromContext(ctx context.Context) (Claims, bool) {
	c, ok := ctx.Value(claimsKey{}).(Claims)
	return c, ok
}

// End tells the gateway that the visit is over with this answer, at a checkout
// say: its slot goes to the next in line at once. Call it before the answer is
// written. It works behind the gateway's reverse proxy.
func End(w http.ResponseWriter) { w.Header().Set(commandHeader, "revoke") }

// turnAway answers a request without a good pass.
func (p *Passes) turnAway(w http.ResponseWriter, r *http.Request, err error) {
	w.Header().Set("Cache-Control", "no-store")
	if p.c.Gateway != "" && navigates(r) && !errors.Is(err, ErrNoKeys) {
		w.Header().Set("Location", p.c.Gateway+local(r.URL))
		w.WriteHeader(http.StatusSeeOther)
		return
	}
	p.c.Refuse(w, r, err)
}

// navigates reports whether a person goes somewhere, and no script: those
// cannot wait on a page.
func navigates(r *http.Request) bool {
	mode := r.Header.Get("Sec-Fetch-Mode")
	return (r.Method == http.MethodGet || r.Method == http.MethodHead) &&
		(mode == "navigate" || mode == "" && strings.Contains(r.Header.Get("Accept"), "text/html"))
}

// local is u without a host, so that what follows the gateway's address cannot
// change it.
func local(u *url.URL) string {
	where := url.URL{Path: u.Path, RawPath: u.RawPath, RawQuery: u.RawQuery}
	if !strings.HasPrefix(where.Path, "/") {
		return "/"
	}
	if where.RawQuery == "" {
		return where.EscapedPath()
	}
	return where.EscapedPath() + "?" + strings.ReplaceAll(where.RawQuery, "#", "%23") // which no browser sends, and some programs do
}

// refuse does not say what is wrong with a pass: who made it up learns nothing.
func refuse(w http.ResponseWriter, _ *http.Request, err error) {
	status, body := http.StatusForbidden,
		`{"type":"urn:anteroom:problem:pass_invalid","title":"The pass is not good here","status":403,"code":"pass_invalid"}`
	switch {
	case errors.Is(err, ErrNoPass):
		body = `{"type":"urn:anteroom:problem:pass_missing","title":"Come through the waiting room","status":403,"code":"pass_missing"}`
	case errors.Is(err, ErrNoKeys):
		w.Header().Set("Retry-After", "5")
		status, body = http.StatusServiceUnavailable,
			`{"type":"urn:anteroom:problem:unavailable","title":"Not available just now","status":503,"code":"unavailable"}`
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(body + "\n")) // the visitor may have gone
}
