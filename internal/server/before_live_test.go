package server_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/series"
)

// A room that has run before tells its first crowd after a start how long they wait,
// although nobody has left the site since.
func TestAWaitIsToldFromTheHistoryAfterAStart(t *testing.T) {
	const limit, stay = 30, 4 * time.Second // thirty visits are the least that say anything
	r := newRig(t, limit)
	file := strings.Replace(fmt.Sprintf(rigFile, r.origin.URL, limit), "node: {", fmt.Sprintf("node: {id: node-1, data: %q, ", filepath.Join(t.TempDir(), "data")), 1)
	m := r.startWith(file, 1, 0)
	fill := func() (passes []string) {
		r.serving()
		r.until("room for newcomers", time.Minute, func() bool {
			_, room := m.operate(http.MethodGet, "shop", "")
			return room["open"] == true
		})
		for range limit {
			a := m.visit("join", "", "")
			if a.State != "admitted" {
				t.Fatalf("into a site with room: %+v", a)
			}
			passes = append(passes, a.Pass)
		}
		return passes
	}
	began := time.Now()
	first := fill()
	a := m.visit("join", "", "")
	<-time.After(stay)
	if a = m.visit("checkin", "ticket", a.Ticket); a.State != "waiting" || a.Wait != nil {
		t.Errorf("without a history: %+v, %+v", a, a.Wait)
	}
	for _, pass := range first {
		m.visit("end", "pass", pass)
	}
	m.end()
	// A history counts from the minute in which its first visit ended, and tells something when it is so long.
	ended := time.Now()
	<-time.After(time.Until(ended.Truncate(time.Minute).Add(series.Lasting * ended.Sub(began))))

	r.nodes = nil // it is to found its cluster anew, and to join nobody
	m = r.startWith(file, 1, 0)
	fill()
	a = m.visit("join", "", "")
	r.until("a wait that is told", stay, func() bool {
		a = m.visit("checkin", "ticket", a.Ticket)
		return a.Wait != nil && a.Wait.P50 > stay.Seconds()/2
	})
	if p50 := a.Wait.P50; p50 > 1.5*stay.Seconds() {
		t.Errorf("visits took %v before, and the first in line is told %v s", stay, p50)
	}
}
