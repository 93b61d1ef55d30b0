package gateway

import (
	"crypto/tls"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// FuzzForeign: what is not for origins is known in every spelling.
func FuzzForeign(f *testing.F) {
	for _, name := range []string{
		"X-Anteroom-Pass", "x_anteroom-pass", "ANTEROOM_COMMAND", "Anteroom-", "Anteroom", "Forwarded", "forwarded-for", "X-Real-IP", "X_real-ip",
		"X-Forwarded-For", "x-forwarded-a_b", "X-Forwarded", "Content_Length", "T_e", "TE", "_", "", "Cookie", "x-custom",
	} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if strings.ContainsFunc(name, func(r rune) bool { return r > '~' }) {
			return // net/http refuses it
		}
		dashed := strings.ToLower(strings.ReplaceAll(name, "_", "-"))
		mine := strings.HasPrefix(dashed, "x-anteroom-") || strings.HasPrefix(dashed, "anteroom-")
		says := dashed == "forwarded" || dashed == "x-real-ip" || strings.HasPrefix(dashed, "x-forwarded-")
		alike := dashed != strings.ToLower(name) && (says || slices.Contains([]string{
			"authorization", "connection", "content-length", "cookie", "host", "te", "trailer", "transfer-encoding", "upgrade",
		}, dashed))
		if got, want := foreign(name, false), mine || alike || says; got != want {
			t.Errorf("foreign(%q) = %v, want %v", name, got, want)
		}
		if got, want := foreign(name, true), mine || alike; got != want {
			t.Errorf("from a trusted proxy foreign(%q) = %v, want %v", name, got, want)
		}
		if got := isOurName(name); got != mine {
			t.Errorf("isOurName(%q) = %v, want %v", name, got, mine)
		}
	})
}

// deadlines is a writer that notes them, and can fail.
type deadlines struct {
	http.ResponseWriter
	set    []time.Duration // from when the test began; negative: lifted
	began  time.Time
	broken error
}

func (d *deadlines) SetWriteDeadline(t time.Time) error {
	if t.IsZero() {
		d.set = append(d.set, -1)
	} else {
		d.set = append(d.set, t.Sub(d.began))
	}
	return nil
}

func (d *deadlines) Write(b []byte) (int, error) { return len(b), d.broken }

func TestADeadlineIsSetAsOftenAsItTakes(t *testing.T) {
	const within = 64 * time.Second
	for what, c := range map[string]struct {
		major int
		tls   *tls.ConnectionState
		want  []time.Duration
	}{
		"HTTP/1":          {1, nil, []time.Duration{-1, 64 * time.Second, 65 * time.Second}},
		"HTTP/1 over TLS": {1, &tls.ConnectionState{}, []time.Duration{-1, 64e9, -1, 64e9, -1, 64999e6, -1, 65e9, -1, 65e9}},
		"HTTP/2":          {2, nil, []time.Duration{-1, 64e9, -1, 64e9, -1, 64999e6, -1, 65e9, -1, 65e9}},
	} {
		synctest.Test(t, func(t *testing.T) {
			d := &deadlines{ResponseWriter: httptest.NewRecorder(), began: time.Now()}
			p := pace(d, &http.Request{ProtoMajor: c.major, TLS: c.tls}, within)
			for _, pause := range []time.Duration{0, 0, 999 * time.Millisecond, time.Millisecond} {
				time.Sleep(pause)
				_, _ = p.Write([]byte("x"))
			}
			p.hold()
			if !slices.Equal(d.set, c.want) {
				t.Errorf("%s: %v, want %v", what, d.set, c.want)
			}
		})
	}
}

// The frame of HTTP/2 that a write was about may still be on its way.
func TestABufferOfAFailedWriteIsNotUsedAgain(t *testing.T) {
	g := &Gateway{}
	d := &deadlines{ResponseWriter: httptest.NewRecorder()}
	f := &forwarding{call: &call{g: g}, paced: pace(d, &http.Request{ProtoMajor: 2}, time.Minute)}
	b := f.Get()
	if _, err := f.paced.Write(b); err != nil {
		t.Fatal(err)
	}
	d.broken = errors.New("reset")
	if _, err := f.paced.Write(b); err == nil {
		t.Fatal("the write did not fail")
	}
	d.broken = nil
	_, _ = f.paced.Write(b)
	f.Put(b)
	for range 100 {
		if other := f.Get(); &other[0] == &b[0] {
			t.Fatal("it is used again")
		}
	}
}
