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

// FuzzUnpack reads the plain bytes, which only our own keys can have sealed,
// as a stranger might write them: what is read in is written out the same.
func FuzzUnpack(f *testing.F) {
	f.Add(make([]byte, 16+8+8+1+1+3))
	f.Add(make([]byte, 16+8+8+8+1))
	f.Add(packPass(nil, ticket.Pass{Expires: 7, Started: 3}))
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
