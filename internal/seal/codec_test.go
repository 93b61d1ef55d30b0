package seal

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/ticket"
)

// A pass tells when its visit began only where that matters: all others are as
// they were before there was a session_max, and those of then can be read.
func TestAPassWithoutAStartIsAsItEverWas(t *testing.T) {
	p := ticket.Pass{
		Room: "shop", ID: [16]byte{1, 15: 9}, Stamp: 2, Expires: 3,
		Home: eviction.Account{Member: eviction.Member{Name: "n", Boot: 5}, Born: 4},
	}
	old := []byte{
		1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9, // id
		0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 4, // stamp, expires, born
		1, 'n', 0, 0, 0, 0, 0, 0, 0, 5, // home
	}
	if diff := cmp.Diff(old, packPass(nil, p)); diff != "" {
		t.Errorf("packed (-want +got):\n%s", diff)
	}
	if got, ok := unpackPass("shop", old); !ok || got != p {
		t.Errorf("read as %+v, %v", got, ok)
	}
	p.Started = 6
	if got, ok := unpackPass("shop", packPass(nil, p)); !ok || got != p {
		t.Errorf("with a start it is read as %+v, %v", got, ok)
	}
}

// Tickets that were sealed before missed calls were counted have nothing behind
// their former homes, and neither has one that missed none.
func TestTicketsSealedBeforeCallsWereCountedOpen(t *testing.T) {
	old := ticket.Ticket{Room: "shop", Stamp: 7, Home: eviction.Member{Name: "a", Boot: 1}, Issued: 9, Position: 3}
	b := packTicket(nil, old)
	if n := 16 + 8 + 8 + 1 + 1 + (1 + 1 + 8) + 1 + 1; len(b) != n {
		t.Errorf("%d bytes, want %d as before", len(b), n)
	}
	if got, ok := unpackTicket("shop", b); !ok || got != old {
		t.Errorf("opened as %+v, %t", got, ok)
	}
	for _, counted := range []ticket.Ticket{{Room: "shop", Missed: 7}, {Room: "shop", Slept: 255}, {Room: "shop", Missed: 3, Slept: 9, Anew: true}, {Room: "shop", Anew: true}, {Room: "shop", Missed: 200, Anew: true}, {Room: "shop", Hand: 1}, {Room: "shop", Hand: 255, Slept: 14, Missed: 2}} {
		if got, ok := unpackTicket("shop", packTicket(nil, counted)); !ok || got != counted {
			t.Errorf("%+v opened as %+v, %t", counted, got, ok)
		}
	}
}

// FuzzUnpack reads the plain bytes, which only our own keys can have sealed,
// as a stranger might write them: what is read in is written out the same.
func FuzzUnpack(f *testing.F) {
	f.Add(make([]byte, 16+8+8+1+1+3))
	f.Add(make([]byte, 16+8+8+8+1))
	f.Add(packPass(nil, ticket.Pass{Expires: 7, Started: 3}))
	f.Add(packTicket(nil, ticket.Ticket{Room: "shop", Missed: 5, Slept: 2, Anew: true}))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		if x, ok := unpackTicket("shop", b); ok {
			if y, ok := unpackTicket("shop", packTicket(nil, x)); !ok || y != x {
				t.Fatalf("%+v became %+v", x, y)
			}
		}
		if x, ok := unpackPass("shop", b); ok {
			if out := packPass(nil, x); !bytes.Equal(out, b) && len(out) > len(b) {
				t.Fatalf("%+v grew from %d to %d bytes", x, len(b), len(out))
			}
		}
	})
}
