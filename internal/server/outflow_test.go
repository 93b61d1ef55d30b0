package server

import (
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/gateway"
	"github.com/anteroom/anteroom/gateway/admin"
	"github.com/anteroom/anteroom/internal/config"
	peerv1 "github.com/anteroom/anteroom/proto/anteroom/peer/v1"
)

// bearing is a room that follows its origin, at a node that hears of another's
// requests to it.
type bearing struct {
	*operated
	own   gateway.Flow
	other *peerv1.OriginFigures
	told  int // times that it has told the others
}

func adaptiveRoom() config.Room {
	r := shopRoom()
	r.TotalActiveUsers, r.Outflow = 100, config.Adaptive
	return r
}

// passes lets time pass in which a node asks the origin ten times a second, and of a
// hundred requests of the other so many fail.
func (b *bearing) passes(d time.Duration, failed uint64) {
	b.t.Helper()
	from := eviction.Member{Name: "b", Boot: 7}
	for range d / outflowEvery {
		time.Sleep(outflowEvery)
		b.own.Asked, b.own.Answered = b.own.Asked+5, b.own.Answered+5
		b.other.Asked, b.other.Answered, b.other.Failed = b.other.Asked+100, b.other.Answered+100, b.other.Failed+failed
		b.s.outflow.hear(from, b.other, time.Now())
		snapshot := b.s.loop.Snapshot()
		var all []eviction.Room
		for i := range snapshot.Rooms {
			all = append(all, snapshot.Rooms[i].Room)
		}
		b.s.outflow.follow(all)
		b.s.outflow.look(time.Now(), snapshot)
	}
}

func (b *bearing) governed() (r admin.Room, slots int) {
	b.t.Helper()
	running, _ := b.s.loop.Snapshot().Room("shop")
	g := b.s.outflow.governed(running)
	return admin.Room{TotalActiveUsers: running.Room.Target, Governed: g}, running.Owned
}

// TestALimitFollowsWhatTheOriginBears, by what another node says of it as well: down to
// the floor, up to the limit again, and the room's configuration stays what it was.
func TestALimitFollowsWhatTheOriginBears(t *testing.T) {
	alone(t, func(o *operated) {
		b := &bearing{operated: o, other: &peerv1.OriginFigures{Room: "shop"}}
		o.s.outflow.flow = func(string) gateway.Flow { return b.own }
		o.s.outflow.tell = func(string, *peerv1.Notice) { b.told++ }
		c, _ := o.Configured("shop")
		b.passes(6*time.Second, 0)
		if r, slots := b.governed(); r.Governed == nil || r.Governed.Bound != 0 || r.Governed.Verdict != "healthy" || slots != 100 {
			t.Fatalf("while all is well: %+v, %d slots", r.Governed, slots)
		}
		b.passes(10*time.Second, 9)
		r, slots := b.governed()
		if g := r.Governed; g.Bound != 10 || g.Verdict != "overloaded" || g.Cause != "errors" || g.Since == nil || slots != 10 {
			t.Errorf("while answers fail, and nobody is inside: %+v, %d slots; want the floor, 10", g, slots)
		}
		if after, _ := o.Configured("shop"); after.ETag != c.ETag || r.TotalActiveUsers != 100 {
			t.Errorf("the configuration has changed from %s to %s", c.ETag, after.ETag)
		}
		if b.told == 0 {
			t.Error("the others were not told what came of this node's requests")
		}
		b.passes(10*time.Second, 0)
		if r, slots = b.governed(); r.Governed.Bound != 10 || slots != 10 {
			t.Errorf("a bound that nobody uses up was raised: %+v, %d slots", r.Governed, slots)
		}
		if _, err := o.put("shop", `{"total_active_users":100,"origin":"http://127.0.0.1:9000","routes":[{"host":"shop.example.com"}]}`, admin.Edit{}); err != nil {
			t.Fatal(err)
		}
		b.passes(3*time.Second, 9)
		if r, slots = b.governed(); r.Governed != nil || slots != 100 {
			t.Errorf("with outflow: fixed: %+v, %d slots", r.Governed, slots)
		}
		audit := o.Audit()
		if last := audit[len(audit)-1]; last.Who != "governor" || last.Action != "lower" || last.Changes[0].From != "100" || last.Changes[0].To != "10" {
			t.Errorf("the audit says %+v", audit)
		}
	}, adaptiveRoom())
}

// TestTheChartsHaveTheLimitThatHeld, and not the one that is configured.
func TestTheChartsHaveTheLimitThatHeld(t *testing.T) {
	var h samples
	h.take(time.Unix(1000, 0), func() []admin.Room {
		return []admin.Room{{Name: "shop", TotalActiveUsers: 100, Governed: &admin.Governed{Bound: 60}}, {Name: "news", TotalActiveUsers: 100, Governed: &admin.Governed{}}}
	})
	if shop, news := h.of("shop")[0].TotalActiveUsers, h.of("news")[0].TotalActiveUsers; shop != 60 || news != 100 {
		t.Errorf("limits of %d and %d, want 60 and 100", shop, news)
	}
}
