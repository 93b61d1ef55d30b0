package admin_test

import (
	"context"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/anteroom/anteroom/gateway/admin"
)

// archive has two steps of the shop's room, and nothing of the second.
type archive struct{ asked admin.Span }

func (a *archive) Figures(_ context.Context, room string, q admin.Span) (admin.Figures, error) {
	a.asked = q
	if room != "shop" {
		return admin.Figures{}, &admin.Refusal{Status: 404, Code: "room_unknown"}
	}
	return someFigures(), nil
}

// Slots are those of two nodes, of which one does not answer.
func (a *archive) Slots(_ context.Context, room string) []admin.NodeSlots {
	return []admin.NodeSlots{{Node: "a", Answers: true, SlotsOwned: len(room), SlotsUsed: 3}, {Node: "b"}}
}

// Waits are those of one room, and one node does not answer.
func (a *archive) Waits(context.Context) admin.WaitsList {
	p50, p75 := 38.2, 41.0
	return admin.WaitsList{Seconds: 60, Rooms: []admin.RoomWaits{{Room: "shop", Shares: admin.Shares{Count: 23, P50: &p50, P75: &p75}}}, Missing: []string{"b"}}
}

func someFigures() admin.Figures {
	c := func(v float64) admin.Column { return admin.Column{v, math.NaN()} }
	d := func(v float64) admin.Durations { return admin.Durations{Count: c(2), P50: c(v), P75: c(v), P95: c(v)} }
	return admin.Figures{
		Room: "shop", From: time.Unix(0, 0).UTC(), To: time.Unix(120, 0).UTC(), Step: 60, Nodes: []string{"a"}, Missing: []admin.MissingNode{{Node: "b"}}, Ran: []admin.NodeRan{{Node: "a", Spans: [][2]int64{{0, 60}}}},
		Time: []int64{0, 60}, OnSite: c(1.25), OnSiteMax: c(2), Queued: c(3), QueuedMax: c(4), Called: c(0), Limit: c(50), Rate: c(0), State: []string{"open", ""},
		Joins: c(1), Calls: c(2), Admissions: c(3), WalkedIn: c(4), EndsLeft: c(5), EndsExpired: c(6), NoShows: c(7), DropOuts: c(8),
		RefusedFull: c(9), RefusedClosed: c(10), RefusedNode: c(11), RefusedAddress: c(12), Estimates: c(13), UnderP25: c(14), UnderP50: c(15), UnderP75: c(16), Wait: d(0.123456), Visit: d(60),
	}
}

func TestHistoryOfTheClusterIsJSONOrCSV(t *testing.T) {
	a := &archive{}
	c := admin.Config{Source: aNode(), Operator: aDesk(), Historian: a}
	w := ask(c, "GET", "/v1/rooms/shop/history?from=1970-01-01T00:00:00Z&to=120&step=1m&node=a", "")
	var got admin.Figures
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != 200 {
		t.Fatalf("%d, %v: %s", w.Code, err, w.Body)
	}
	want := someFigures()
	want.Wait = admin.Durations{Count: admin.Column{2, math.NaN()}, P50: admin.Column{0.123, math.NaN()}, P75: admin.Column{0.123, math.NaN()}, P95: admin.Column{0.123, math.NaN()}}
	if diff := cmp.Diff(want, got, cmpopts.EquateNaNs()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if want := (admin.Span{From: time.Unix(0, 0).UTC(), To: time.Unix(120, 0), Step: time.Minute, Node: "a"}); !a.asked.From.Equal(want.From) || !a.asked.To.Equal(want.To) || a.asked.Step != want.Step || a.asked.Node != want.Node {
		t.Errorf("asked for %+v, want %+v", a.asked, want)
	}
	const table = "time,on_site,on_site_max,queued,queued_max,called,total_active_users,new_users_per_minute,state,joins,calls,admissions,walked_in," +
		"ends_left,ends_expired,no_shows,drop_outs,refused_full,refused_closed,refused_node,refused_address,estimates,estimates_under_p25,estimates_under_p50,estimates_under_p75,wait_count,wait_p50,wait_p75,wait_p95,visit_count,visit_p50,visit_p75,visit_p95\n" +
		"1970-01-01T00:00:00Z,1.25,2,3,4,0,50,0,open,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,2,0.123,0.123,0.123,2,60,60,60\n" +
		"1970-01-01T00:01:00Z,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,\n"
	for _, x := range [][2]string{{"?from=-2h&format=csv", "Accept: */*"}, {"?from=-2h", "Accept: text/csv"}, {"", "Accept: text/csv"}} {
		w := ask(c, "GET", "/v1/rooms/shop/history"+x[0], "", x[1])
		if w.Body.String() != table || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/csv") {
			t.Errorf("%v: %s\n%s", x, w.Header().Get("Content-Type"), cmp.Diff(table, w.Body.String()))
		}
	}
	if a.asked != (admin.Span{}) {
		t.Errorf("asked for %+v, want what suits", a.asked)
	}
}

func TestWhatNoHistoryCanAnswerIsRefused(t *testing.T) {
	for query, says := range map[string]string{
		"from=yesterday":    `from: it is \"yesterday\"; want a time such as`,
		"from=x&step=10":    `"detail":"from: it is \"x\"; want a time such as 2026-11-21T18:00:00Z, Unix seconds, or -2h."`, // and no word of the step
		"step=0.5":          `step: it is \"0.5\"; want whole seconds`,
		"step=1500ms":       "want whole seconds",
		"from=-1h&format=x": `format: it is \"x\"; want json or csv`,
	} {
		w := ask(admin.Config{Source: aNode(), Operator: aDesk(), Historian: &archive{}}, "GET", "/v1/rooms/shop/history?"+query, "")
		if w.Code != 400 || !strings.Contains(w.Body.String(), says) || !strings.Contains(w.Body.String(), "request_invalid") {
			t.Errorf("%s: %d %s; want %s", query, w.Code, w.Body, says)
		}
	}
	if w := ask(admin.Config{Source: aNode(), Operator: aDesk(), Historian: &archive{}}, "GET", "/v1/rooms/nope/history?from=-1h", ""); w.Code != 404 {
		t.Errorf("a room that is not there: %d %s", w.Code, w.Body)
	}
}
