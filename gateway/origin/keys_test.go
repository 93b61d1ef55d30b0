package origin_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/anteroom/anteroom/gateway/origin"
)

func TestKeysAreFetchedOnceForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		p := c.checker(nil)
		proceed := make(chan struct{})
		c.answers(func() (int, string, error) { <-proceed; return 200, string(c.ring.JWKS()), nil })
		var all sync.WaitGroup
		good := c.good()
		for range 100 {
			all.Go(func() {
				if _, err := p.Verify(t.Context(), good); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		close(proceed)
		all.Wait()
		if got := c.fetches(); got != 1 {
			t.Errorf("a hundred requests fetched the keys %d times", got)
		}
	})
}

func TestStrangersCannotMakeItFetch(t *testing.T) {
	c := newCluster(t)
	p := c.checker(nil)
	key := mineKey(t)
	forge := func(i int) string {
		return signed(t, c.clock(), jwt.SigningMethodES256, key, func(t *jwt.Token, _ jwt.MapClaims) { t.Header["kid"] = fmt.Sprint(i) })
	}
	for i := range 50 {
		if _, err := p.Verify(t.Context(), forge(i)); !errors.Is(err, origin.ErrPass) {
			t.Fatal(err)
		}
	}
	if got := c.fetches(); got != 1 {
		t.Errorf("fifty strange keys: %d fetches, want 1", got)
	}
	c.pass(10 * time.Second)
	for i := range 50 {
		_, _ = p.Verify(t.Context(), forge(i))
	}
	if got := c.fetches(); got != 2 {
		t.Errorf("ten seconds later: %d fetches, want 2", got)
	}
}

func TestANewKeyIsFoundAndADroppedOneForgotten(t *testing.T) {
	c := newCluster(t)
	p := c.checker(nil)
	old := c.good()
	if _, err := p.Verify(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	c.pass(10 * time.Second)
	key := mineKey(t)
	c.publish(key)
	if _, err := p.Verify(t.Context(), signed(t, c.clock(), jwt.SigningMethodES256, key, nil)); err != nil {
		t.Errorf("a new key: %v", err)
	}
	if _, err := p.Verify(t.Context(), old); !errors.Is(err, origin.ErrPass) {
		t.Errorf("a key that the cluster has dropped: %v", err)
	}
}

func TestKnownKeysWorkWhileNoNodeAnswers(t *testing.T) {
	for what, answer := range map[string]func() (int, string, error){
		"down":    down,
		"broken":  func() (int, string, error) { return 500, "", nil },
		"nothing": func() (int, string, error) { return 200, `{"keys":[]}`, nil },
		"no JSON": func() (int, string, error) { return 200, "<html>", nil },
		"huge":    func() (int, string, error) { return 200, strings.Repeat(" ", 1<<20), nil },
		"no curve": func() (int, string, error) {
			return 200, `{"keys":[{"kty":"EC","crv":"P-256","kid":"a","x":"AAAA","y":"AAAA"}]}`, nil
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(t)
			p := c.checker(nil)
			check := func() error {
				_, err := p.Verify(t.Context(), c.issue("shop", "anteroom", time.Minute))
				synctest.Wait() // for a fetch that it did not wait for
				return err
			}
			if err := check(); err != nil {
				t.Fatal(err)
			}
			c.answers(answer)
			for range 23 {
				c.pass(time.Hour)
				if err := check(); err != nil {
					t.Fatalf("%s: %v", what, err)
				}
			}
			c.pass(time.Hour)
			if err := check(); !errors.Is(err, origin.ErrNoKeys) {
				t.Errorf("%s for a day: %v", what, err)
			}
			c.answers(nil)
			c.pass(10 * time.Second)
			if err := check(); err != nil {
				t.Errorf("%s, and then up again: %v", what, err)
			}
		})
	}
}

func TestWithoutKeysItSaysTryAgain(t *testing.T) {
	c := newCluster(t)
	c.answers(down)
	w := ask(c.checker(nil).Require(site), "GET", "/", "X-Anteroom-Pass: "+c.good())
	if w.Code != 503 || w.Header().Get("Retry-After") == "" || !strings.Contains(w.Body.String(), `"code":"unavailable"`) {
		t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
	}
}

func TestLookingAtOldKeysAgainDelaysNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		p := c.checker(nil)
		good := c.issue("shop", "anteroom", time.Hour)
		if _, err := p.Verify(t.Context(), good); err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		c.answers(func() (int, string, error) { <-done; return 200, string(c.ring.JWKS()), nil })
		c.pass(5 * time.Minute)
		if _, err := p.Verify(t.Context(), good); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if got := c.fetches(); got != 2 {
			t.Errorf("%d fetches, want 2", got)
		}
		close(done)
	})
}

func TestWhoGoesAwayStopsWaitingForKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		done := make(chan struct{})
		c.answers(func() (int, string, error) { <-done; return down() })
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.checker(nil).Verify(ctx, c.good()); !errors.Is(err, origin.ErrNoKeys) || !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		close(done)
	})
}

func TestARoomTakesPassesWhileTheKeysAreRotated(t *testing.T) {
	c := newCluster(t)
	p := c.checker(nil)
	before := c.good()
	if _, err := p.Verify(t.Context(), before); err != nil {
		t.Fatal(err)
	}
	c.pass(time.Minute)
	c.rotate()
	for what, token := range map[string]string{"before": before, "after": c.good()} {
		if _, err := p.Verify(t.Context(), token); err != nil {
			t.Errorf("a pass of %s the rotation: %v", what, err)
		}
	}
}

func TestManyAtOnce(t *testing.T) {
	c := newCluster(t)
	p := c.checker(func(o *origin.Config) { o.Every, o.Refresh = 1, 1 })
	good := c.issue("shop", "anteroom", time.Hour)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 20 {
				c.pass(time.Millisecond)
				if _, err := p.Verify(t.Context(), good); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}
