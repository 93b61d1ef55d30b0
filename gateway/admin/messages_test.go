package admin_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom/gateway"
	"github.com/anteroom/anteroom/gateway/admin"
)

// Messages stand in the order of their times. One more than there may be takes the
// place of the oldest that has been read; none that nobody has read is lost.
func TestMessagesAreBounded(t *testing.T) {
	d := aDesk()
	post := func(body string) (status int, texts []string) {
		t.Helper()
		w := ask(admin.Config{Source: aNode(), Operator: d}, "POST", "/v1/rooms/shop/messages", body)
		var room struct {
			Code     string
			Messages []gateway.Message
		}
		if err := json.Unmarshal(w.Body.Bytes(), &room); err != nil {
			t.Fatal(err)
		}
		for _, m := range room.Messages {
			texts = append(texts, m.Text)
		}
		return w.Code, append(texts, room.Code)
	}
	before := time.Now().Add(-time.Second)
	if status, _ := post(`{"text":"read"}`); status != http.StatusOK {
		t.Fatalf("status %d", status)
	}
	var first struct{ Messages []gateway.Message }
	if err := json.Unmarshal([]byte(d.keys), &first); err != nil || first.Messages[0].At.Before(before) || first.Messages[0].At.After(time.Now()) {
		t.Errorf("a message without a time: %s (%v)", d.keys, err)
	}
	for i := 9; i >= 1; i-- {
		post(fmt.Sprintf(`{"text":"%d","at":"2126-11-27T18:0%d:00Z"}`, i, i))
	}
	for _, c := range []struct {
		body, want string
		status     int
	}{
		{`{"text":"older than all","at":"2025-11-27T18:00:00Z"}`, "messages_full", 409},
		{`{"text":"now"}`, "now 1 2 3 4 5 6 7 8 9 ", 200},
		{`{"text":"10","at":"2126-11-27T18:10:00Z"}`, "1 2 3 4 5 6 7 8 9 10 ", 200},
		{`{"text":"11","at":"2126-11-27T18:11:00Z"}`, "messages_full", 409},
	} {
		status, got := post(c.body)
		if all := strings.Join(got, " "); status != c.status || all != c.want {
			t.Errorf("%s: %d %q, want %d %q", c.body, status, all, c.status, c.want)
		}
	}
}
