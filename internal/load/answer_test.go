package load

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

const waitingAnswer = `{"room":"shop","state":"waiting","ticket":"EcWm-_GO","position":1,"people_ahead":0,"queued":0,
"estimated_wait_seconds":{"p25":1,"p50":1,"p75":2},"refresh_interval_seconds":3,"joined_at":"2026-11-21T12:19:15.190172Z",
"last_updated":"2026-11-21T12:19:15.190187Z","queueing_method":"fifo","cfWaitingRoom":{"inWaitingRoom":true,"state":"no, it is inside","l":[1,"]}",{}]}}` + "\n"

func TestAnswersAreReadAsTheGatewayWritesThem(t *testing.T) {
	for text, want := range map[string]answer{
		waitingAnswer: {
			state: []byte("waiting"), ticket: []byte("EcWm-_GO"), refresh: 3_000_000, wait: quartiles{1000, 1000, 2000},
			joined: []byte("2026-11-21T12:19:15.190172Z"), updated: []byte("2026-11-21T12:19:15.190187Z"),
		},
		`{"state":"admitted","pass":"Ic","position":null,"pass_expires_at":"2026-11-21T12:21:14.9Z","called_in_wave":18446744073709551615}`: {
			state: []byte("admitted"), pass: []byte("Ic"), expires: []byte("2026-11-21T12:21:14.9Z"), wave: 1<<64 - 1, hasWave: true,
		},
		`{"type":"urn:anteroom:problem:not_called_yet","status":409,"code":"not_called_yet"}`:                     {code: []byte("not_called_yet")},
		` { "st\u0061te" : "c\u0061lled" , "ticket":null,"called_in_wave":null,"refresh_interval_seconds":0.25} `: {state: []byte("called"), refresh: 250_000},
		`{"state":"called","state":"waiting","pass":"a","pass":null}`:                                             {state: []byte("waiting")}, // the last one counts
		`{}`: {},
	} {
		var got answer
		if err := got.parse([]byte(text)); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(answer{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}

func TestWhatIsNoAnswerIsRefused(t *testing.T) {
	for _, text := range []string{
		"", "null", "[]", `"state"`, "{", `{"state"`, `{"state":`, `{"state":"wai`, `{"state":"waiting"`, `{"state":"waiting",}`, `{"state":"waiting"} x`,
		`{"state":7}`, `{"ticket":{}}`, `{"refresh_interval_seconds":"3"}`, `{"refresh_interval_seconds":-1}`, `{"called_in_wave":1.5}`, `{"called_in_wave":-1}`,
		`{"called_in_wave":"7"}`, `{state:"waiting"}`, "<html>", `{"state":"\x"}`,
	} {
		var a answer
		if err := a.parse([]byte(text)); !errors.Is(err, errAnswer) {
			t.Errorf("%q: %v, want errAnswer", text, err)
		}
	}
}

func TestTokensThatCouldSayMoreAreNotSentBack(t *testing.T) {
	for token, want := range map[string]bool{
		"EcWmGOCt-_.~=+/": true, "": false, `a"b`: false, "a\r\nHost: b": false, `a\u0022`: false, "a;b": false, "a b": false, "ä": false,
		string(bytes.Repeat([]byte("a"), tokenMax+1)): false,
	} {
		if got := sendable([]byte(token)); got != want {
			t.Errorf("sendable(%q) = %v", token, got)
		}
	}
}

// What encoding/json takes for an object, the parser reads in the same way.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte(waitingAnswer))
	f.Add([]byte(`{"state":"a\"b","code":"\ud83d\ude00","called_in_wave":7,"refresh_interval_seconds":1e2}`))
	f.Add([]byte(`{"x":[{"state":"]"},"}"],"state":null}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var got answer
		err := got.parse(text)
		var want map[string]json.RawMessage
		if !utf8.Valid(text) || json.Unmarshal(text, &want) != nil || want == nil {
			return // it must not panic, that is all
		}
		for name, field := range map[string][]byte{
			"state": got.state, "ticket": got.ticket, "pass": got.pass, "code": got.code,
			"joined_at": got.joined, "last_updated": got.updated, "pass_expires_at": got.expires,
		} {
			var s *string
			wrong := json.Unmarshal(want[name], &s) != nil && want[name] != nil
			switch {
			case err != nil:
				return // a field of another kind; the table has examples
			case wrong:
				t.Fatalf("%s is %s, and was taken for %q", name, want[name], field)
			case s == nil && field != nil, s != nil && (field == nil || *s != string(field)):
				t.Fatalf("%s is %s, read as %q", name, want[name], field)
			}
		}
		var wave *uint64
		if json.Unmarshal(want["called_in_wave"], &wave) == nil && (wave != nil) != got.hasWave || wave != nil && *wave != got.wave {
			t.Fatalf("called_in_wave is %s, read as %d, %v", want["called_in_wave"], got.wave, got.hasWave)
		}
	})
}

// An object whose fields are of the right kind is never refused.
func FuzzAnswerOfTheRightKind(f *testing.F) {
	f.Add("waiting", "Ec", "é\"\\\n", "x", uint64(7), 20)
	f.Fuzz(func(t *testing.T, state, ticket, key, other string, wave uint64, refresh int) {
		text, err := json.Marshal(map[string]any{
			"state": state, "ticket": ticket, "x" + key: []any{other, map[string]string{other: key}},
			"called_in_wave": wave, "refresh_interval_seconds": max(0, refresh),
		})
		if err != nil {
			t.Fatal(err)
		}
		var a answer
		if err := a.parse(text); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if utf8.ValidString(state) && string(a.state) != state || a.wave != wave {
			t.Errorf("%s: state %q, wave %d", text, a.state, a.wave)
		}
	})
}

func BenchmarkAnswer(b *testing.B) {
	var a answer
	b.SetBytes(int64(len(waitingAnswer)))
	b.ReportAllocs()
	for b.Loop() {
		if err := a.parse([]byte(waitingAnswer)); err != nil {
			b.Fatal(err)
		}
	}
}
