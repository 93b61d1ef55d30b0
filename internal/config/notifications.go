package config

import (
	"net/url"
	"slices"
	"strings"

	"github.com/anteroom/anteroom/internal/notify"
)

// Notification is a webhook, or people with mail, and of what they are to hear.
type Notification struct {
	Name       string   `json:"name"`
	URL        Secret   `json:"url"`         // those of chats are secrets
	Secret     []Secret `json:"secret"`      // one or a list: each signs
	SecretFile Path     `json:"secret_file"` // Load reads it into Secret, a line each
	Format     string   `json:"format"`
	Events     []string `json:"events"` // empty: all
	Rooms      []string `json:"rooms"`  // empty: all

	// Of mail, where URL is smtp:// or smtps://.
	From         string   `json:"from"`
	To           []string `json:"to"`
	Username     string   `json:"username"` // empty: nobody logs in
	Password     Secret   `json:"password"`
	PasswordFile Path     `json:"password_file"` // Load reads it into Password
}

// DefaultNotification returns a webhook of which the file says nothing. It is not
// complete: name and url have no default.
func DefaultNotification() Notification { return Notification{Format: "json"} }

const notificationsMax, secretsMax, mailToMax = 50, 5, 20

// mail is how mail is sent; false: it is a webhook.
func (n *Notification) mail() (notify.Mail, bool) {
	m, ok := notify.ParseMailURL(n.URL.Reveal())
	m.From, m.To, m.Username, m.Password = n.From, n.To, n.Username, n.Password.Reveal()
	return m, ok
}

// isMail reports whether a URL is meant as that of a mail server.
func (n *Notification) isMail() bool {
	return strings.HasPrefix(strings.ToLower(n.URL.Reveal()), "smtp")
}

// Receivers are who is told. The file has been checked.
func (c Config) Receivers() []notify.Receiver {
	var all []notify.Receiver
	for _, n := range c.Notifications {
		r := notify.Receiver{Name: n.Name, URL: n.URL.Reveal(), Slack: n.Format == "slack", Events: n.Events, Rooms: n.Rooms}
		if m, ok := n.mail(); ok {
			r.Mail = &m
		}
		for _, s := range n.Secret {
			if secret, err := notify.ParseSecret(s.Reveal()); err == nil {
				r.Secrets = append(r.Secrets, secret)
			}
		}
		all = append(all, r)
	}
	return all
}

func (f *File) checkNotifications() {
	if n := len(f.Config.Notifications); n > notificationsMax {
		f.fault("notifications", "%d; list %d at most", n, notificationsMax)
		return
	}
	for i, n := range f.Config.Notifications {
		key := "notifications" + index(i)
		if f.unread[key] {
			continue
		}
		if !matches(roomPattern, n.Name) {
			f.fault(key+".name", "%q is no name; give up to 64 letters, digits, - and _", n.Name)
		}
		if j := slices.IndexFunc(f.Config.Notifications[:i], func(o Notification) bool { return o.Name == n.Name }); j >= 0 {
			f.fault(key+".name", "%q is the name of notifications[%d] too; give each its own", n.Name, j)
		}
		if n.isMail() {
			f.checkMail(key, &n)
		} else if n.From != "" || len(n.To) > 0 || n.Username != "" || !n.Password.Empty() {
			f.fault(key+".url", "no mail server, although from, to, username or password is given; give one such as smtp://mail.example.com:587 or smtps://mail.example.com")
		} else if u, err := url.Parse(n.URL.Reveal()); err != nil || u.Scheme != "http" && u.Scheme != "https" || !validHost(u.Hostname()) || u.User != nil {
			f.fault(key+".url", "no address of a webhook; give one such as https://example.com/hook, without user name") // without the text: it may be a secret
		}
		if n.Format != "json" && n.Format != "slack" {
			f.fault(key+".format", "%q; give json or slack", n.Format)
		}
		for j, e := range n.Events {
			if !slices.Contains(notify.Types(), e) {
				f.fault(key+".events"+index(j), "%q; there are %s", e, strings.Join(notify.Types(), ", "))
			}
		}
		if len(n.Secret) > 0 && n.SecretFile != "" {
			f.fault(key+".secret_file", "given beside secret; give one of them")
		}
		f.checkWebhookSecrets(key+".secret", n.Secret)
	}
}

// checkMail checks what only mail has, and that it has nothing else.
func (f *File) checkMail(key string, n *Notification) {
	if m, ok := n.mail(); !ok || !validHost(m.Host) {
		f.fault(key+".url", "no address of a mail server; give one such as smtp://mail.example.com:587 (STARTTLS) or smtps://mail.example.com, without user name: that is username")
	}
	if err := notify.ParseAddress(n.From); err != nil {
		f.fault(key+".from", "%v", err)
	}
	if len(n.To) == 0 || len(n.To) > mailToMax {
		f.fault(key+".to", "%d addresses; give 1 to %d", len(n.To), mailToMax)
	}
	for i, to := range n.To {
		if err := notify.ParseAddress(to); err != nil {
			f.fault(key+".to"+index(i), "%v", err)
		}
	}
	switch {
	case len(n.Secret) > 0 || n.SecretFile != "":
		f.fault(key+".secret", "mail is not signed; leave it out")
	case n.Format != "json":
		f.fault(key+".format", "%q is for webhooks; leave it out", n.Format)
	case !n.Password.Empty() && n.PasswordFile != "":
		f.fault(key+".password_file", "given beside password; give one of them")
	case (n.Username == "") != (n.Password.Empty() && n.PasswordFile == ""):
		f.fault(key+".username", "username and password go together; give both or neither")
	}
}

func (f *File) checkWebhookSecrets(key string, all []Secret) {
	if len(all) > secretsMax {
		f.fault(key, "%d secrets; give the new one and the old one", len(all))
	}
	for _, s := range all {
		if _, err := notify.ParseSecret(s.Reveal()); err != nil {
			f.fault(key, "%v", err)
		}
	}
}

// readNotificationSecrets reads the files of secrets and passwords.
func (f *File) readNotificationSecrets() {
	for i := range f.Config.Notifications {
		n, key := &f.Config.Notifications[i], "notifications"+index(i)
		if lines, ok := f.readSecrets(key+".secret_file", n.SecretFile, `make it with: echo "whsec_$(openssl rand -base64 32)" > `+string(n.SecretFile)); ok {
			n.Secret = secrets(lines...)
			f.checkWebhookSecrets(key+".secret_file", n.Secret)
		}
		if lines, ok := f.readSecrets(key+".password_file", n.PasswordFile, "put the password into it, and chmod 600"); ok {
			if len(lines) > 1 {
				f.fault(key+".password_file", "%s has more than one word in it; put the password into it, and nothing else", n.PasswordFile)
			}
			n.Password = secrets(lines[0])[0]
		}
	}
}

// readSecrets reads the words of a file, of which there is one at least; false: none
// is named, or something is wrong with it, which was said.
func (f *File) readSecrets(key string, path Path, remedy string) ([]string, bool) {
	if path == "" || f.blamed(key) || !f.readable(key, path, remedy) {
		return nil, false
	}
	f.checkPrivate(key, path)
	text, err := readSome(string(path))
	if err != nil {
		f.fault(key, "%s cannot be read: %v", path, cause(err))
		return nil, false
	}
	words := strings.Fields(string(text))
	if len(words) == 0 {
		f.fault(key, "%s is empty; put a secret into it", path)
	}
	return words, len(words) > 0
}
