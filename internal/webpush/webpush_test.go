package webpush_test

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/anteroom/anteroom/internal/webpush"
)

// service is a push service for one browser.
type service struct {
	*httptest.Server
	t    *testing.T
	key  *ecdh.PrivateKey
	auth []byte

	mu     sync.Mutex
	status []int // of the next answers; none: 201
	came   []http.Header
	read   []string // what came, decrypted
}

func newService(t *testing.T) *service {
	t.Helper()
	key, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	s := &service{t: t, key: key, auth: make([]byte, 16)}
	rand.Read(s.auth) // crypto/rand: it never fails
	s.Server = httptest.NewTLSServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b, err := io.ReadAll(r.Body)
	if err != nil {
		s.t.Error(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.came = append(s.came, r.Header)
	s.read = append(s.read, s.decrypt(b))
	status := http.StatusCreated
	if len(s.status) > 0 {
		status, s.status = s.status[0], s.status[1:]
	}
	w.Header().Set("Location", "/elsewhere")
	w.WriteHeader(status)
}

// decrypt is RFC 8291, section 3.4, as a browser does it.
func (s *service) decrypt(b []byte) string {
	if len(b) < 16+4+1+65+17 || b[20] != 65 || int(binary.BigEndian.Uint32(b[16:20])) < len(b)-86 {
		s.t.Errorf("%d bytes are no record of aes128gcm", len(b))
		return ""
	}
	salt, sender, sealed := b[:16], b[21:86], b[86:]
	from, err := ecdh.P256().NewPublicKey(sender)
	if err != nil {
		s.t.Error(err)
		return ""
	}
	shared, err := s.key.ECDH(from)
	if err != nil {
		s.t.Error(err)
		return ""
	}
	expand := func(secret, salt []byte, info string, n int) []byte {
		k, err := hkdf.Key(sha256.New, secret, salt, info, n)
		if err != nil {
			s.t.Error(err)
		}
		return k
	}
	ikm := expand(shared, s.auth, "WebPush: info\x00"+string(s.key.PublicKey().Bytes())+string(sender), 32)
	block, err := aes.NewCipher(expand(ikm, salt, "Content-Encoding: aes128gcm\x00", 16))
	if err != nil {
		s.t.Error(err)
		return ""
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		s.t.Error(err)
		return ""
	}
	plain, err := gcm.Open(nil, expand(ikm, salt, "Content-Encoding: nonce\x00", 12), sealed, nil)
	if err != nil {
		s.t.Errorf("what came cannot be opened: %v", err)
	}
	text, last := strings.CutSuffix(strings.TrimRight(string(plain), "\x00"), "\x02")
	if !last {
		s.t.Error("the record is not the last one")
	}
	return text
}

func (s *service) roots() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(s.Certificate())
	return pool
}

func (s *service) host() string { return strings.TrimPrefix(s.URL, "https://") }

// sender may send to the service.
func (s *service) sender(secrets ...string) *webpush.Sender {
	return webpush.New(webpush.Config{
		Contact: "mailto:ops@example.com", Hosts: []string{s.host()}, Roots: s.roots(),
		Secrets: func() (all [][]byte) {
			for _, s := range secrets {
				all = append(all, []byte(s))
			}
			return all
		},
		Pause: func(context.Context, time.Duration) error { return nil },
	})
}

func (s *service) subscription(from *webpush.Sender) webpush.Subscription {
	enc := base64.RawURLEncoding.EncodeToString
	return webpush.Subscription{Endpoint: s.URL + "/a", Key: from.PublicKey(), Keys: webpush.Keys{P256DH: enc(s.key.PublicKey().Bytes()), Auth: enc(s.auth)}}
}

func TestBrowserReadsWhatWasSent(t *testing.T) {
	s := newService(t)
	from := s.sender("a secret of the cluster")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := from.Send(ctx, s.subscription(from), []byte("called")); err != nil {
		t.Fatal(err)
	}
	h := s.came[0]
	if ttl, err := strconv.Atoi(h.Get("TTL")); s.read[0] != "called" || h.Get("Content-Encoding") != "aes128gcm" || h.Get("Urgency") != "high" || err != nil || ttl < 1 || ttl > 60 {
		t.Errorf("%q came, with %v", s.read[0], h)
	}
	text, key, _ := strings.Cut(strings.TrimPrefix(h.Get("Authorization"), "vapid t="), ", k=")
	token, err := jwt.Parse(text, func(*jwt.Token) (any, error) {
		point, err := base64.RawURLEncoding.DecodeString(key)
		if err != nil {
			return nil, err
		}
		return ecdsa.ParseUncompressedPublicKey(elliptic.P256(), point)
	}, jwt.WithAudience(s.URL), jwt.WithExpirationRequired())
	if err != nil || key != from.PublicKey() {
		t.Fatalf("VAPID: %v, by %s", err, key)
	}
	if sub, _ := token.Claims.GetSubject(); sub != "mailto:ops@example.com" {
		t.Errorf("the operator is %q", sub)
	}
}

// A node makes the same key of the same secret, and knows those of before.
func TestKeysOfTheCluster(t *testing.T) {
	s := newService(t)
	old := s.sender("of before")
	now := s.sender("of now", "of before")
	if s.sender("of now").PublicKey() != now.PublicKey() || now.PublicKey() == old.PublicKey() || s.sender().PublicKey() != "" {
		t.Error("keys do not follow from the secrets")
	}
	if err := now.Send(t.Context(), s.subscription(old), nil); err != nil {
		t.Errorf("a subscription of before a rotation: %v", err)
	}
	if err := old.Check(s.subscription(now)); !errors.Is(err, webpush.ErrKey) {
		t.Errorf("a key that nobody has: %v", err)
	}
}

// Nobody has a node ask hosts of their choice.
func TestEndpointsAreOfPushServices(t *testing.T) {
	s := webpush.New(webpush.Config{Hosts: []string{"*.push.example.com", "127.0.0.1:8443"}, Secrets: func() [][]byte { return [][]byte{[]byte("s")} }})
	browser := newService(t)
	for endpoint, want := range map[string]error{
		"https://fcm.googleapis.com/fcm/send/a:b":                 nil,
		"https://wns2-par02p.notify.windows.com/w/?token=x":       nil,
		"https://updates.push.services.mozilla.com/wpush/v2/a":    nil,
		"https://web.push.apple.com/Q":                            nil,
		"https://eu.push.example.com/a":                           nil,
		"https://127.0.0.1:8443/a":                                nil,
		"http://fcm.googleapis.com/a":                             webpush.ErrEndpoint,
		"https://fcm.googleapis.com:8443/a":                       webpush.ErrEndpoint,
		"https://fcm.googleapis.com@127.0.0.1/a":                  webpush.ErrEndpoint,
		"https://me@fcm.googleapis.com/a":                         webpush.ErrEndpoint,
		"https://fcm.googleapis.com.example.com/a":                webpush.ErrEndpoint,
		"https://evilfcm.googleapis.com/a":                        webpush.ErrEndpoint,
		"https://.push.apple.com/a":                               webpush.ErrEndpoint,
		"https://evilpush.apple.com/a":                            webpush.ErrEndpoint,
		"https://127.0.0.1/a":                                     webpush.ErrEndpoint,
		"https://169.254.169.254/latest":                          webpush.ErrEndpoint,
		"https://[::1]/a":                                         webpush.ErrEndpoint,
		"//fcm.googleapis.com/a":                                  webpush.ErrEndpoint,
		"":                                                        webpush.ErrEndpoint,
		"https://fcm.googleapis.com/" + strings.Repeat("a", 1024): webpush.ErrEndpoint,
		"https://fcm.googleapis.com/#a":                           webpush.ErrEndpoint,
	} {
		sub := browser.subscription(s)
		sub.Endpoint = endpoint
		if err := s.Check(sub); !errors.Is(err, want) {
			t.Errorf("%.60s: %v, want %v", endpoint, err, want)
		}
	}
	sub := browser.subscription(s)
	sub.Endpoint = "https://web.push.apple.com/Q"
	for _, k := range []webpush.Keys{{}, {P256DH: sub.Keys.P256DH}, {P256DH: sub.Keys.P256DH, Auth: "AAAA"}, {P256DH: "AAAA", Auth: sub.Keys.Auth}, {P256DH: "?", Auth: sub.Keys.Auth}} {
		sub := sub
		if sub.Keys = k; !errors.Is(s.Check(sub), webpush.ErrKeys) {
			t.Errorf("keys %+v: %v", k, s.Check(sub))
		}
	}
}

// A service in trouble is asked again, and no redirect is followed.
func TestWhatBecomesOfAMessage(t *testing.T) {
	for _, c := range []struct {
		answers []int
		result  string
		tries   int
	}{
		{[]int{201}, "sent", 1},
		{[]int{503, 429, 201}, "sent", 3},
		{[]int{500, 500, 500, 201}, "failed", 3},
		{[]int{410}, "gone", 1},
		{[]int{404}, "gone", 1},
		{[]int{403}, "refused", 1},
		{[]int{302}, "refused", 1},
	} {
		s := newService(t)
		s.status = c.answers
		from := s.sender("s")
		err := from.Send(t.Context(), s.subscription(from), []byte("x"))
		want := `
# HELP anteroom_pushes_total Calls that were to be told by web push, by what became of it: sent, gone (the browser wants no more), refused or failed.
# TYPE anteroom_pushes_total counter
anteroom_pushes_total{result="` + c.result + `"} 1
`
		if wrong := testutil.CollectAndCompare(from.Metrics()[0], strings.NewReader(want)); wrong != nil || len(s.came) != c.tries || (err == nil) != (c.result == "sent" || c.result == "gone") {
			t.Errorf("%v: %d tries, %v; %v", c.answers, len(s.came), err, wrong)
		}
		if err != nil && strings.Contains(err.Error(), s.host()) {
			t.Errorf("the error tells where the browser is reached: %v", err)
		}
	}
	s := newService(t)
	from := s.sender("s")
	late, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if err := from.Send(late, s.subscription(from), nil); err == nil || len(s.came) != 0 {
		t.Errorf("what comes too late was sent: %v", err)
	}
}
