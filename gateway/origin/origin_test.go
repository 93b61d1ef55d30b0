package origin_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/go-cmp/cmp"

	"github.com/anteroom/anteroom/gateway/origin"
)

func TestAGoodPassGoesThroughWithWhatItSays(t *testing.T) {
	c := newCluster(t)
	var got origin.Claims
	h := c.checker(nil).Require(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got, _ = origin.FromContext(r.Context()) }))
	if w := ask(h, "GET", "/", "X-Anteroom-Pass: "+c.good()); w.Code != 200 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	now := c.clock()
	want := origin.Claims{
		Room: "shop", Visitor: "01020300000000000000000000000000", JoinedAt: now.Add(-time.Minute), IssuedAt: now, Expires: now.Add(5 * time.Minute),
		ID: fmt.Sprintf("01020300000000000000000000000000-%d", now.Add(5*time.Minute).UnixMicro()),
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// mineKey is a key of the cluster that a test signs with by itself.
func mineKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func keySet(t testing.TB, key *ecdsa.PrivateKey) string {
	t.Helper()
	b, err := key.PublicKey.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	enc := base64.RawURLEncoding.EncodeToString
	set, err := json.Marshal(map[string]any{"keys": []any{
		map[string]string{"kty": "oct", "kid": "mine", "k": "AAAA"}, // not ours, and left out
		map[string]string{"kty": "EC", "crv": "P-256", "use": "sig", "alg": "ES256", "kid": "mine", "x": enc(b[1:33]), "y": enc(b[33:])},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return string(set)
}

func TestBadPassesAreRefused(t *testing.T) {
	c := newCluster(t)
	key := mineKey(t)
	c.publish(key)
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	other, theirs := mineKey(t), must(rsa.GenerateKey(rand.Reader, 2048))
	es := func(change func(*jwt.Token, jwt.MapClaims)) string {
		return signed(t, c.clock(), jwt.SigningMethodES256, key, change)
	}
	claim := func(name string, value any) string {
		return es(func(_ *jwt.Token, m jwt.MapClaims) {
			if m[name] = value; value == nil {
				delete(m, name)
			}
		})
	}
	header := func(name string, value any) string {
		return es(func(t *jwt.Token, _ jwt.MapClaims) {
			if t.Header[name] = value; value == nil {
				delete(t.Header, name)
			}
		})
	}
	good, now := es(nil), c.clock()
	parts := strings.Split(good, ".")
	bad := map[string]string{
		"alg none":                    signed(t, now, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, nil),
		"HS256 with the public key":   signed(t, now, jwt.SigningMethodHS256, public, nil),
		"RS256":                       signed(t, now, jwt.SigningMethodRS256, theirs, nil),
		"another's key":               signed(t, now, jwt.SigningMethodES256, other, nil),
		"an algorithm it is not":      header("alg", "ES384"),
		"no signature":                parts[0] + "." + parts[1] + ".",
		"another's claims":            parts[0] + "." + strings.Split(claim("sub", "02"), ".")[1] + "." + parts[2],
		"a signature of zeros":        parts[0] + "." + parts[1] + "." + strings.Repeat("A", 86),
		"a part too many":             good + ".x",
		"another room":                claim("aud", "museum"),
		"no room":                     claim("aud", nil),
		"another issuer":              claim("iss", "somebody"),
		"no issuer":                   claim("iss", nil),
		"over for a minute":           claim("exp", now.Add(-time.Minute).Unix()),
		"never over":                  claim("exp", nil),
		"over at a word":              claim("exp", "tomorrow"),
		"good from the future":        claim("nbf", now.Add(time.Minute).Unix()),
		"nobody's":                    claim("sub", nil),
		"a key that is not known":     header("kid", "other"),
		"no key":                      header("kid", nil),
		"a key that is no name":       header("kid", 5),
		"an extension we do not know": header("crit", []string{"b64"}),
		"a huge one":                  "eyJhbGciOiJFUzI1NiJ9." + strings.Repeat("A", 1<<20) + ".A",
		"an empty one":                "",
		"no JWT":                      "IcWmGOCt",
		"dots":                        "..",
		"padded":                      good + "=",
	}
	p := c.checker(nil)
	h := p.Require(site)
	if w := ask(h, "GET", "/", "X-Anteroom-Pass: "+good); w.Code != 200 || w.Body.String() != "01" {
		t.Fatalf("a good one: %d %s", w.Code, w.Body)
	}
	for what, token := range bad {
		w := ask(h, "GET", "/", "X-Anteroom-Pass: "+token)
		if w.Code != 403 || w.Header().Get("Cache-Control") != "no-store" || !strings.Contains(w.Body.String(), `"code":"pass_invalid"`) {
			t.Errorf("%s: %d %s", what, w.Code, w.Body)
		}
		if _, err := p.Verify(t.Context(), token); !errors.Is(err, origin.ErrPass) {
			t.Errorf("%s: %v, want %v", what, err, origin.ErrPass)
		}
	}
	if w := ask(h, "GET", "/", "X-Anteroom-Pass: "+good, "X-Anteroom-Pass: "+good); w.Code != 403 {
		t.Errorf("two of them: %d", w.Code)
	}
	if w := ask(h, "GET", "/"); w.Code != 403 || !strings.Contains(w.Body.String(), `"code":"pass_missing"`) {
		t.Errorf("none: %d %s", w.Code, w.Body)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestClocksMayDiffer(t *testing.T) {
	for _, c := range []struct {
		leeway, after time.Duration
		good          bool
	}{
		{0, 29 * time.Second, true}, // the default is 30 s
		{0, 31 * time.Second, false},
		{time.Minute, 59 * time.Second, true},
		{time.Minute, 61 * time.Second, false},
		{0, -55 * time.Second, true}, // the gateway dates a pass back by as much again
		{0, -65 * time.Second, false},
	} {
		k := newCluster(t)
		p := k.checker(func(o *origin.Config) { o.Leeway = c.leeway })
		good := time.Duration(0)
		if c.after < 0 {
			good = time.Hour
		}
		token := k.issue("shop", "anteroom", good)
		k.pass(c.after)
		if _, err := p.Verify(t.Context(), token); (err == nil) != c.good {
			t.Errorf("with %v of leeway, %v after it began or ended: %v", c.leeway, c.after, err)
		}
	}
}

func TestAPassOfAnotherIssuerIsGoodWhereThatIsMeant(t *testing.T) {
	c := newCluster(t)
	p := c.checker(func(o *origin.Config) { o.Issuer = "https://shop.example.com" })
	if _, err := p.Verify(t.Context(), c.issue("shop", "https://shop.example.com", time.Minute)); err != nil {
		t.Error(err)
	}
	if _, err := p.Verify(t.Context(), c.good()); !errors.Is(err, origin.ErrPass) {
		t.Errorf("the usual issuer: %v", err)
	}
}

func TestBrowsersAreSentToTheWaitingRoom(t *testing.T) {
	c := newCluster(t)
	h := c.checker(func(o *origin.Config) { o.Gateway = "https://shop.example.com/" }).Require(site)
	page := []string{"Sec-Fetch-Mode: navigate", "Accept: text/html"}
	for _, q := range []struct {
		method, target string
		headers        []string
		status         int
		to             string
	}{
		{"GET", "/list?a=1&b=%2f", page, 303, "https://shop.example.com/list?a=1&b=%2f"},
		{"GET", "/a%2fb", page, 303, "https://shop.example.com/a%2fb"},
		{"GET", "//evil.example/x", page, 303, "https://shop.example.com//evil.example/x"},
		{"GET", "http://evil.example/x", page, 303, "https://shop.example.com/x"},
		{"GET", "/", []string{"Accept: text/html"}, 303, "https://shop.example.com/"},
		{"GET", "/", append(page, "X-Anteroom-Pass: bad"), 303, "https://shop.example.com/"},
		{"POST", "/buy", page, 403, ""}, // what it carries would be lost
		{"GET", "/list", []string{"Sec-Fetch-Mode: cors", "Accept: text/html"}, 403, ""},
		{"GET", "/list", []string{"Accept: application/json"}, 403, ""},
	} {
		w := ask(h, q.method, q.target, q.headers...)
		if got := w.Header().Get("Location"); w.Code != q.status || got != q.to || w.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("%s %s %v: %d to %q, want %d to %q", q.method, q.target, q.headers, w.Code, got, q.status, q.to)
		}
	}
}

func TestAcceptLetsRequestsWithoutAPassOn(t *testing.T) {
	c := newCluster(t)
	h := c.checker(nil).Accept(site)
	for pass, want := range map[string]string{"": "nobody", c.good(): "01020300000000000000000000000000"} {
		var headers []string
		if pass != "" {
			headers = []string{"X-Anteroom-Pass: " + pass}
		}
		if w := ask(h, "GET", "/", headers...); w.Code != 200 || w.Body.String() != want {
			t.Errorf("%q: %d %s, want %s", pass, w.Code, w.Body, want)
		}
	}
	if w := ask(h, "GET", "/", "X-Anteroom-Pass: forged"); w.Code != 403 {
		t.Errorf("a bad one: %d %s", w.Code, w.Body)
	}
}

func TestTheSiteMayAnswerForItself(t *testing.T) {
	c := newCluster(t)
	c.answers(down)
	var got []error
	h := c.checker(func(o *origin.Config) {
		o.Refuse = func(w http.ResponseWriter, _ *http.Request, err error) { got = append(got, err); w.WriteHeader(418) }
	}).Require(site)
	for i, want := range []error{origin.ErrNoPass, origin.ErrNoKeys} {
		var headers []string
		if i > 0 {
			headers = []string{"X-Anteroom-Pass: " + c.good()}
		}
		if w := ask(h, "GET", "/", headers...); w.Code != 418 || !errors.Is(got[i], want) {
			t.Errorf("%d %v, want %v", w.Code, got, want)
		}
	}
}

func TestEndTellsTheGateway(t *testing.T) {
	w := httptest.NewRecorder()
	origin.End(w)
	if got := w.Header().Get("Anteroom-Command"); got != "revoke" {
		t.Error(got)
	}
}

func TestConfigurationsThatCannotWorkAreRefused(t *testing.T) {
	for _, c := range []origin.Config{
		{},
		{Room: "shop"},
		{JWKS: keysAt},
		{Room: "shop", JWKS: "/jwks.json"},
		{Room: "shop", JWKS: "file:///etc/passwd"},
		{Room: "shop", JWKS: keysAt, Gateway: "shop.example.com"},
		{Room: "shop", JWKS: "http://[::1"},
	} {
		if _, err := origin.New(c); !errors.Is(err, origin.ErrConfig) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func FuzzVerify(f *testing.F) {
	c := newCluster(f)
	p := c.checker(nil)
	good := c.good()
	f.Add(good)
	f.Add("eyJhbGciOiJub25lIn0.e30.")
	f.Add("eyJhbGciOiJFUzI1NiIsImtpZCI6W119.eyJleHAiOjFlOTk5fQ.AA")
	f.Add("..")
	f.Fuzz(func(t *testing.T, token string) {
		got, err := p.Verify(t.Context(), token)
		if err == nil && token != good {
			t.Errorf("%q is taken: %+v", token, got)
		}
		if err != nil && !errors.Is(err, origin.ErrPass) {
			t.Errorf("%q: %v", token, err)
		}
	})
}
