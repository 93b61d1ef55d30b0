package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anteroom/anteroom/internal/config"
)

func TestNotificationsThatCannotWork(t *testing.T) {
	const mail = `from: a@example.com, to: [b@example.com]`
	for text, want := range map[string]string{
		`{name: a, url: "https://example.com/hook"}`:                                                               "",
		`{name: a, url: "https://me:pw@example.com/hook"}`:                                                         "notifications[0].url: no address of a webhook",
		`{name: a, url: "ftp://example.com"}`:                                                                      "notifications[0].url: no address of a webhook",
		`{name: a, url: "https://example.com", events: [queue.began]}`:                                             "notifications[0].events[0]: \"queue.began\"; there are origin.unhealthy",
		`{name: a, url: "https://example.com", format: xml}`:                                                       "notifications[0].format: \"xml\"; give json or slack",
		`{name: a, url: "https://example.com", secret: whsec_short}`:                                               "notifications[0].secret: no secret of a webhook",
		`{name: a, url: "https://example.com", to: [b@example.com]}`:                                               "notifications[0].url: no mail server, although from, to,",
		`{name: a, url: "smtps://mail.example.com", ` + mail + `}`:                                                 "",
		`{name: a, url: "smtp://mail.example.com:587", username: u, password: p, ` + mail + `}`:                    "",
		`{name: a, url: "smtp://u:p@mail.example.com", ` + mail + `}`:                                              "notifications[0].url: no address of a mail server",
		`{name: a, url: "smtp://mail.example.com", from: a@example.com}`:                                           "notifications[0].to: 0 addresses; give 1 to 20",
		`{name: a, url: "smtp://mail.example.com", from: nobody, to: [b@example.com]}`:                             "notifications[0].from: \"nobody\" is no address of mail",
		`{name: a, url: "smtp://mail.example.com", from: a@example.com, to: ["b@x\nBcc: c@x"]}`:                    "notifications[0].to[0]: ",
		`{name: a, url: "smtp://mail.example.com", username: u, ` + mail + `}`:                                     "notifications[0].username: username and password go together",
		`{name: a, url: "smtp://mail.example.com", format: slack, ` + mail + `}`:                                   "notifications[0].format: \"slack\" is for webhooks",
		`{name: a, url: "smtp://mail.example.com", secret: "whsec_` + strings.Repeat("A", 32) + `", ` + mail + `}`: "notifications[0].secret: mail is not signed",
	} {
		f := config.Parse("a.yaml", []byte("notifications: ["+text+"]\n"), config.Options{Host: "a"})
		got := ""
		if err := f.Err(); err != nil {
			got = err.Error()
		}
		if want == "" && got != "" || !strings.Contains(got, want) || strings.Contains(got, "me:pw") || strings.Contains(got, "u:p@") {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
	f := config.Parse("a.yaml", []byte("notification_thresholds: {wait: -1s, settle: 2400h}\n"), config.Options{Host: "a"})
	for _, want := range []string{"notification_thresholds.wait: -1s; give a time from 0s to 2160h", "notification_thresholds.settle: 2400h; give"} {
		if err := f.Err(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestThePasswordOfMailIsReadAndNeverShown from a file, as the secrets of webhooks are.
func TestThePasswordOfMailIsReadAndNeverShown(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("pw", "open-sesame\n")
	write("a.yaml", `notifications: [{name: people, url: "smtp://mail.example.com", from: a@example.com, to: [b@example.com], username: room, password_file: pw}]`)
	f := config.Load(filepath.Join(dir, "a.yaml"), config.Options{Host: "a"})
	if err := f.Err(); err != nil {
		t.Fatal(err)
	}
	r := f.Config.Receivers()
	if len(r) != 1 || r[0].Mail == nil || r[0].Mail.Password != "open-sesame" || r[0].Mail.Host != "mail.example.com" {
		t.Errorf("%+v", r)
	}
	if shown := fmt.Sprintf("%+v", f.Config.Notifications); strings.Contains(shown, "sesame") {
		t.Error("the password is shown")
	}
	write("pw", "two words\n")
	if err := config.Load(filepath.Join(dir, "a.yaml"), config.Options{Host: "a"}).Err(); err == nil || !strings.Contains(err.Error(), "more than one word") {
		t.Errorf("%v", err)
	}
}
