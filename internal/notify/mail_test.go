package notify_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/mail"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"

	"github.com/anteroom/anteroom/internal/notify"
)

// post is a mail server for one user, and what came to it.
type post struct {
	open   bool // takes mail of who has not logged in
	mu     sync.Mutex
	mails  []letter
	logins []string
}

type letter struct {
	from   string
	to     []string
	secure bool
	text   []byte
}

// session is one connection to it.
type session struct {
	p      *post
	conn   *smtp.Conn
	user   bool
	letter letter
}

func (s *session) AuthMechanisms() []string { return []string{sasl.Plain} }

func (s *session) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		s.p.mu.Lock()
		defer s.p.mu.Unlock()
		s.p.logins = append(s.p.logins, user)
		if s.user = user == "room" && password == "open sesame"; !s.user {
			return errors.New("wrong password " + password)
		}
		return nil
	}), nil
}

func (s *session) Mail(from string, _ *smtp.MailOptions) error {
	if !s.user && !s.p.open {
		return smtp.ErrAuthRequired
	}
	s.letter.from = from
	return nil
}

func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	if strings.HasPrefix(to, "nobody") {
		return &smtp.SMTPError{Code: 550, Message: "no such user " + to}
	}
	s.letter.to = append(s.letter.to, to)
	return nil
}

func (s *session) Data(r io.Reader) error {
	text, err := io.ReadAll(r)
	_, s.letter.secure = s.conn.TLSConnectionState()
	s.letter.text = text
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	s.p.mails = append(s.p.mails, s.letter)
	return err
}

func (s *session) Reset()        { s.letter = letter{} }
func (s *session) Logout() error { return nil }

// kind is how a mail server is reached.
type kind struct {
	tls      bool // from the first byte
	startTLS bool
	open     bool
}

// serve starts a mail server. Its certificate is for localhost; roots has it.
func (p *post) serve(t *testing.T, k kind) (port int, roots *x509.CertPool) {
	t.Helper()
	p.open = k.open
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"localhost"}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	roots = x509.NewCertPool()
	parsed, _ := x509.ParseCertificate(der) // just made
	roots.AddCert(parsed)
	secure := &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, MinVersion: tls.VersionTLS12}
	s := smtp.NewServer(smtp.BackendFunc(func(c *smtp.Conn) (smtp.Session, error) { return &session{p: p, conn: c}, nil }))
	s.Domain, s.ErrorLog = "localhost", quiet{}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port = l.Addr().(*net.TCPAddr).Port
	if k.startTLS {
		s.TLSConfig = secure
	}
	if k.tls {
		l = tls.NewListener(l, secure)
	}
	over := make(chan struct{})
	go func() { defer close(over); _ = s.Serve(l) }() // ends with Close
	t.Cleanup(func() { _ = s.Close(); <-over })
	return port, roots
}

type quiet struct{}

func (quiet) Printf(string, ...any) {}
func (quiet) Println(...any)        {}

// mailer sends by m, and logs into log.
func mailer(t *testing.T, m notify.Mail, roots *x509.CertPool, log io.Writer) *notify.Sender {
	t.Helper()
	var dial func(context.Context, string, string) (net.Conn, error)
	if !m.TLS {
		dial = far(m.Port)
	}
	s, err := notify.New(notify.Config{
		DialMail:  dial,
		Receivers: []notify.Receiver{{Name: "people", Mail: &m}}, Self: "a", Members: func() []string { return []string{"a"} },
		Tell: func(string, string, bool) {}, Roots: roots, Logger: slog.New(slog.NewTextHandler(log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// far is the way to all mail servers: it leads to that port of this machine.
func far(port int) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, net.JoinHostPort("127.0.0.1", fmt.Sprint(port)))
	}
}

func TestMailIsSentBySTARTTLSAndByTLS(t *testing.T) {
	for name, k := range map[string]kind{"STARTTLS": {startTLS: true}, "TLS": {tls: true}} {
		t.Run(name, func(t *testing.T) {
			p := &post{}
			port, roots := p.serve(t, k)
			s := mailer(t, notify.Mail{
				Host: "localhost", Port: port, TLS: k.tls, Username: "room", Password: "open sesame",
				From: "Waiting room <room@example.com>", To: []string{"a@example.com", "b@example.com"},
			}, roots, io.Discard)
			s.Add(notify.Event{
				ID: "msg_1", Type: notify.QueueingBegan, Time: time.Unix(1000, 0), Room: "shop", Text: "Room shop: 7 people wait\r\nBcc: thief@example.com",
				Data: map[string]int{"queued": 7},
			}, time.Now())
			ctx, cancel := context.WithCancel(t.Context())
			over := make(chan struct{})
			go func() { defer close(over); s.Run(ctx) }()
			look := time.NewTicker(10 * time.Millisecond)
			defer look.Stop()
			for s.Receivers()[0].Last.At.IsZero() { // until it was tried
				<-look.C
			}
			cancel()
			<-over
			if got := s.Receivers()[0]; got.Last.Err != nil || got.Waiting != 0 || got.Kind != "email" {
				t.Fatalf("%+v", got)
			}
			got := p.mails[0]
			m, err := mail.ReadMessage(bytes.NewReader(got.text))
			if err != nil {
				t.Fatal(err)
			}
			body, _ := io.ReadAll(m.Body) // in memory
			if !got.secure || got.from != "room@example.com" || !slices.Equal(got.to, []string{"a@example.com", "b@example.com"}) {
				t.Errorf("from %s to %v, encrypted: %v", got.from, got.to, got.secure)
			}
			if m.Header.Get("Message-Id") != "<msg_1@anteroom>" || m.Header.Get("Bcc") != "" || m.Header.Get("Auto-Submitted") != "auto-generated" ||
				!strings.HasPrefix(m.Header.Get("Subject"), "[anteroom] Room shop: 7 people wait") || m.Header.Get("X-Anteroom-Event") != "queueing.began" {
				t.Errorf("%v", m.Header)
			}
			if !bytes.Contains(body, []byte(`"queued": 7`)) || !bytes.Contains(body, []byte("1970-01-01T00:16:40Z")) {
				t.Errorf("%s", body)
			}
		})
	}
}

// TestAMailServerThatIsNotSureGetsNothing: no password goes to whom the certificate
// does not vouch for, and no error says one.
func TestAMailServerThatIsNotSureGetsNothing(t *testing.T) {
	for name, c := range map[string]struct {
		kind  kind
		edit  func(m *notify.Mail)
		trust bool
		want  string
	}{
		"a certificate of nobody we know":   {kind{startTLS: true}, func(*notify.Mail) {}, false, "certificate is not good"},
		"the same, encrypted at once":       {kind{tls: true}, func(m *notify.Mail) { m.TLS = true }, false, "certificate is not good"},
		"a certificate of another name":     {kind{startTLS: true}, func(m *notify.Mail) { m.Host = "127.0.0.1" }, true, "certificate is not good"},
		"a wrong password":                  {kind{startTLS: true}, func(m *notify.Mail) { m.Password = "guess" }, true, "does not take the user name and password"},
		"no encryption, and a password":     {kind{}, func(*notify.Mail) {}, true, "does not take the user name and password"},
		"no encryption, on the network":     {kind{open: true}, func(m *notify.Mail) { m.Host, m.Username, m.Password = "mail.example.com", "", "" }, true, "has no STARTTLS"},
		"a recipient that there is not":     {kind{startTLS: true}, func(m *notify.Mail) { m.To = []string{"nobody@example.com"} }, true, "the mail server answered 550"},
		"nobody there":                      {kind{}, func(m *notify.Mail) { m.Port = 1 }, true, "connect: connection refused"},
		"a server that wants a user":        {kind{startTLS: true}, func(m *notify.Mail) { m.Username, m.Password = "", "" }, true, "the mail server answered 502"},
		"a relay of this machine is enough": {kind{open: true}, func(m *notify.Mail) { m.Username, m.Password = "", "" }, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := &post{}
			port, roots := p.serve(t, c.kind)
			m := notify.Mail{Host: "localhost", Port: port, Username: "room", Password: "open sesame", From: "room@example.com", To: []string{"a@example.com"}}
			if c.edit(&m); !c.trust {
				roots = x509.NewCertPool()
			}
			var log bytes.Buffer
			_, err, ok := mailer(t, m, roots, &log).Test(t.Context(), "people")
			text := ""
			if err != nil {
				text = err.Error()
			}
			if !ok || !strings.Contains(text, c.want) || c.want == "" && text != "" || strings.ContainsAny(text, "@") || m.Password != "" && strings.Contains(text, m.Password) {
				t.Errorf("%q, want %q", text, c.want)
			}
			p.mu.Lock()
			defer p.mu.Unlock()
			if arrived := len(p.mails) > 0; arrived != (c.want == "") || !c.trust && len(p.logins) > 0 {
				t.Errorf("%d mails, logins %v", len(p.mails), p.logins)
			}
		})
	}
}

func TestParseMailURL(t *testing.T) {
	for text, want := range map[string]notify.Mail{
		"smtp://mail.example.com":         {Host: "mail.example.com", Port: 587},
		"smtp://mail.example.com:25":      {Host: "mail.example.com", Port: 25},
		"smtps://mail.example.com/":       {Host: "mail.example.com", Port: 465, TLS: true},
		"smtps://[::1]:2465":              {Host: "::1", Port: 2465, TLS: true},
		"smtp://me:pw@mail.example.com":   {},
		"smtp://mail.example.com/?tls=no": {},
		"smtp://mail.example.com:0":       {},
		"smtp://":                         {},
		"https://mail.example.com":        {},
	} {
		got, ok := notify.ParseMailURL(text)
		if ok != (want.Host != "") || ok && (got.Host != want.Host || got.Port != want.Port || got.TLS != want.TLS) {
			t.Errorf("%s: %+v, %v", text, got, ok)
		}
	}
}
