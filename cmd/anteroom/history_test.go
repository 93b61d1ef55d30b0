package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// aHistory is an answer to /v1/rooms/shop/history of two minutes, the second without
// any node.
const aHistory = `{"room":"shop","from":"2026-11-21T12:00:00Z","to":"2026-11-21T12:02:00Z","step":60,"nodes":["node-1"],
"missing":[{"node":"node-2","until":"2026-11-21T12:01:00Z"},{"node":"node-3","until":null}],"time":[1795262400,1795262460],
"on_site":[49.5,null],"on_site_max":[50,null],"queued":[1234.5,null],"queued_max":[1300,null],"called":[0,null],
"total_active_users":[50,null],"new_users_per_minute":[0,null],"state":["queueing",""],
"joins":[7,null],"calls":[6,null],"admissions":[5,null],"walked_in":[0,null],"ends_left":[3,null],"ends_expired":[1,null],"no_shows":[2,null],"drop_outs":[8,null],
"refused_full":[1,null],"refused_closed":[1,null],"refused_node":[1,null],"refused_address":[1,null],
"wait":{"count":[5,null],"p50":[322.5,null],"p75":[330,null],"p95":[4000,null]},"visit":{"count":[4,null],"p50":[2.25,null],"p75":[3,null],"p95":[90,null]},
"total":{"on_site_max":50,"queued_max":1300,"joins":7,"calls":6,"admissions":5,"walked_in":0,"ends_left":3,"ends_expired":1,"no_shows":2,"drop_outs":8,
"refused_full":1,"refused_closed":1,"refused_node":1,"refused_address":1,"estimates":4,"estimates_under_p25":1,"estimates_under_p50":2,"estimates_under_p75":4,"wait":{"count":5,"p50":322.5,"p75":330,"p95":4000},"visit":{"count":4,"p50":2.25,"p75":3,"p95":90}}}`

func TestHistoryAsAPersonReadsIt(t *testing.T) {
	var asked []string
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/v1/rooms/shop/history":
			asked = append(asked, r.URL.RawQuery)
			_, _ = w.Write([]byte(aHistory)) // the test sees what did not come
		case "/v1/rooms/tea/history":
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte(`{"code":"request_invalid","detail":"it is 43200 steps."}`))
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer node.Close()
	for _, x := range []struct {
		args   []string
		status int
		has    []string
	}{
		{[]string{"--room", "shop", "--from", "-2m"}, 0, []string{
			"steps of 1m0s, as node-1 saw it", "missing: node-2 (what it saw after ", "node-3 (nothing of it is here)",
			"from      on site  most  limit  in line  came  got in  wait p50   p95  left  no-shows  gave up  refused  state",
			"50    50     50     1235     7       5     5m23s  1h7m     4         2        8        4  queueing",
			"-     -      -        -     -       -         -     -     -         -        -        -  -",
			"7 came, 5 got in, 0 of them without waiting; at most 50 were on the site at once, and 1300 in line.",
			"Half of those who waited did for up to 5m23s, and 95 % up to 1h7m.", "Half of the visits took up to 2.3s, and 95 % up to 1m30s.",
			"Of 4 estimated waits 25, 50 and 100 % were under the p25, p50 and p75 that was told.",
		}},
		{[]string{"--room", "shop", "--csv"}, 0, []string{"time,on_site,", "2026-11-21T12:00:00Z,49.5,50,1234.5,1300,0,50,0,queueing,7,", "missing: node-2"}},
		{[]string{"--room", "shop", "--json"}, 0, []string{`"on_site":[49.5,null]`}},
		{[]string{}, 2, []string{"no room is named"}},
		{[]string{"--room", "shop", "--csv", "--json"}, 2, []string{"give one of them"}},
		{[]string{"--room", "tea"}, 1, []string{"it is 43200 steps (request_invalid)"}},
	} {
		out, errs, status := execute(t, t.Context(), append([]string{"history", "--admin", node.URL}, x.args...)...)
		out += errs
		if status != x.status {
			t.Errorf("%v: status %d, want %d\n%s", x.args, status, x.status, out)
		}
		for _, want := range x.has {
			if !strings.Contains(out, want) {
				t.Errorf("%v: no %q in\n%s", x.args, want, out)
			}
		}
	}
	if len(asked) == 0 || asked[0] != "from=-2m&node=&step=&to=now" {
		t.Errorf("asked for %q", asked)
	}
}
