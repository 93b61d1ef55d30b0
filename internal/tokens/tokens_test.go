package tokens_test

import (
	"strings"
	"testing"

	"github.com/anteroom/anteroom/internal/tokens"
)

func TestANewTokenIsFoundByItsHashAlone(t *testing.T) {
	secret, other := tokens.New(), tokens.New()
	h, ok := tokens.HashOf(secret)
	if !ok || secret == other || len(secret) != len("anteroom_")+52 {
		t.Fatalf("%q and %q, hash %v", secret, other, ok)
	}
	again, err := tokens.ParseHash(h.String())
	if err != nil || again != h {
		t.Fatalf("ParseHash(%v) = %v, %v", h, again, err)
	}
	s := tokens.NewSet([]tokens.Token{{Name: "other"}, {Name: "mine", Hash: h}})
	if found := s.Find(secret); found == nil || found.Name != "mine" {
		t.Errorf("Find = %v", found)
	}
	for _, wrong := range []string{"", other, secret + "a", secret[:len(secret)-1], strings.ToUpper(secret), h.String(), " " + secret} {
		if found := s.Find(wrong); found != nil {
			t.Errorf("Find(%q) = %v", wrong, found)
		}
	}
}

func TestHashesThatAreNoneAreRefused(t *testing.T) {
	secret := tokens.New()
	for text, want := range map[string]string{
		"": "is no hash", "sha256:": "is no hash", "sha256:00": "is no hash", strings.Repeat("0", 64): "is no hash",
		"sha256:" + strings.Repeat("x", 64): "is no hash", secret: "is the token itself",
	} {
		if _, err := tokens.ParseHash(text); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "anteroom_") {
			t.Errorf("ParseHash(%q) = %v, want %s", text, err, want)
		}
	}
}

func TestPatternsMatchNamesAndBeginnings(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"jobs", "jobs", true},
		{"jobs", "jobs2", false},
		{"jobs", "job", false},
		{"jobs", "Jobs", false},
		{"team/*", "team/a", true},
		{"team/*", "team", false},
		{"team/*", "other/team/a", false},
		{"*", "team/a", true},
		{"*", "", true},
		{"", "jobs", false},
		{"", "", true}, // config gives no such pattern
	} {
		if got := (tokens.Patterns{c.pattern}).Match(c.name); got != c.want {
			t.Errorf("%q of %q: %v, want %v", c.name, c.pattern, got, c.want)
		}
	}
	if (tokens.Patterns{}).Match("jobs") || (tokens.Patterns{"team/*"}).All() || !(tokens.Patterns{"a", "*"}).All() {
		t.Error("nothing matches something, or all is not all")
	}
}

func TestOperateHasViewAndManage(t *testing.T) {
	r := tokens.RightsOf(tokens.Operate)
	for right, want := range map[tokens.Right]bool{
		tokens.View: true, tokens.Manage: true, tokens.Operate: true, tokens.Put: false, tokens.Take: false, tokens.Authorize: false,
	} {
		if got := r.Any(tokens.RightsOf(right)); got != want && right != tokens.Operate {
			t.Errorf("operate has %v: %v, want %v", right, got, want)
		}
	}
	if tokens.RightsOf(tokens.View).Any(tokens.RightsOf(tokens.Put, tokens.Take)) {
		t.Error("view is put or take")
	}
	for _, n := range tokens.Names() {
		if r, ok := tokens.ParseRight(n); !ok || r.String() != n {
			t.Errorf("ParseRight(%q) = %v, %v", n, r, ok)
		}
	}
	if _, ok := tokens.ParseRight("all"); ok {
		t.Error("there is a right called all")
	}
}

// FuzzBearer: what comes in an Authorization header is a token or nothing, and
// never another one than was written there.
func FuzzBearer(f *testing.F) {
	secret := tokens.New()
	h, _ := tokens.HashOf(secret)
	s := tokens.NewSet([]tokens.Token{{Name: "mine", Hash: h}})
	for _, seed := range []string{"", "Bearer " + secret, "bearer  " + secret + " ", "Basic " + secret, secret, "Bearer", "Bearer \x00", "Bearer " + secret + "," + secret} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		token, ok := tokens.Bearer([]string{value})
		if _, twice := tokens.Bearer([]string{value, value}); twice {
			t.Fatal("of two values one counts")
		}
		if !ok {
			return
		}
		if !strings.HasPrefix(token, tokens.Prefix) || !strings.Contains(value, token) || len(token) != len(secret) {
			t.Fatalf("Bearer(%q) = %q", value, token)
		}
		if (s.Find(token) != nil) != (token == secret) {
			t.Fatalf("Find(%q) does not fit", token)
		}
	})
}
