package store_test

import (
	"encoding/json"
	"fmt"
	"hash/crc32"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// FuzzLoad: no file makes Load panic, and what it takes comes back the same
// once it is saved. Half of the inputs have a good checksum, so that the record
// behind it is read as well.
func FuzzLoad(f *testing.F) {
	b, err := json.Marshal(record())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b, true)
	f.Add([]byte(`{"rooms":[{"room":{"name":"shop"}}],"voters":null}`), true)
	f.Add([]byte(`null`), true)
	f.Add([]byte(`{"format":1,"crc32":0}`), false)
	f.Add([]byte(`{"format":2}`), false)
	f.Fuzz(func(t *testing.T, b []byte, summed bool) {
		s := open(t, t.TempDir())
		if summed {
			b = fmt.Appendf(nil, `{"format":1,"crc32":%d,"record":%s}`, crc32.ChecksumIEEE(b), b)
		}
		if err := os.WriteFile(s.Path("state.json"), b, 0o600); err != nil {
			t.Fatal(err)
		}
		first, err := s.Load()
		if err != nil {
			return
		}
		if err := s.Save(first); err != nil {
			t.Fatal(err)
		}
		second, err := s.Load()
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(first, second); d != "" {
			t.Fatalf("(-loaded +saved and loaded):\n%s", d)
		}
	})
}
