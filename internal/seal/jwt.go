package seal

import (
	"crypto"
	"crypto/sha256"
	"encoding/asn1"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/big"
	"strconv"

	"github.com/anteroom/anteroom/internal/ticket"
)

// leeway is for origins whose clock is behind, in seconds.
const leeway = 30

// JWT signs p for an origin, which checks it against JWKS. Beside the usual
// claims (aud is the room, sub the ticket's id, the same for all passes of one
// visit) joined_at says since when the visitor was in line. Times are Unix seconds.
//
// It is written by hand because everybody who comes in takes one. What it costs
// is the signature.
func (r *Ring) JWT(p ticket.Pass, issuer string) (string, error) {
	k := r.active()
	if k == nil {
		return "", ErrNoKey
	}
	s := r.spare.Get().(*scratch)
	defer r.spare.Put(s)
	s.plain = appendClaims(s.plain[:0], p, issuer, r.c.Now()/1e6)
	s.text = append(append(s.text[:0], k.header...), '.')
	s.text = base64.RawURLEncoding.AppendEncode(s.text, s.plain)
	signature, err := k.sign(s.text)
	if err != nil {
		return "", fmt.Errorf("seal: sign a pass: %w", err)
	}
	s.text = base64.RawURLEncoding.AppendEncode(append(s.text, '.'), signature[:])
	return string(s.text), nil
}

// jwtHeader is the same for everything that a key signs.
func (k *key) jwtHeader() string {
	return base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"ES256","kid":"` + k.name() + `","typ":"JWT"}`))
}

func appendClaims(b []byte, p ticket.Pass, issuer string, now int64) []byte {
	b = appendText(append(b, `{"aud":`...), p.Room)
	b = strconv.AppendInt(append(b, `,"exp":`...), p.Expires/1e6, 10)
	b = strconv.AppendInt(append(b, `,"iat":`...), now, 10)
	b = appendText(append(b, `,"iss":`...), issuer)
	b = strconv.AppendUint(append(b, `,"joined_at":`...), p.Stamp/1e6, 10)
	b = hex.AppendEncode(append(b, `,"jti":"`...), p.ID[:])
	b = strconv.AppendInt(append(b, '-'), p.Expires, 10)
	b = strconv.AppendInt(append(b, `","nbf":`...), now-leeway, 10)
	b = hex.AppendEncode(append(b, `,"sub":"`...), p.ID[:])
	return append(b, `"}`...)
}

func appendText(b []byte, s string) []byte {
	text, _ := json.Marshal(s) // a string
	return append(b, text...)
}

// sign makes the signature of ES256: SHA-256, P-256, and the two numbers beside
// one another (RFC 7518, section 3.4). It is deterministic (RFC 6979): that needs
// no randomness to be safe, and takes three quarters of the time.
func (k *key) sign(text []byte) (raw [64]byte, err error) {
	sum := sha256.Sum256(text)
	der, err := k.signing.Sign(nil, sum[:], crypto.SHA256)
	if err != nil {
		return raw, err
	}
	var n struct{ R, S *big.Int }
	if _, err := asn1.Unmarshal(der, &n); err != nil {
		return raw, err
	}
	n.R.FillBytes(raw[:32])
	n.S.FillBytes(raw[32:])
	return raw, nil
}

type jwk struct {
	Type  string `json:"kty"`
	Curve string `json:"crv"`
	Use   string `json:"use"`
	Alg   string `json:"alg"`
	ID    string `json:"kid"`
	X     string `json:"x"`
	Y     string `json:"y"`
}

// JWKS returns the public keys as a JSON Web Key Set (RFC 7517).
func (r *Ring) JWKS() []byte {
	set := struct {
		Keys []jwk `json:"keys"`
	}{[]jwk{}}
	for _, k := range *r.keys.Load() {
		point, err := k.signing.PublicKey.Bytes() // 4, X, Y
		if err != nil {
			panic(fmt.Sprintf("seal: key %s does not encode: %v", k.name(), err))
		}
		enc := base64.RawURLEncoding.EncodeToString
		set.Keys = append(set.Keys, jwk{"EC", "P-256", "sig", "ES256", k.name(), enc(point[1:33]), enc(point[33:65])})
	}
	b, err := json.Marshal(set)
	if err != nil {
		panic(fmt.Sprintf("seal: public keys do not encode: %v", err)) // strings only
	}
	return b
}
