package gateway

import (
	"net/http"
	"testing"
)

func TestClientsMayPreferAnAnswerAtOnce(t *testing.T) {
	for text, want := range map[string]bool{
		"respond-async": true, "wait=10, Respond-Async": true, "respond-async; x=y": true,
		"": false, "wait=0": false, "respond-asynchronously": false, `x="respond-async"`: false,
	} {
		if got := prefers(http.Header{"Prefer": {"return=minimal", text}}, "respond-async"); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}
