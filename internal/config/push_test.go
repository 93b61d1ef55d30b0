package config_test

import (
	"strings"
	"testing"

	"github.com/anteroom/anteroom/internal/config"
)

func TestPush(t *testing.T) {
	const room = "rooms: [{name: shop, total_active_users: 1, push: true}]\n"
	for _, c := range []struct{ text, want, warns string }{
		{"push: {contact: mailto:ops@example.com}\n" + room, "", ""},
		{"push: {contact: 'https://example.com/contact', hosts: [push.example.com, '*.example.com', '127.0.0.1:8443']}\n" + room, "", ""},
		{room, "", "rooms[0].push: nobody is told, since push services want to know whose message it is; give push.contact"},
		{"push: {contact: ops@example.com}", `push.contact: "ops@example.com"; give where a push service reaches you, such as mailto:ops@example.com`, ""},
		{"push: {contact: 'mailto:'}", `push.contact: "mailto:"; give where`, ""},
		{"push: {contact: 'http://example.com'}", `push.contact: "http://example.com"; give where`, ""},
		{"push: {hosts: ['https://push.example.com']}", `push.hosts[0]: "https://push.example.com" is no host in small letters; give one such as push.example.com`, ""},
		{"push: {hosts: ['*']}", `push.hosts[0]: "*" is no host`, ""},
		{"push: {hosts: [Push.example.com]}", `push.hosts[0]: "Push.example.com" is no host in small letters`, ""},
	} {
		f := config.Parse("a.yaml", []byte(c.text), config.Options{Host: "a"})
		got := ""
		if err := f.Err(); err != nil {
			got = err.Error()
		}
		var warns string
		for _, p := range f.Warnings {
			if strings.Contains(p.Key, "push") {
				warns += p.Error()
			}
		}
		if (c.want == "") != (got == "") || !strings.Contains(got, c.want) || (c.warns == "") != (warns == "") || !strings.Contains(warns, c.warns) {
			t.Errorf("%s: %s; %s", c.text, got, warns)
		}
	}
}
