package config

import (
	"net/url"
	"slices"
	"strings"

	"github.com/anteroom/anteroom/internal/notify"
)

// Notification is a webhook, and of what it is to hear.
type Notification struct {
	Name       string   `json:"name"`
	URL        Secret   `json:"url"`         // those of chats are secrets
	Secret     []Secret `json:"secret"`      // one or a list: each signs
	SecretFile Path     `json:"secret_file"` // Load reads it into Secret, a line each
	Format     string   `json:"format"`
	Events     []string `json:"events"` // empty: all
	Rooms      []string `json:"rooms"`  // empty: all
}

// DefaultNotification returns a webhook of which the file says nothing. It is not
// complete: name and url have no default.
func DefaultNotification() Notification { return Notification{Format: "json"} }

const notificationsMax, secretsMax = 50, 5

// Receivers are the webhooks. The file has been checked.
func (c Config) Receivers() []notify.Receiver {
	var all []notify.Receiver
	for _, n := range c.Notifications {
		r := notify.Receiver{Name: n.Name, URL: n.URL.Reveal(), Slack: n.Format == "slack", Events: n.Events, Rooms: n.Rooms}
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
		if u, err := url.Parse(n.URL.Reveal()); err != nil || u.Scheme != "http" && u.Scheme != "https" || !validHost(u.Hostname()) || u.User != nil {
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

// readWebhookSecrets reads the files of secrets.
func (f *File) readWebhookSecrets() {
	for i := range f.Config.Notifications {
		n, key := &f.Config.Notifications[i], "notifications"+index(i)+".secret_file"
		if n.SecretFile == "" || f.blamed(key) || !f.readable(key, n.SecretFile, `make it with: echo "whsec_$(openssl rand -base64 32)" > `+string(n.SecretFile)) {
			continue
		}
		f.checkPrivate(key, n.SecretFile)
		text, err := readSome(string(n.SecretFile))
		if err != nil {
			f.fault(key, "%s cannot be read: %v", n.SecretFile, cause(err))
			continue
		}
		if n.Secret = secrets(strings.Fields(string(text))...); len(n.Secret) == 0 {
			f.fault(key, "%s is empty; put a secret into it", n.SecretFile)
		}
		f.checkWebhookSecrets(key, n.Secret)
	}
}
