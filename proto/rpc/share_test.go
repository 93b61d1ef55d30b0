package rpc

import (
	"context"
	"log/slog"
	"net"
	"testing"

	"google.golang.org/grpc/peer"

	"github.com/anteroom/anteroom/internal/tokens"
)

// An address, a household, a token, and all together have so many calls under way
// at a time and no more, and whoever has not reached that has others.
func TestEachHasAShareOfTheCallsUnderWay(t *testing.T) {
	one, two, three := &tokens.Token{Name: "one"}, &tokens.Token{Name: "two"}, &tokens.Token{Name: "three"}
	type call struct {
		from  string
		token *tokens.Token
	}
	for what, test := range map[string]struct {
		calls []call // which take turns
		most  int
		full  []call // may have no more then
		free  []call // may
	}{
		"an IPv4 address": {
			[]call{{"198.51.100.7", one}, {"198.51.100.7", two}},
			callsAddress,
			[]call{{"198.51.100.7", three}, {"::ffff:198.51.100.7", one}},
			[]call{{"198.51.100.8", one}, {"127.0.0.1", one}},
		},
		"a household": {
			[]call{{"2001:db8::7", one}, {"2001:db8::8", two}},
			callsAddress,
			[]call{{"2001:db8::9", three}},
			[]call{{"2001:db8:0:1::7", one}},
		},
		"a token": {
			[]call{{"127.0.0.1", one}},
			callsToken,
			[]call{{"127.0.0.1", one}, {"198.51.100.7", one}},
			[]call{{"127.0.0.1", two}},
		},
		"all": {
			[]call{{"127.0.0.1", one}, {"::1", two}},
			callsAll,
			[]call{{"127.0.0.1", three}, {"198.51.100.7", three}},
			nil,
		},
	} {
		t.Run(what, func(t *testing.T) {
			g := NewGuard(tokens.NewSet(nil), slog.New(slog.DiscardHandler))
			admit := func(c call) (func(), bool) {
				return g.admit(peer.NewContext(t.Context(), &peer.Peer{Addr: &net.TCPAddr{IP: net.ParseIP(c.from), Port: 1}}), c.token)
			}
			var leave []func()
			for i := range test.most {
				done, ok := admit(test.calls[i%len(test.calls)])
				if !ok {
					t.Fatalf("after %d calls there may be no more, want %d", i, test.most)
				}
				leave = append(leave, done)
			}
			for _, c := range test.full {
				if _, ok := admit(c); ok {
					t.Errorf("%s with token %s has a call beyond %d", c.from, c.token.Name, test.most)
				}
			}
			for _, c := range test.free {
				done, ok := admit(c)
				if !ok {
					t.Fatalf("%s with token %s may have none", c.from, c.token.Name)
				}
				done()
			}
			for _, done := range leave {
				done()
			}
			if g.all != 0 || len(g.byAddress) != 0 {
				t.Errorf("%d calls and %d addresses are counted after all are over", g.all, len(g.byAddress))
			}
			if _, ok := admit(test.full[0]); !ok {
				t.Error("calls that are over still count")
			}
		})
	}
	if _, ok := NewGuard(tokens.NewSet(nil), slog.New(slog.DiscardHandler)).admit(context.Background(), one); !ok {
		t.Error("a call by no network is refused")
	}
}
