package seal_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/anteroom/anteroom/internal/seal"
)

// publicKey finds the key of that id in a key set, as an origin would.
func publicKey(set []byte, kid any) (*ecdsa.PublicKey, error) {
	var s struct{ Keys []map[string]string }
	if err := json.Unmarshal(set, &s); err != nil {
		return nil, err
	}
	for _, k := range s.Keys {
		if k["kid"] != kid {
			continue
		}
		x, errX := base64.RawURLEncoding.DecodeString(k["x"])
		y, errY := base64.RawURLEncoding.DecodeString(k["y"])
		if errX != nil || errY != nil || k["kty"] != "EC" || k["crv"] != "P-256" || k["alg"] != "ES256" || k["use"] != "sig" {
			return nil, fmt.Errorf("bad key %v", k)
		}
		return ecdsa.ParseUncompressedPublicKey(elliptic.P256(), append(append([]byte{4}, x...), y...))
	}
	return nil, fmt.Errorf("no key %v", kid)
}

// FuzzOpen: no string makes Open panic, and what opens was sealed here.
func FuzzOpen(f *testing.F) {
	r := newRing(f, newClock())
	place, pass := mustTicket(f, r, aTicket("shop")), mustPass(f, r, aPass("shop"))
	f.Add("shop", place)
	f.Add("shop", pass)
	f.Add("", "EQ")
	f.Fuzz(func(t *testing.T, room, s string) {
		if _, err := r.OpenTicket(room, s); err == nil && (room != "shop" || s != place) {
			t.Fatalf("OpenTicket(%q, %q) opens", room, s)
		}
		if _, err := r.OpenPass(room, s); err == nil && (room != "shop" || s != pass) {
			t.Fatalf("OpenPass(%q, %q) opens", room, s)
		}
	})
}

// FuzzMerge: a ring that took keys in exports the same keys.
func FuzzMerge(f *testing.F) {
	c := newClock()
	f.Add(newRing(f, c).Export())
	f.Add([]byte(`{"keys":[]}`))
	f.Add([]byte(`{"keys":[{"id":"0011223344556677","created":"2026-11-21T09:00:00Z","secret":"","signing":""}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := seal.New(seal.Config{Now: c.Now})
		if _, err := r.Merge(b); err != nil {
			return
		}
		again := seal.New(seal.Config{Now: c.Now})
		if _, err := again.Merge(r.Export()); err != nil {
			t.Fatal(err)
		}
		if string(again.Export()) != string(r.Export()) {
			t.Fatal("keys change when they are passed on")
		}
		r.JWKS()
	})
}
