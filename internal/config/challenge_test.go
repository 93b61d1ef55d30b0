package config_test

import (
	"strings"
	"testing"

	"github.com/anteroom/anteroom/internal/config"
)

func TestAChallengeNeedsAKey(t *testing.T) {
	const key = "0123456789abcdef0123456789abcdef"
	for text, want := range map[string]string{
		"challenge: 'https://captcha.example.com/'}]\nsecurity: {challenge_key: " + key + "}":     "",
		"challenge: 'https://captcha.example.com/'}]":                                             "nobody could join: there is no security.challenge_key; set one in the file or in ANTEROOM_SECURITY_CHALLENGE_KEY, the same on all nodes",
		"challenge: /captcha}]\nsecurity: {challenge_key: " + key + "}":                           "no address of a page; give one such as https://captcha.example.com/",
		"message: hello}]\nsecurity: {challenge_key: " + key[1:] + "}":                            "shorter than 32 characters, so it can be guessed",
		"challenge: 'https://u:p@captcha.example.com/'}]\nsecurity: {challenge_key: " + key + "}": "no address of a page",
	} {
		got := ""
		if err := parse("rooms: [{name: shop, total_active_users: 1, "+text, config.Options{}).Err(); err != nil {
			got = err.Error()
		}
		if (want == "") != (got == "") || !strings.Contains(got, want) || strings.Contains(got, key[1:]) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
