package server_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// The key comes from each node's own file, and the room from the cluster.
func TestAJoinTakesATokenAtEveryNode(t *testing.T) {
	const key = "0123456789abcdef0123456789abcdef"
	r := newRig(t, 5)
	file := fmt.Sprintf(rigFile, r.origin.URL, r.limit) + "security: {challenge_key: " + key + "}\n"
	first := r.startWith(strings.Replace(file, "ticket_ttl: 1m", "ticket_ttl: 1m, challenge: 'https://captcha.example.com/'", 1), 2, 0)
	nodes := []*member{first, r.startWith(file[:strings.Index(file, "rooms:")]+"rooms: []\nsecurity: {challenge_key: "+key+"}\n", 2, 0)}
	join := func(m *member, token string) (int, string) {
		q, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+m.Addresses().Gateway+"/_anteroom/v1/rooms/shop/join", nil)
		if err != nil {
			t.Fatal(err)
		}
		q.Header.Set("Anteroom-Challenge", token)
		a, err := http.DefaultClient.Do(q)
		if err != nil {
			return 0, err.Error()
		}
		defer func() { _ = a.Body.Close() }()
		b, err := io.ReadAll(a.Body)
		if err != nil {
			return 0, err.Error()
		}
		return a.StatusCode, string(b)
	}
	for i, m := range nodes {
		text := fmt.Sprintf(`{"room":"shop","exp":%d,"id":"0123456789abcdef-%d"}`, time.Now().Unix()+300, i)
		h := hmac.New(sha256.New, []byte(key))
		h.Write([]byte(text))
		token := base64.RawURLEncoding.EncodeToString([]byte(text)) + "." + base64.RawURLEncoding.EncodeToString(h.Sum(nil))
		status, body := 0, ""
		for end := time.Now().Add(15 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) { // until it has the room
			if status, body = join(m, ""); status == 403 {
				break
			}
		}
		if status != 403 || !strings.Contains(body, `"challenge_url":"https://captcha.example.com/"`) {
			t.Fatalf("%s: without a token: %d %s", m.id, status, body)
		}
		for status = 0; status != 201; time.Sleep(100 * time.Millisecond) {
			if status, body = join(m, token); status != 201 && status != 503 || t.Context().Err() != nil {
				t.Fatalf("%s: with a token: %d %s", m.id, status, body)
			}
		}
		if status, body = join(m, token); status != 403 {
			t.Errorf("%s: again: %d %s", m.id, status, body)
		}
		if strings.Contains(m.log.String(), key) {
			t.Errorf("%s has logged the key", m.id)
		}
	}
}
