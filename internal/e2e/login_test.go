package e2e

import (
	"net/http/httptest"
	"testing"

	"github.com/anteroom/anteroom/gateway/admin"
	"github.com/anteroom/anteroom/internal/fairness"
)

// still is a node where nothing happens.
type still struct{}

func (still) Cluster() admin.Cluster                       { return admin.Cluster{Node: "node-1"} }
func (still) Rooms() []admin.Room                          { return nil }
func (still) Fairness(string) (f fairness.Report, ok bool) { return f, false }
func (still) Ready() string                                { return "" }
func (still) Health() []admin.RoomHealth                   { return nil }

// An operator logs in by a form, and out again.
func TestAnOperatorLogsIn(t *testing.T) {
	needBrowser(t)
	port := admin.New(admin.Config{Source: still{}, Token: "opensesame-opensesame"})
	site := httptest.NewServer(port)
	t.Cleanup(func() { port.Close(); site.Close() })
	p := newPerson(t)
	p.open(site.URL + "/")
	p.sees("Who are you?")
	p.picture("login")
	p.isAccessible("login")
	p.types("#token", "open")
	p.click("button")
	p.sees("Nobody has this token.")
	p.isAccessible("wrong token")
	p.types("#token", "opensesame-opensesame")
	p.click("button")
	p.sees("There are no rooms yet")
	p.until("news", "live.className == 'live on'")
	p.click("footer button")
	p.sees("Who are you?")
}
