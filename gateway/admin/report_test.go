package admin_test

import (
	"encoding/json"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom/gateway/admin"
)

func ints(n int) *int { return &n }

// The limit is held against the most at once of each step, also while it changes.
func TestAReportSaysWhetherTheLimitWasKept(t *testing.T) {
	nan := math.NaN()
	for _, x := range []struct {
		what        string
		limit, most admin.Column
		over        *int
	}{
		{"kept", admin.Column{50, 50, 50}, admin.Column{10, 50, 50}, ints(0)},
		{"one too many", admin.Column{50, 50, 50}, admin.Column{10, 51, 50}, ints(1)},
		{"lowered below who is there", admin.Column{50, 20, 20, 20}, admin.Column{50, 50, 35, 20}, ints(0)},
		{"lowered, and somebody let in above it", admin.Column{50, 20, 20, 20}, admin.Column{50, 50, 35, 36}, ints(1)},
		{"lowered, left, and filled too much again", admin.Column{50, 20, 20, 20}, admin.Column{50, 50, 18, 24}, ints(4)},
		{"raised within a step", admin.Column{20, 60, 60}, admin.Column{20, 60, 60}, ints(0)},
		{"no node was there for a step", admin.Column{50, nan, 50}, admin.Column{50, nan, 51}, ints(1)},
		{"over it when the span begins", admin.Column{20, 20, 20}, admin.Column{35, 30, 20}, ints(0)},
		{"nobody knows a limit", admin.Column{nan, nan}, admin.Column{5, 5}, nil},
	} {
		f := admin.Figures{Step: 60, Limit: x.limit, OnSiteMax: x.most}
		for i := range x.limit {
			f.Time, f.State = append(f.Time, int64(60*i)), append(f.State, "queueing")
			for _, c := range []*admin.Column{&f.OnSite, &f.Called, &f.Queued, &f.Rate, &f.Admissions} {
				*c = append(*c, 0)
			}
		}
		got := admin.ReportOf(&f, admin.Setup{}, nil).Limit.Over
		if (got == nil) != (x.over == nil) || got != nil && *got != *x.over {
			t.Errorf("%s: over %v, want %v", x.what, show(got), show(x.over))
		}
	}
}

func show(n *int) any {
	if n == nil {
		return "not known"
	}
	return *n
}

func TestAReportIsJSONOrAPage(t *testing.T) {
	a := &archive{}
	d := aDesk()
	at := time.Unix(30, 0).UTC()
	d.audit = []admin.AuditEntry{
		{At: time.Unix(130, 0), Who: "too late", Room: "shop", Action: "hold"},
		{At: at, Who: "token <b>eve</b>", Room: "shop", Action: "update", Changes: []admin.Change{{Key: "total_active_users", From: "50", To: "20"}}},
		{At: at, Who: "loopback", Room: "tea", Action: "hold"},
	}
	c := admin.Config{Source: aNode(), Operator: d, Historian: a}
	w := ask(c, "GET", "/v1/rooms/shop/report?from=0&to=120", "")
	var r admin.Report
	if err := json.Unmarshal(w.Body.Bytes(), &r); err != nil || w.Code != 200 {
		t.Fatalf("%d, %v: %s", w.Code, err, w.Body)
	}
	if a.asked.Step != time.Minute || a.asked.From.Unix() != 0 || a.asked.To.Unix() != 120 {
		t.Errorf("asked for %+v, want two minutes", a.asked)
	}
	if r.Order != nil || r.Estimate != nil || len(r.Changes) != 1 || !r.Changes[0].At.Equal(at) || len(r.Missing) != 1 {
		t.Errorf("got %+v", r)
	}
	w = ask(c, "GET", "/v1/rooms/shop/report?from=0&to=120&format=html", "")
	page := w.Body.String()
	for _, has := range []string{
		"<td>ran from 00:00 to 00:01</td>", "Not complete: nothing that b saw is in it.", "update: total_active_users 50 → 20",
		"token &lt;b&gt;eve&lt;/b&gt;", `<tr><th scope="row">Kendall tau</th><td>not known</td></tr>`, `<polyline class="on-site"`,
	} {
		if !strings.Contains(page, has) {
			t.Errorf("no %q in\n%s", has, page)
		}
	}
	for _, never := range []string{"<script", "<b>", "too late", "style=", "src=", "href="} {
		if strings.Contains(page, never) {
			t.Errorf("%q is in\n%s", never, page)
		}
	}
	policy := w.Header().Get("Content-Security-Policy")
	if !regexp.MustCompile(`^default-src 'none'; style-src 'sha256-[A-Za-z0-9+/]{43}='; base-uri 'none'; form-action 'none'$`).MatchString(policy) {
		t.Errorf("the policy is %s", policy)
	}
	for query, says := range map[string]string{"from=yesterday": "from: it is", "format=pdf": "format: it is not json or html"} {
		if w := ask(c, "GET", "/v1/rooms/shop/report?"+query, ""); w.Code != 400 || !strings.Contains(w.Body.String(), says) {
			t.Errorf("%s: %d %s", query, w.Code, w.Body)
		}
	}
	if w := ask(c, "GET", "/v1/rooms/nope/report", ""); w.Code != 404 {
		t.Errorf("a room that is not there: %d", w.Code)
	}
}
