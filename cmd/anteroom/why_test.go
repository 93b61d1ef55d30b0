package main

import (
	"strings"
	"testing"
)

func TestWhyIsToldOfOneRoomOrOfAll(t *testing.T) {
	at := adminPort(t, healthy(), "")
	const shop = "shop: total_active_users limits the flow: 200 of 200 are inside, and 42 a minute are called as others leave.\n"
	for _, x := range []struct{ args, want string }{
		{"--room shop", shop},
		{"", shop + "news: Nobody waits: there is room for 997 more.\nblog: The room is suspended: everybody goes through, nothing is counted.\n"},
	} {
		stdout, stderr, code := execute(t, t.Context(), strings.Fields("why --admin "+at+" "+x.args)...)
		if code != 0 || stderr != "" || stdout != x.want {
			t.Errorf("why %s: exit code %d, errors %q:\n%s\nwant\n%s", x.args, code, stderr, stdout, x.want)
		}
	}
	stdout, _, code := execute(t, t.Context(), "why", "--json", "--room", "shop", "--admin", at)
	if code != 0 || !strings.HasPrefix(stdout, `{"room":"shop","code":"limit","level":"queued",`) || !strings.Contains(stdout, `"inside":200,"queued":3456,`) {
		t.Errorf("exit code %d: %s", code, stdout)
	}
	stdout, stderr, code := execute(t, t.Context(), "why", "--room", "nope", "--admin", at)
	if code != 1 || stdout != "" || !strings.Contains(stderr, "There is no such room (room_unknown)") {
		t.Errorf("exit code %d: %q, %q", code, stdout, stderr)
	}
}
