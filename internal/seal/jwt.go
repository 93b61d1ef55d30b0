package seal

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/golang-jwt/jwt/v5"

	"github.com/anteroom/anteroom/internal/ticket"
)

// leeway is for origins whose clock is behind, in seconds.
const leeway = 30

// JWT signs p for an origin, which checks it against JWKS. Beside the usual
// claims (aud is the room, sub the ticket's id, the same for all passes of one
// visit) joined_at says since when the visitor was in line. Times are Unix seconds.
func (r *Ring) JWT(p ticket.Pass, issuer string) (string, error) {
	k := r.active()
	if k == nil {
		return "", ErrNoKey
	}
	now := r.c.Now() / 1e6
	id := hex.EncodeToString(p.ID[:])
	t := jwt.NewWithClaims(jwt.SigningMethodES256, jwt.MapClaims{
		"iss": issuer, "aud": p.Room, "sub": id, "jti": fmt.Sprintf("%s-%d", id, p.Expires),
		"joined_at": p.Stamp / 1e6, "iat": now, "nbf": now - leeway, "exp": p.Expires / 1e6,
	})
	t.Header["kid"] = k.name()
	s, err := t.SignedString(k.signing)
	if err != nil {
		return "", fmt.Errorf("seal: sign a pass: %w", err)
	}
	return s, nil
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
