package seal_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/seal"
	"github.com/anteroom/anteroom/internal/ticket"
	"github.com/anteroom/anteroom/qpid"
)

// clock is time that a test moves by hand, in Unix microseconds.
type clock struct {
	mu  sync.Mutex
	now int64
}

func (c *clock) Now() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now += d.Microseconds()
}

func newClock() *clock { return &clock{now: time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC).UnixMicro()} }

func newRing(t testing.TB, c *clock) *seal.Ring {
	t.Helper()
	r := seal.New(seal.Config{Now: c.Now})
	if err := r.Rotate(); err != nil {
		t.Fatal(err)
	}
	return r
}

func aTicket(room string) ticket.Ticket {
	return ticket.Ticket{
		Room: room, ID: qpid.ItemID{1, 2, 3, 15: 9}, Stamp: 1_795_252_800_123_456, Gen: 2, Position: 417, Issued: 1_795_252_801_000_000,
		Home: eviction.Member{Name: "node-1", Boot: 77}, Past: ticket.Homes{{Name: "node-2", Boot: 5}},
	}
}

func aPass(room string) ticket.Pass {
	return ticket.Pass{
		Room: room, ID: qpid.ItemID{1, 2, 3, 15: 9}, Stamp: 1_795_252_800_123_456, Expires: 1_795_253_100_000_000,
		Home: eviction.Account{Member: eviction.Member{Name: "node-1", Boot: 77}, Born: 31},
	}
}

func mustTicket(t testing.TB, r *seal.Ring, x ticket.Ticket) string {
	t.Helper()
	s, err := r.Ticket(x)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func mustPass(t testing.TB, r *seal.Ring, x ticket.Pass) string {
	t.Helper()
	s, err := r.Pass(x)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestWhatIsSealedOpensAgain(t *testing.T) {
	ring := newRing(t, newClock())
	member := rapid.Custom(func(t *rapid.T) eviction.Member {
		if rapid.Bool().Draw(t, "nobody") {
			return eviction.Member{}
		}
		return eviction.Member{Name: qpid.NodeID(rapid.StringN(1, -1, 255).Draw(t, "name")), Boot: rapid.Uint64().Draw(t, "boot")}
	})
	id := rapid.Custom(func(t *rapid.T) qpid.ItemID {
		return qpid.ItemID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "id"))
	})
	rapid.Check(t, func(t *rapid.T) {
		room := rapid.String().Draw(t, "room")
		in := ticket.Ticket{
			Room: room, ID: id.Draw(t, "id"), Stamp: rapid.Uint64().Draw(t, "stamp"), Home: member.Draw(t, "home"),
			Gen: rapid.Uint32().Draw(t, "gen"), Past: ticket.Homes{member.Draw(t, "past"), member.Draw(t, "earlier")},
			Position: rapid.Uint32().Draw(t, "position"), Issued: rapid.Int64().Draw(t, "issued"),
		}
		s, err := ring.Ticket(in)
		if err != nil {
			t.Fatal(err)
		}
		if out, err := ring.OpenTicket(room, s); err != nil || out != in {
			t.Fatalf("OpenTicket = %+v, %v; want %+v", out, err, in)
		}
		p := ticket.Pass{
			Room: room, ID: in.ID, Stamp: in.Stamp, Expires: in.Issued,
			Home: eviction.Account{Member: in.Home, Born: rapid.Uint64().Draw(t, "born")}, Started: rapid.Int64().Draw(t, "started"),
		}
		if s, err = ring.Pass(p); err != nil {
			t.Fatal(err)
		}
		if out, err := ring.OpenPass(room, s); err != nil || out != p {
			t.Fatalf("OpenPass = %+v, %v; want %+v", out, err, p)
		}
	})
}

func TestOnlyTheRightStringOpens(t *testing.T) {
	c := newClock()
	ring, other := newRing(t, c), newRing(t, c)
	place, pass := mustTicket(t, ring, aTicket("shop")), mustPass(t, ring, aPass("shop"))
	refused := map[string]string{
		"empty":                 "",
		"a pass":                pass,
		"of another cluster":    mustTicket(t, other, aTicket("shop")),
		"of another room":       mustTicket(t, ring, aTicket("shoppe")),
		"cut off":               place[:len(place)-1],
		"longer":                place + "A",
		"with padding":          place + "=",
		"with a line break":     place[:40] + "\n" + place[40:],
		"in the other alphabet": strings.NewReplacer("-", "+", "_", "/").Replace(place) + "+",
		"huge":                  strings.Repeat(place, 100),
	}
	raw, err := base64.RawURLEncoding.DecodeString(place)
	if err != nil {
		t.Fatal(err)
	}
	for i := range raw {
		b := append([]byte(nil), raw...)
		b[i] ^= 0x40
		refused["with a byte changed at "+string(rune('A'+i))] = base64.RawURLEncoding.EncodeToString(b)
	}
	for name, s := range refused {
		if _, err := ring.OpenTicket("shop", s); !errors.Is(err, seal.ErrInvalid) {
			t.Errorf("a ticket %s: %v, want ErrInvalid", name, err)
		}
	}
	if _, err := ring.OpenPass("shop", place); !errors.Is(err, seal.ErrInvalid) {
		t.Errorf("a ticket opened as a pass: %v", err)
	}
	if _, err := ring.OpenPass("shoppe", pass); !errors.Is(err, seal.ErrInvalid) {
		t.Errorf("a pass opened for another room: %v", err)
	}
	if strings.Contains(place, "node-1") {
		t.Error("a sealed ticket can be read")
	}
	next := aTicket("shop")
	next.Position++
	if place != mustTicket(t, ring, aTicket("shop")) || place[:40] == mustTicket(t, ring, next)[:40] {
		t.Error("the same ticket is not the same string, or another begins like it")
	}
}

func TestANewKeyWaitsUntilItHasSettled(t *testing.T) {
	c := newClock()
	a := newRing(t, c)
	b := seal.New(seal.Config{Now: c.Now})
	if _, err := b.Merge(a.Export()); err != nil {
		t.Fatal(err)
	}
	old := a.Keys()[0].ID
	c.pass(time.Hour)
	if err := a.Rotate(); err != nil {
		t.Fatal(err)
	}
	if got := active(t, a); got != old {
		t.Fatalf("%s seals at once, before the other node has it", got)
	}
	// The other node, which does not have the new key yet, opens what this one seals.
	if _, err := b.OpenTicket("shop", mustTicket(t, a, aTicket("shop"))); err != nil {
		t.Fatal(err)
	}
	c.pass(6 * time.Second)
	if got := active(t, a); got == old {
		t.Fatal("the new key has settled and does not seal")
	}
	if _, err := b.Merge(a.Export()); err != nil {
		t.Fatal(err)
	}
	if got := active(t, b); got != old {
		t.Fatal("a key settles where it was made, but not where it just arrived")
	}
	if _, err := b.OpenTicket("shop", mustTicket(t, a, aTicket("shop"))); err != nil {
		t.Fatal(err)
	}
}

func active(t *testing.T, r *seal.Ring) string {
	t.Helper()
	for _, k := range r.Keys() {
		if k.Active {
			return k.ID
		}
	}
	t.Fatal("no key seals")
	return ""
}

func TestRingsMergeByUnion(t *testing.T) {
	c := newClock()
	a := newRing(t, c)
	c.pass(time.Second)
	b := newRing(t, c)
	for range 2 {
		for _, pair := range [][2]*seal.Ring{{a, b}, {b, a}} {
			if _, err := pair[0].Merge(pair[1].Export()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if d := cmp.Diff(string(a.Export()), string(b.Export())); d != "" {
		t.Fatalf("two rings that exchanged keys differ:\n%s", d)
	}
	if changed, err := a.Merge(b.Export()); changed || err != nil {
		t.Fatalf("merging again: changed %v, %v", changed, err)
	}
	if len(a.Keys()) != 2 {
		t.Fatalf("%d keys, want 2", len(a.Keys()))
	}
}

// What is derived is the same at all nodes, that of the key which seals comes first, and
// it differs by purpose.
func TestSecretsAreDerivedFromTheKeys(t *testing.T) {
	c := newClock()
	a, b := newRing(t, c), seal.New(seal.Config{Now: c.Now})
	if len(b.Derive("x")) != 0 {
		t.Error("a ring without keys has secrets")
	}
	first := a.Derive("x")
	c.pass(time.Second) // of two keys of one moment either may be the older
	if err := a.Rotate(); err != nil {
		t.Fatal(err)
	}
	fresh := a.Derive("x") // the new key has not settled
	c.pass(time.Minute)
	settled := a.Derive("x")
	if _, err := b.Merge(a.Export()); err != nil {
		t.Fatal(err)
	}
	c.pass(time.Minute)
	if len(settled) != 2 || !cmp.Equal(fresh[0], first[0]) || !cmp.Equal(settled[1], first[0]) || cmp.Equal(settled[0], first[0]) {
		t.Errorf("%x, then %x, then %x", first, fresh, settled)
	}
	if other := a.Derive("y"); !cmp.Equal(b.Derive("x"), settled) || cmp.Equal(other[0], settled[0]) || len(other[0]) != 32 {
		t.Errorf("another node derives %x of %x, and for another purpose it is %x", b.Derive("x"), settled, other)
	}
}

func TestAReplacedKeyIsKeptAndThenDropped(t *testing.T) {
	c := newClock()
	r := newRing(t, c)
	stale := string(r.Export())
	old := mustTicket(t, r, aTicket("shop"))
	c.pass(time.Second)
	if err := r.Rotate(); err != nil {
		t.Fatal(err)
	}
	c.pass(25 * time.Hour)
	if err := r.Rotate(); err != nil {
		t.Fatal(err)
	}
	if _, err := r.OpenTicket("shop", old); err != nil {
		t.Fatal("the key was dropped while its tickets could be alive")
	}
	c.pass(time.Minute)
	if changed, err := r.Merge(nil0(t)); err != nil || !changed {
		t.Fatalf("merging an empty ring: changed %v, %v; want the oldest key dropped", changed, err)
	}
	if _, err := r.OpenTicket("shop", old); !errors.Is(err, seal.ErrInvalid) {
		t.Fatalf("the key outlived its tickets: %v", err)
	}
	if changed, err := r.Merge([]byte(stale)); err != nil || changed {
		t.Fatalf("a key that was dropped came back: changed %v, %v", changed, err)
	}
}

func nil0(t *testing.T) []byte {
	t.Helper()
	return seal.New(seal.Config{Now: newClock().Now}).Export()
}

func TestARingIsBounded(t *testing.T) {
	c := newClock()
	r := seal.New(seal.Config{Now: c.Now})
	if _, err := r.Ticket(aTicket("shop")); !errors.Is(err, seal.ErrNoKey) {
		t.Fatalf("Ticket without a key: %v", err)
	}
	var err error
	for range 65 {
		err = r.Rotate()
	}
	if err == nil || len(r.Keys()) != 64 {
		t.Fatalf("%d keys, %v", len(r.Keys()), err)
	}
	if _, err := r.Merge(newRing(t, c).Export()); err == nil {
		t.Fatal("a full ring took one more")
	}
}

func TestKeysSurviveInAFileOfTheirOwner(t *testing.T) {
	name := filepath.Join(t.TempDir(), "keys.json")
	c := newClock()
	a, b := newRing(t, c), seal.New(seal.Config{Now: c.Now})
	for range 2 { // the second replaces the first
		if err := a.Save(name); err != nil {
			t.Fatal(err)
		}
	}
	info, err := os.Stat(name)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("the file has mode %v, %v", info.Mode(), err)
	}
	if left, _ := os.ReadDir(filepath.Dir(name)); len(left) != 1 {
		t.Fatalf("left behind: %v", left)
	}
	if err := b.Load(name); err != nil {
		t.Fatal(err)
	}
	if _, err := b.OpenPass("shop", mustPass(t, a, aPass("shop"))); err != nil {
		t.Fatal(err)
	}
	if err := b.Load(name + ".not"); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("a file that is not there: %v", err)
	}
	if err := os.WriteFile(name, make([]byte, 65<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := b.Load(name); !errors.Is(err, seal.ErrKeys) {
		t.Fatalf("a huge file: %v", err)
	}
}

func TestBadKeysAreRefusedWithoutBeingQuoted(t *testing.T) {
	c := newClock()
	good := string(newRing(t, c).Export())
	var f struct{ Keys []map[string]string }
	if err := json.Unmarshal([]byte(good), &f); err != nil {
		t.Fatal(err)
	}
	secret := f.Keys[0]["secret"]
	for name, bad := range map[string]string{
		"nothing":          "",
		"not JSON":         secret,
		"trailing data":    good + good,
		"an unknown field": strings.Replace(good, `"id"`, `"`+secret[:8]+`": 1, "id"`, 1),
		"a short id":       strings.Replace(good, f.Keys[0]["id"], "00ff", 1),
		"a bad secret":     strings.Replace(good, secret, secret[:8], 1),
		"a bad scalar":     strings.Replace(good, f.Keys[0]["signing"], base64.StdEncoding.EncodeToString(make([]byte, 32)), 1),
		"an ancient date":  strings.Replace(good, "2026-", "1926-", 1),
		"a far date":       strings.Replace(good, "2026-", "9999-", 1),
		"one key twice":    `{"keys":[` + strings.Repeat(strings.TrimSuffix(strings.TrimPrefix(strings.Join(strings.Fields(good), ""), `{"keys":[`), "]}")+",", 2) + "]}",
	} {
		changed, err := seal.New(seal.Config{Now: c.Now}).Merge([]byte(bad))
		if !errors.Is(err, seal.ErrKeys) || changed {
			t.Errorf("%s: changed %v, %v", name, changed, err)
			continue
		}
		if strings.Contains(err.Error(), secret[:8]) {
			t.Errorf("%s: the error quotes a secret: %v", name, err)
		}
	}
}

func TestAnOriginVerifiesAPassByTheJWKS(t *testing.T) {
	c := newClock()
	r := newRing(t, c)
	s, err := r.JWT(aPass("shop"), "https://shop.example.com")
	if err != nil {
		t.Fatal(err)
	}
	claims := jwt.MapClaims{}
	_, err = jwt.ParseWithClaims(s, claims, func(t *jwt.Token) (any, error) { return publicKey(r.JWKS(), t.Header["kid"]) },
		jwt.WithValidMethods([]string{"ES256"}), jwt.WithAudience("shop"), jwt.WithIssuer("https://shop.example.com"),
		jwt.WithTimeFunc(func() time.Time { return time.UnixMicro(c.Now()) }))
	if err != nil {
		t.Fatal(err)
	}
	now := float64(c.Now() / 1e6)
	want := jwt.MapClaims{
		"iss": "https://shop.example.com", "aud": "shop", "sub": "01020300000000000000000000000009",
		"jti":       "01020300000000000000000000000009-1795253100000000",
		"joined_at": 1795252800.0, "iat": now, "nbf": now - 30, "exp": 1795253100.0,
	}
	if d := cmp.Diff(want, claims); d != "" {
		t.Fatalf("claims (-want +got):\n%s", d)
	}
}

// The signature's two numbers have leading zeros now and then, and what is
// encoded by hand must be JSON whatever names there are.
func TestEveryPassVerifies(t *testing.T) {
	c := newClock()
	r := newRing(t, c)
	for i, room := range []string{"shop", `"quoted" \ <b>&`, "käse\u2028\xff", ""} {
		for n := range 100 {
			p := aPass(room)
			p.ID[0], p.Stamp = byte(n), uint64(i)
			s, err := r.JWT(p, "https://shop.example.com/"+room)
			if err != nil {
				t.Fatal(err)
			}
			claims := jwt.MapClaims{}
			if _, err := jwt.ParseWithClaims(s, claims, func(t *jwt.Token) (any, error) { return publicKey(r.JWKS(), t.Header["kid"]) },
				jwt.WithValidMethods([]string{"ES256"}), jwt.WithTimeFunc(func() time.Time { return time.UnixMicro(c.Now()) })); err != nil {
				t.Fatalf("%q, %d: %v", room, n, err)
			}
			if want := strings.ToValidUTF8(room, "\ufffd"); claims["aud"] != want || claims["iss"] != "https://shop.example.com/"+want {
				t.Fatalf("%q: %v", room, claims)
			}
		}
	}
}
