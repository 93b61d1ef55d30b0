package waitingroom_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/anteroom/anteroom/internal/challenge"
	anteroomv1 "github.com/anteroom/anteroom/proto/anteroom/v1"
	"github.com/anteroom/anteroom/proto/waitingroom"
)

func TestAJoinTakesAToken(t *testing.T) {
	const key = "0123456789abcdef0123456789abcdef"
	q := shop()
	table := challenge.New(key, q.Clock)
	table.SetRooms(map[string]string{"shop": "https://captcha.example.com/"})
	s := waitingroom.New(waitingroom.Config{Queue: q, Sealer: sealer{}, Challenges: table})
	defer s.Close()
	q.will(waiting(4), nil)
	text := fmt.Sprintf(`{"room":"shop","exp":%d,"id":"0123456789abcdef"}`, q.Clock()/1e6+300)
	h := hmac.New(sha256.New, []byte(key))
	h.Write([]byte(text))
	token := base64.RawURLEncoding.EncodeToString([]byte(text)) + "." + base64.RawURLEncoding.EncodeToString(h.Sum(nil))
	for i, c := range []struct {
		token string
		good  bool
	}{{"", false}, {token + "x", false}, {token, true}, {token, false}} {
		_, err := s.Join(metadata.NewIncomingContext(t.Context(), metadata.Pairs("anteroom-challenge", c.token)), &anteroomv1.JoinRequest{Room: "shop"})
		if c.good != (err == nil) {
			t.Fatalf("%d: %v", i, err)
		}
		if reason, _ := detailsOf(t, err); !c.good && (status.Code(err) != codes.PermissionDenied || reason != "challenge_required") {
			t.Errorf("%d: %v", i, err)
		}
	}
	if _, err := s.CheckIn(t.Context(), &anteroomv1.CheckInRequest{Room: "shop", Ticket: "t:shop:3"}); err != nil {
		t.Errorf("who has a place is asked: %v", err)
	}
}
