package server

import (
	"context"
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/gateway/admin"
	"github.com/anteroom/anteroom/internal/config"
	"github.com/anteroom/anteroom/internal/health"
	"github.com/anteroom/anteroom/internal/ticket"
	"github.com/anteroom/anteroom/membership"
)

// checked is a room that waits for a healthy origin.
func checked() config.Room {
	r := config.DefaultRoom()
	r.Name, r.TotalActiveUsers, r.Origin = "shop", 10, "http://127.0.0.1:9000"
	r.Routes = []config.Route{config.DefaultRoute()}
	h := config.DefaultHealthCheck()
	h.Name = "front"
	r.HealthChecks, r.OnUnhealthy = []config.HealthCheck{h}, config.Hold
	return r
}

// say has a node think something of the shop's origin, and waits until the room
// is as it follows from that.
func (o *operated) say(node string, s health.Status, reason string) {
	o.t.Helper()
	running, _ := o.s.loop.Snapshot().Room("shop")
	c, err := configOf(running.Room)
	if err != nil {
		o.t.Fatal(err)
	}
	check := checksOf(c)[0]
	o.s.origins.hear(node, health.Report{Room: "shop", Check: "front", Sum: check.Sum(), Status: s, Reason: reason}, time.Now())
	o.settle()
}

// settle is what the goroutines of a server do for its rooms, for some seconds.
func (o *operated) settle() {
	o.t.Helper()
	members := []membership.Member{{Peer: eviction.Peer{Member: eviction.Member{Name: "a"}}}}
	for range 40 {
		snapshot := o.s.loop.Snapshot()
		var all []eviction.Room
		for i := range snapshot.Rooms {
			all = append(all, snapshot.Rooms[i].Room)
		}
		o.s.origins.follow(all)
		o.s.origins.share(time.Now(), members)
		o.s.origins.decide(time.Now(), snapshot)
		time.Sleep(100 * time.Millisecond)
	}
}

func (o *operated) wants(what string, mode eviction.Mode, hand admin.Mode, paused ticket.Pause) {
	o.t.Helper()
	running, _ := o.s.loop.Snapshot().Room("shop")
	c, _ := o.Configured("shop")
	state, _ := o.s.queue().Room("shop")
	if running.Room.Mode != mode || c.Mode != hand || state.Paused != paused {
		o.t.Errorf("%s: it is %v, by hand %s, paused %q; want %v, %s, %q", what, running.Room.Mode, c.Mode, state.Paused, mode, hand, paused)
	}
}

func (o *operated) mode(m admin.Mode) {
	o.t.Helper()
	if _, err := o.SetMode(context.Background(), admin.Edit{Room: "shop", Who: "test"}, m); err != nil {
		o.t.Errorf("%s: %v", m, err)
	}
	o.settle()
}

// TestTheHoldOfAnOriginAndThatOfAnOperatorDoNotEndEachOther takes a room through
// every order of the two.
func TestTheHoldOfAnOriginAndThatOfAnOperatorDoNotEndEachOther(t *testing.T) {
	alone(t, func(o *operated) {
		o.settle()
		o.wants("before anybody has looked", eviction.Normal, admin.Normal, "")
		o.say("a", health.Healthy, health.NoFailures)
		o.wants("healthy", eviction.Normal, admin.Normal, "")
		o.say("a", health.Unhealthy, "TCP connection failed")
		o.wants("unhealthy", eviction.Held, admin.Normal, ticket.PausedUnhealthy)

		o.mode(admin.Normal)
		o.wants("released, and still unhealthy", eviction.Held, admin.Normal, ticket.PausedUnhealthy)
		if _, err := o.put("shop", `{"total_active_users":20,"health_checks":[{"name":"front"}],"on_unhealthy":"hold","origin":"http://127.0.0.1:9000","routes":[{"host":"*"}]}`, admin.Edit{}); err != nil {
			t.Fatal(err)
		}
		o.settle()
		o.wants("with another limit", eviction.Held, admin.Normal, ticket.PausedUnhealthy)
		o.mode(admin.Held)
		o.wants("held by hand as well", eviction.Held, admin.Held, ticket.PausedHeld)
		o.say("a", health.Healthy, health.NoFailures)
		o.wants("healthy, and held by hand", eviction.Held, admin.Held, ticket.PausedHeld)
		o.say("a", health.Unhealthy, "TCP connection failed")
		if _, err := o.SetMode(context.Background(), admin.Edit{Room: "shop", Who: "test"}, admin.Normal); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second) // in which nobody judges anew
		if running, _ := o.s.loop.Snapshot().Room("shop"); running.Room.Mode != eviction.Held {
			t.Errorf("released by hand just now, and unhealthy: it is %v", running.Room.Mode)
		}
		o.settle()
		o.wants("released by hand, and unhealthy", eviction.Held, admin.Normal, ticket.PausedUnhealthy)
		o.mode(admin.Draining)
		o.wants("to be drained, and unhealthy", eviction.Held, admin.Draining, ticket.PausedUnhealthy)
		o.say("a", health.Healthy, health.NoFailures)
		o.wants("healthy, and drained by hand", eviction.Draining, admin.Draining, "")
		o.mode(admin.Normal)
		o.wants("at last", eviction.Normal, admin.Normal, "")
	}, checked())
}

func TestAHoldOfAnOriginEndsWithItsChecks(t *testing.T) {
	for name, body := range map[string]string{
		"without checks":        `{"total_active_users":10,"on_unhealthy":"hold"}`,
		"with a suspended one":  `{"total_active_users":10,"on_unhealthy":"hold","health_checks":[{"name":"front","address":"127.0.0.1","suspended":true}]}`,
		"with a new one":        `{"total_active_users":10,"on_unhealthy":"hold","health_checks":[{"name":"new","address":"127.0.0.1"}]}`,
		"that goes on":          `{"total_active_users":10,"on_unhealthy":"continue","health_checks":[{"name":"front","address":"127.0.0.1"}]}`,
		"where nobody waits":    `{"queueing_method":"passthrough","on_unhealthy":"hold","health_checks":[{"name":"front","address":"127.0.0.1"}]}`,
		"that is suspended now": `{"total_active_users":10,"suspended":true,"on_unhealthy":"hold","health_checks":[{"name":"front","address":"127.0.0.1"}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			alone(t, func(o *operated) {
				o.say("a", health.Unhealthy, "TCP connection failed")
				o.wants("unhealthy", eviction.Held, admin.Normal, ticket.PausedUnhealthy)
				if _, err := o.put("shop", body, admin.Edit{}); err != nil {
					t.Fatal(err)
				}
				o.settle()
				o.wants("a room "+name, eviction.Normal, admin.Normal, "")
			}, checked())
		})
	}
}

// TestWhatIsKnownOfAnOriginIsKnownAfterARestart: the node does not let anybody in
// only because it has not looked yet.
func TestWhatIsKnownOfAnOriginIsKnownAfterARestart(t *testing.T) {
	alone(t, func(o *operated) {
		o.say("a", health.Unhealthy, "TCP connection failed")
		o.boot(checked())
		o.settle()
		o.wants("unhealthy before the restart", eviction.Held, admin.Normal, ticket.PausedUnhealthy)
		o.say("a", health.Healthy, health.NoFailures)
		o.wants("healthy", eviction.Normal, admin.Normal, "")
	}, checked())
}

func TestOneNodeOfThreeHoldsNoRoom(t *testing.T) {
	now := time.Unix(1000, 0)
	o := &origins{s: &Server{}, said: map[looker]heard{}, expected: map[looker]time.Time{}, members: []string{"a", "b", "c"}, news: rooms{}}
	r := roomOf(checked())
	c, _ := configOf(r)
	check := checksOf(c)[0]
	o.rooms = map[string]watched{"shop": {[]health.Check{check}, true}}
	for _, n := range o.members {
		o.expected[looker{"shop", "front", n}] = now
	}
	say := func(node string, s health.Status, sum uint64, at time.Time) {
		o.hear(node, health.Report{Room: "shop", Check: "front", Sum: sum, Status: s, Reason: "why " + node}, at)
	}
	say("a", health.Unhealthy, check.Sum(), now)
	say("b", health.Unhealthy, 7, now) // of a check that was another one
	say("d", health.Unhealthy, check.Sum(), now)
	if next := healthOf(o.judged(now, r)); next.Holds || next.status() != health.Unknown {
		t.Errorf("by one of three: %+v", next)
	}
	say("c", health.Unhealthy, check.Sum(), now)
	next := healthOf(o.judged(now, r))
	if !next.Holds || next.status() != health.Unhealthy || next.Checks[0].Since != now.UnixMicro() || next.Checks[0].Reason == "" {
		t.Errorf("by two of three: %+v", next)
	}
	held := o.judged(now, r)
	later := now.Add(2*check.Interval + time.Second) // a and c have been silent, and so has b all the time
	say("b", health.Healthy, check.Sum(), later)
	if next := healthOf(o.judged(later, held)); next.Holds || next.status() != health.Healthy {
		t.Errorf("by the only one that is not silent: %+v", next)
	}
}
