package challenge

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/ticket"
)

const (
	key = "0123456789abcdef0123456789abcdef"
	now = int64(1_800_000_000)
)

func sign(key, text string) string {
	h := hmac.New(sha256.New, []byte(key))
	h.Write([]byte(text))
	return base64.RawURLEncoding.EncodeToString([]byte(text)) + "." + base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}

func token(room string, exp int64, id string) string {
	return sign(key, fmt.Sprintf(`{"room":%q,"exp":%d,"id":%q}`, room, exp, id))
}

// asking is a table of the room shop, at the moment that clock says.
func asking(key string, clock *int64) *Table {
	t := New(key, func() int64 { return *clock * 1e6 })
	t.SetRooms(map[string]string{"shop": "https://captcha.example.com/"})
	return t
}

func TestWhichTokensAreGood(t *testing.T) {
	const id = "0123456789abcdef"
	for name, c := range map[string]struct{ key, token, reason string }{
		"good":              {key, token("shop", now+300, id), ""},
		"none":              {key, "", "missing"},
		"of another room":   {key, token("news", now+300, id), "invalid"},
		"just expired":      {key, token("shop", now, id), "expired"},
		"good for too long": {key, token("shop", now+602, id), "invalid"},
		"of another key":    {strings.Repeat("x", 32), token("shop", now+300, id), "invalid"},
		"without a key":     {"", sign("", `{"room":"shop","exp":1800000300,"id":"`+id+`"}`), "invalid"},
		"of a short key":    {"short", sign("short", `{"room":"shop","exp":1800000300,"id":"`+id+`"}`), "invalid"},
		"a short id":        {key, token("shop", now+300, id[1:]), "invalid"},
		"a long id":         {key, token("shop", now+300, strings.Repeat("a", 65)), "invalid"},
		"a strange id":      {key, token("shop", now+300, id+" "), "invalid"},
		"changed":           {key, "x" + token("shop", now+300, id), "invalid"},
		"no signature":      {key, strings.Split(token("shop", now+300, id), ".")[0] + ".", "invalid"},
		"padded":            {key, token("shop", now+300, id) + "=", "invalid"},
		"not JSON":          {key, sign(key, "shop"), "invalid"},
		"too long":          {key, sign(key, strings.Repeat(" ", 1000)+"{}"), "invalid"},
	} {
		clock := now
		_, err := asking(c.key, &clock).Spend("shop", c.token)
		var e *Error
		if errors.As(err, &e); c.reason == "" && err != nil || c.reason != "" && (e == nil || e.Reason != c.reason || e.URL == "" || e.Full()) {
			t.Errorf("%s: %v, want %q", name, err, c.reason)
		}
	}
}

func TestATokenIsSpentOnce(t *testing.T) {
	clock := now
	table := asking(key, &clock)
	one := token("shop", now+300, "0123456789abcdef")
	for _, busy := range []bool{true, false} {
		settle, err := table.Spend("shop", one)
		if err != nil {
			t.Fatal(err)
		}
		if settle(nil); busy {
			settle(ticket.ErrBusy) // then it is as good as before
		} else {
			settle(context.Canceled) // there may be a place
		}
	}
	var e *Error
	if _, err := table.Spend("shop", one); !errors.As(err, &e) || e.Reason != "used" {
		t.Error(err)
	}
	var none *Table
	if _, err := none.Spend("shop", ""); err != nil {
		t.Error(err)
	}
	if _, err := table.Spend("news", ""); err != nil {
		t.Error(err)
	}
}

// A full memory forgets nothing that is still good: whoever comes then waits.
func TestAFullMemoryRefuses(t *testing.T) {
	clock := now
	table := asking(key, &clock)
	for i := range spentMax {
		table.spent[fmt.Sprintf("0123456789-%08d", i)] = (now + 60) * 1e6
	}
	spend := func(id string) error {
		_, err := table.Spend("shop", token("shop", now+300, id))
		return err
	}
	var e *Error
	if err := spend("0123456789abcdef"); !errors.As(err, &e) || !e.Full() || len(table.spent) != spentMax {
		t.Fatalf("%v, of %d", err, len(table.spent))
	}
	clock += int64(time.Minute / time.Second)
	if err := spend("0123456789abcdef"); err != nil || len(table.spent) != 1 {
		t.Fatalf("a minute later: %v, of %d", err, len(table.spent))
	}
}

// FuzzToken: whatever is opened was signed, and nothing panics.
func FuzzToken(f *testing.F) {
	f.Add(token("shop", now, "0123456789abcdef"), `{"room":"shop","exp":1,"id":"0123456789abcdef"}`)
	f.Add("a.b", `{"room":4}`)
	f.Add("", "")
	f.Fuzz(func(t *testing.T, s, text string) {
		if p, err := parse([]byte(key), s); err == nil {
			body, _, _ := strings.Cut(s, ".")
			b, err := base64.RawURLEncoding.DecodeString(body)
			if err != nil || sign(key, string(b)) != s || !validID(p.ID) {
				t.Fatalf("%q passes: %+v", s, p)
			}
		}
		if p, err := parse([]byte(key), sign(key, text)); err == nil && !validID(p.ID) {
			t.Fatalf("%q passes: %+v", text, p)
		}
	})
}
