package notify

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/wneessen/go-mail"
)

// Mail is how a receiver is sent mail.
type Mail struct {
	Host string
	Port int
	// TLS from the first byte; else STARTTLS, which must be there unless the server
	// is on this machine.
	TLS      bool
	Username string // empty: nobody logs in
	Password string
	From     string
	To       []string
}

// ParseMailURL reads smtp://host:port, where STARTTLS follows, and
// smtps://host:port. The port may be left out.
func ParseMailURL(text string) (m Mail, ok bool) {
	u, err := url.Parse(text)
	if err != nil || u.User != nil || u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "" || u.Hostname() == "" {
		return Mail{}, false
	}
	switch m = (Mail{Host: u.Hostname(), Port: 587}); u.Scheme {
	case "smtp":
	case "smtps":
		m.TLS, m.Port = true, 465
	default:
		return Mail{}, false
	}
	if u.Port() != "" {
		if m.Port, err = strconv.Atoi(u.Port()); err != nil || m.Port < 1 || m.Port > 65535 {
			return Mail{}, false
		}
	}
	return m, true
}

// ParseAddress checks an address of mail, with a name or without.
func ParseAddress(text string) error {
	if err := mail.NewMsg().From(text); err != nil || strings.ContainsFunc(text, unicode.IsControl) {
		return fmt.Errorf("%q is no address of mail; give one such as anteroom@example.com", text)
	}
	return nil
}

// subjectMax bounds a subject, in bytes: lines beyond that are folded by some.
const subjectMax = 200

// sendMail sends e once. Repeats have the same Message-ID. The error has neither
// the address nor the password in it.
func (s *Sender) sendMail(ctx context.Context, r *Receiver, e *Event) error {
	m := r.Mail
	message, err := m.message(e)
	if err != nil {
		return err
	}
	o := []mail.Option{
		mail.WithPort(m.Port), mail.WithTimeout(sendWithin), mail.WithHELO("anteroom"),
		mail.WithTLSConfig(&tls.Config{MinVersion: tls.VersionTLS12, ServerName: m.Host, RootCAs: s.c.Roots}),
	}
	switch {
	case m.TLS:
		o = append(o, mail.WithSSL())
	case isLocal(m.Host):
		o = append(o, mail.WithTLSPolicy(mail.TLSOpportunistic))
	default:
		o = append(o, mail.WithTLSPolicy(mail.TLSMandatory))
	}
	if s.c.DialMail != nil {
		o = append(o, mail.WithDialContextFunc(s.c.DialMail))
	}
	if m.Username != "" {
		o = append(o, mail.WithSMTPAuth(mail.SMTPAuthAutoDiscover), mail.WithUsername(m.Username), mail.WithPassword(m.Password))
	}
	c, err := mail.NewClient(m.Host, o...)
	if err != nil {
		return errors.New("the address of the mail server cannot be used")
	}
	if err := c.DialAndSendWithContext(ctx, message); err != nil {
		return mailError(err)
	}
	return nil
}

// isLocal reports whether what is sent to a host stays on this machine.
func isLocal(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// message is e as mail: the text as its subject, and all of it in the body.
func (m *Mail) message(e *Event) (*mail.Msg, error) {
	msg := mail.NewMsg()
	if err := msg.From(m.From); err != nil {
		return nil, errors.New("the sender's address cannot be used")
	}
	if err := msg.To(m.To...); err != nil {
		return nil, errors.New("a recipient's address cannot be used")
	}
	text := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, e.Text)
	subject := "[anteroom] " + text
	if len(subject) > subjectMax {
		subject = strings.ToValidUTF8(subject[:subjectMax], "") + " …"
	}
	msg.Subject(subject)
	msg.SetMessageIDWithValue(e.ID + "@anteroom")
	msg.SetDateWithValue(e.Time)
	msg.SetGenHeader("Auto-Submitted", "auto-generated")
	msg.SetGenHeader("X-Anteroom-Event", e.Type)
	data, err := json.MarshalIndent(e.Data, "", "  ")
	if err != nil {
		return nil, err
	}
	msg.SetBodyString(mail.TypeTextPlain, fmt.Sprintf("%s\n\nevent: %s\ntime:  %s\nid:    %s\n\n%s\n", text, e.Type, e.Time.UTC().Format(time.RFC3339), e.ID, data))
	return msg, nil
}

// mailError says in a few words what went wrong, with the code of the server's
// answer: its words may have addresses in them.
func mailError(err error) error {
	var cert *tls.CertificateVerificationError
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	var op *net.OpError
	var send *mail.SendError
	var timeout net.Error
	switch {
	case errors.As(err, &cert), errors.As(err, &unknown), errors.As(err, &name):
		return errors.New("the mail server's certificate is not good for its name")
	case errors.As(err, &timeout) && timeout.Timeout(), errors.Is(err, context.DeadlineExceeded):
		return errors.New("the mail server does not answer in time")
	case errors.As(err, &op) && op.Op == "dial":
		return op.Err
	case errors.As(err, &send) && send.ErrorCode() > 0:
		return fmt.Errorf("the mail server answered %d", send.ErrorCode())
	case strings.Contains(err.Error(), "STARTTLS"):
		return errors.New("the mail server has no STARTTLS; give smtps://, or one that has")
	case strings.Contains(strings.ToLower(err.Error()), "auth"):
		return errors.New("the mail server does not take the user name and password")
	}
	return errors.New("the mail server did not take it")
}
