package seal

import (
	"bytes"
	"testing"
)

// FuzzUnpack reads the plain bytes, which only our own keys can have sealed,
// as a stranger might write them: what is read in is written out the same.
func FuzzUnpack(f *testing.F) {
	f.Add(make([]byte, 16+8+8+1+1+3))
	f.Add(make([]byte, 16+8+8+8+1))
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
