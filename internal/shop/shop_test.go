package shop_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/anteroom/anteroom/internal/shop"
)

// pass is what the gateway sends along, without a signature worth the name.
func pass(sub string, expires time.Time) string {
	claims := fmt.Sprintf(`{"sub":%q,"exp":%d}`, sub, expires.Unix())
	return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2ln"
}

func serve(s http.Handler, method, target, pass string, form url.Values, cookies ...*http.Cookie) *http.Response {
	r := httptest.NewRequest(method, target, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("X-Anteroom-Pass", pass)
	for _, c := range cookies {
		r.AddCookie(c)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w.Result()
}

func TestVisit(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	s := shop.New(shop.Config{Now: func() time.Time { return now }})
	p := pass("ada", now.Add(time.Minute))

	steps := []struct {
		method, target string
		form           url.Values
		status         int
		want           string
	}{
		{"GET", "/", nil, 200, `<a href="/tea/gyokuro">`},
		{"GET", "/tea/gyokuro", nil, 200, "€ 24.00"},
		{"GET", "/tea/petrol", nil, 404, "no such tea"},
		{"GET", "/nowhere", nil, 404, ""},
		{"GET", "/basket", nil, 200, "nothing in it"},
		{"POST", "/basket", url.Values{"tea": {"petrol"}}, 400, ""},
		{"POST", "/basket", url.Values{"tea": {"gyokuro"}}, 303, ""},
		{"POST", "/basket", url.Values{"tea": {"rooibos"}}, 303, ""},
		{"GET", "/basket", nil, 200, "€ 31.00"},
		{"GET", "/checkout", nil, 405, ""},
		{"POST", "/checkout", nil, 200, "Thank you"},
		{"GET", "/basket", nil, 200, "nothing in it"},
	}
	var jar []*http.Cookie
	for _, st := range steps {
		resp := serve(s, st.method, st.target, p, st.form, jar...)
		var body strings.Builder
		if err := resp.Write(&body); err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != st.status || !strings.Contains(body.String(), st.want) {
			t.Errorf("%s %s = %d, want %d with %q in it", st.method, st.target, resp.StatusCode, st.status, st.want)
		}
		if got, want := resp.Header.Get("Anteroom-Command") == "revoke", st.target == "/checkout" && st.status == 200; got != want {
			t.Errorf("%s %s revokes the pass: %v, want %v", st.method, st.target, got, want)
		}
		for _, c := range resp.Cookies() {
			jar = []*http.Cookie{c}
		}
	}
}

func TestShopCountsThePeopleWhoAreIn(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	at := func(s int) time.Time { return time.Unix(1_800_000_000+int64(s), 0) }
	s := shop.New(shop.Config{Now: func() time.Time { return now }, VisitorsMax: 3})
	steps := []struct {
		what           string
		now            int
		method, target string
		pass           string
		want           shop.Stats
	}{
		{"without a pass", 0, "GET", "/", "", shop.Stats{}},
		{"nonsense", 0, "GET", "/", "a.b.c", shop.Stats{}},
		{"a pass that is over", 0, "GET", "/", pass("zoe", at(-1)), shop.Stats{}},
		{"first", 0, "GET", "/", pass("ada", at(10)), shop.Stats{Now: 1, Peak: 1, Seen: 1}},
		{"again", 1, "GET", "/basket", pass("ada", at(10)), shop.Stats{Now: 1, Peak: 1, Seen: 1}},
		{"second", 1, "GET", "/", pass("bob", at(20)), shop.Stats{Now: 2, Peak: 2, Seen: 2}},
		{"renewed", 9, "GET", "/", pass("ada", at(30)), shop.Stats{Now: 2, Peak: 2, Seen: 2}},
		{"the older copy", 9, "GET", "/", pass("ada", at(10)), shop.Stats{Now: 2, Peak: 2, Seen: 2}},
		{"third", 11, "GET", "/", pass("cyd", at(40)), shop.Stats{Now: 3, Peak: 3, Seen: 3}},
		{"one more than it counts", 12, "GET", "/", pass("dee", at(40)), shop.Stats{Now: 3, Peak: 3, Seen: 3}},
		{"second ran out", 20, "GET", "/_shop/stats", "", shop.Stats{Now: 2, Peak: 3, Seen: 3}},
		{"first checks out", 21, "POST", "/checkout", pass("ada", at(30)), shop.Stats{Now: 1, Peak: 3, Seen: 3}},
		{"all gone", 99, "GET", "/_shop/stats", "", shop.Stats{Peak: 3, Seen: 3}},
	}
	for _, st := range steps {
		now = at(st.now)
		resp := serve(s, st.method, st.target, st.pass, nil)
		if st.target == "/_shop/stats" {
			var got shop.Stats
			if err := json.NewDecoder(resp.Body).Decode(&got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(st.want, got); diff != "" {
				t.Errorf("%s: /_shop/stats (-want +got):\n%s", st.what, diff)
			}
		}
		if diff := cmp.Diff(st.want, s.Stats()); diff != "" {
			t.Errorf("%s: Stats (-want +got):\n%s", st.what, diff)
		}
	}
}

func TestShopServesManyAtOnce(t *testing.T) {
	s := shop.New(shop.Config{})
	until := time.Now().Add(time.Hour)
	var g sync.WaitGroup
	for i := range 8 {
		g.Go(func() {
			for j := range 50 {
				if resp := serve(s, "GET", "/", pass(fmt.Sprint(i, " ", j), until), nil); resp.StatusCode != http.StatusOK {
					t.Errorf("GET / = %d, want 200", resp.StatusCode)
				}
			}
		})
	}
	g.Wait()
	if got := s.Stats(); got != (shop.Stats{Now: 400, Peak: 400, Seen: 400}) {
		t.Errorf("Stats = %+v, want 400 people", got)
	}
}

func FuzzPass(f *testing.F) {
	f.Add(pass("ada", time.Now().Add(time.Minute)))
	f.Add("e30.e30.e30")
	s := shop.New(shop.Config{VisitorsMax: 10})
	f.Fuzz(func(t *testing.T, pass string) {
		serve(s, "GET", "/_shop/stats", pass, nil)
		if got := s.Stats(); got.Now > 10 {
			t.Fatalf("%d people counted, want at most 10", got.Now)
		}
	})
}
