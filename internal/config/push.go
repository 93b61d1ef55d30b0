package config

import (
	"net/mail"
	"net/url"
	"strings"
)

// Push says by which services rooms with push tell people of their call.
type Push struct {
	Contact string   `json:"contact"` // of the operator, for the services; empty: nobody is told
	Hosts   []string `json:"hosts"`   // of services beside those of the known browsers
}

const hostsMax = 20

func (f *File) checkPush() {
	p := f.Config.Push
	if p.Contact != "" && !isContact(p.Contact) {
		f.fault("push.contact", "%q; give where a push service reaches you, such as mailto:ops@example.com or https://example.com/contact", p.Contact)
	}
	if len(p.Hosts) > hostsMax {
		f.fault("push.hosts", "%d; give at most %d", len(p.Hosts), hostsMax)
	}
	for i, h := range p.Hosts {
		if dialable(strings.TrimPrefix(h, "*.")) != nil && !validHost(strings.TrimPrefix(h, "*.")) || h != strings.ToLower(h) {
			f.fault("push.hosts"+index(i), "%q is no host in small letters; give one such as push.example.com, *.push.example.com or push.example.com:8443", h)
		}
	}
}

func isContact(text string) bool {
	if at, ok := strings.CutPrefix(text, "mailto:"); ok {
		a, err := mail.ParseAddress(at)
		return err == nil && a.Address == at
	}
	u, err := url.Parse(text)
	return err == nil && u.Scheme == "https" && u.Host != "" && u.User == nil
}

// checkRoomPush says what a room that tells by push lacks.
func (f *File) checkRoomPush(key string, r Room) {
	if r.Push && f.Config.Push.Contact == "" {
		f.warn(key+".push", "nobody is told, since push services want to know whose message it is; give push.contact, such as mailto:ops@example.com")
	}
}
