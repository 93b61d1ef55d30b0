package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestWhyIsToldOfOneRoomOrOfAll(t *testing.T) {
	at := adminPort(t, healthy(), "")
	const shop = "shop: total_active_users limits the flow: 200 of 200 are inside, and 42 a minute got in of late.\n"
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

func TestWhySaysWhatTheLastHourSpeaksFor(t *testing.T) {
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b := `{"code":"limit","text":"Full."}`
		if r.URL.RequestURI() == "/v1/rooms/shop/why?advice=true" {
			b = `{"code":"limit","text":"Full.","advice":[{"key":"session_duration","text":"Half of the visits end in 30s."}]}`
		}
		_, _ = w.Write([]byte(b)) // the test sees what did not come
	}))
	defer node.Close()
	stdout, stderr, code := execute(t, t.Context(), "why", "--room", "shop", "--admin", node.URL)
	if code != 0 || !strings.HasSuffix(stdout, "\n  session_duration: Half of the visits end in 30s.\n") {
		t.Errorf("exit code %d, errors %q: %s", code, stderr, stdout)
	}
}
