package config_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/anteroom/anteroom/internal/config"
)

func TestOriginCommands(t *testing.T) {
	for _, c := range []struct {
		text    string
		revokes bool
		want    string
	}{
		{"", true, ""},
		{", enabled_origin_commands: [revoke]", true, ""},
		{", enabled_origin_commands: []", false, ""},
		{", enabled_origin_commands: [dance]", false, `enabled_origin_commands[0]: "dance"; give revoke, the only one there is, or an empty list for none`},
	} {
		f := parse("rooms:\n  - {name: shop, total_active_users: 1"+c.text+"}\n", config.Options{})
		if got := strings.TrimPrefix(errorText(f), "a.yaml:2: rooms[0]."); got != c.want {
			t.Errorf("%s: %q, want %q", c.text, got, c.want)
		} else if got := f.Config.Rooms[0].Commands(config.Revoke); c.want == "" && got != c.revokes {
			t.Errorf("%s: revoke is taken: %v", c.text, got)
		}
	}
}

// Programs that were written for AWS are silent for longer than people are.
func TestAWSProgramsWantTime(t *testing.T) {
	for ttl, warned := range map[string]bool{"5m": true, "59m": true, "1h": false, "3h": false} {
		f := parse("rooms:\n  - {name: shop, total_active_users: 1, aws_api: true, ticket_ttl: "+ttl+"}\n", config.Options{})
		if f.Err() != nil || !f.Config.Rooms[0].AWSAPI {
			t.Fatal(f.Err())
		}
		about := slices.ContainsFunc(f.Warnings, func(p config.Problem) bool { return strings.Contains(p.Error(), "ticket_ttl") })
		if about != warned {
			t.Errorf("ticket_ttl %s: warned %v, want %v: %v", ttl, about, warned, f.Warnings)
		}
	}
}
