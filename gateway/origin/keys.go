package origin

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

const (
	fetchWithin = 5 * time.Second
	setMax      = 64 << 10 // bytes of a key set
	keysMax     = 64       // in it
)

// errUnknownKey is a pass signed with a key that the cluster does not have.
var errUnknownKey = errors.New("signed with a key that is not known")

// keys are the cluster's public keys, by their ids.
type keys struct {
	c  Config
	mu sync.Mutex
	// set is replaced as a whole: a key that the cluster has dropped is not good
	// any more.
	set     map[string]*ecdsa.PublicKey
	fetched time.Time     // when set was
	tried   time.Time     // when a fetch was begun last, whether or not it went well
	busy    chan struct{} // closed at the end of the one under way; nil: there is none
	failed  error         // why the last one did; nil: it did not
}

func newKeys(c Config) *keys { return &keys{c: c} }

// named returns the key with an id. It waits for the keys to be fetched if the
// id is not known; the age of those that are delays nobody.
func (k *keys) named(ctx context.Context, id string) (*ecdsa.PublicKey, error) {
	key, busy, err := k.look(id)
	if busy == nil {
		return key, err
	}
	select {
	case <-busy:
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %w", ErrNoKeys, ctx.Err())
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.known(id)
}

// look returns the key, or what to wait for.
func (k *keys) look(id string) (*ecdsa.PublicKey, <-chan struct{}, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.c.Now()
	key, err := k.known(id)
	if err != nil || now.Sub(k.fetched) >= k.c.Refresh {
		if k.busy == nil && (k.tried.IsZero() || now.Sub(k.tried) >= k.c.Every) {
			k.tried, k.busy = now, make(chan struct{})
			go k.fetch()
		}
	}
	if err != nil && k.busy != nil {
		return nil, k.busy, nil
	}
	return key, nil, err
}

// known needs the lock.
func (k *keys) known(id string) (*ecdsa.PublicKey, error) {
	if k.set == nil || k.c.Now().Sub(k.fetched) >= k.c.Keep {
		if k.failed != nil {
			return nil, fmt.Errorf("%w: %w", ErrNoKeys, k.failed)
		}
		return nil, ErrNoKeys
	}
	switch key := k.set[id]; {
	case key != nil:
		return key, nil
	case k.failed != nil: // it may be a new one
		return nil, fmt.Errorf("%w: %w", ErrNoKeys, k.failed)
	default:
		return nil, errUnknownKey
	}
}

// fetch gets the keys. Many requests may wait for it, so it is none of theirs.
func (k *keys) fetch() {
	ctx, cancel := context.WithTimeout(context.Background(), fetchWithin)
	defer cancel()
	set, err := k.get(ctx)
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.failed = err; err == nil {
		k.set, k.fetched = set, k.c.Now()
	}
	close(k.busy)
	k.busy = nil
}

func (k *keys) get(ctx context.Context) (map[string]*ecdsa.PublicKey, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, k.c.JWKS, nil)
	if err != nil {
		return nil, err
	}
	res, err := k.c.Client.Do(r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers with status %d", k.c.JWKS, res.StatusCode)
	}
	b, err := io.ReadAll(io.LimitReader(res.Body, setMax+1))
	if err != nil {
		return nil, err
	}
	return parseSet(b)
}

// parseSet reads a JSON Web Key Set (RFC 7517). Keys of other kinds are left
// out, as it says. A set without any of ours is an error: a node that has no
// keys yet must not make us forget those of the others.
func parseSet(b []byte) (map[string]*ecdsa.PublicKey, error) {
	var doc struct {
		Keys []struct {
			Type  string `json:"kty"`
			Curve string `json:"crv"`
			Use   string `json:"use"`
			Alg   string `json:"alg"`
			ID    string `json:"kid"`
			X     string `json:"x"`
			Y     string `json:"y"`
		} `json:"keys"`
	}
	if len(b) > setMax {
		return nil, fmt.Errorf("the key set is over %d bytes", setMax)
	}
	if err := json.Unmarshal(b, &doc); err != nil {
		return nil, fmt.Errorf("the key set is not JSON: %w", err)
	}
	set := make(map[string]*ecdsa.PublicKey)
	for _, j := range doc.Keys[:min(len(doc.Keys), keysMax)] {
		if j.Type != "EC" || j.Curve != "P-256" || j.ID == "" || j.Use != "" && j.Use != "sig" || j.Alg != "" && j.Alg != "ES256" {
			continue
		}
		key, err := point(j.X, j.Y)
		if err != nil {
			return nil, fmt.Errorf("the key %q: %w", j.ID, err)
		}
		set[j.ID] = key
	}
	if len(set) == 0 {
		return nil, errors.New("the key set has no key for ES256")
	}
	return set, nil
}

// point reads the two coordinates of a key on P-256.
func point(x, y string) (*ecdsa.PublicKey, error) {
	b := []byte{4} // not compressed
	for _, s := range []string{x, y} {
		n, err := base64.RawURLEncoding.DecodeString(s)
		if err != nil || len(n) != 32 {
			return nil, errors.New("a coordinate is not 32 bytes in base64url")
		}
		b = append(b, n...)
	}
	return ecdsa.ParseUncompressedPublicKey(elliptic.P256(), b)
}
