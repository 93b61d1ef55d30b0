package load_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/anteroom/anteroom/internal/load"
)

// These tests run in bubbles: their time is not that of the machine.

func TestACrowdGetsThroughInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(10)
		got := send(t, t.Context(), r, func(c *load.Config) {
			c.Arrivals.Users, c.Manners.Stay, c.Manners.Browse, c.Limit = 200, time.Second, 3, 10
		})
		if got.Visitors != (load.Visitors{Came: 200, Done: 200}) || got.Retries != 0 || len(got.Errors) != 0 {
			t.Errorf("visitors %+v, retries %d, errors %v, want 200 done", got.Visitors, got.Retries, got.Errors)
		}
		for name, want := range map[string]int64{"join": 200, "leave": 190, "browse": 600, "end": 200} {
			if n := got.Requests[name].Count; n != want {
				t.Errorf("%d requests of kind %s, want %d", n, name, want)
			}
		}
		f := got.Report
		if f.N != 190 || f.OpenAdmissions != 10 || *f.DiscordantPairs != 0 || *f.OverLimitMax != 0 || f.CallDelay != nil || got.Unordered != 0 {
			t.Errorf("report = %+v", f)
		}
		// Ten at a time stay for a second: 190 others take their turns in 19 rounds or so.
		if got.HeldMost != 10 || r.most != 10 || f.MaxWait < 17 || f.MaxWait > 40 || f.Wait.P50 > f.MaxWait*2/3 {
			t.Errorf("%d passes at a time, the room counted %d; waits %+v, at most %v s", got.HeldMost, r.most, f.Wait, f.MaxWait)
		}
		sum := int32(0)
		for _, s := range got.Course {
			sum += s.Done
		}
		if sum != 200 || got.Seconds < f.MaxWait || got.VisitorsPerSecond != 200/got.Seconds {
			t.Errorf("the course has %d done, in %v s, %v a second", sum, got.Seconds, got.VisitorsPerSecond)
		}
	})
}

func TestAnUnfairRoomIsFoundOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(1)
		r.backward = true
		got := send(t, t.Context(), r, func(c *load.Config) { c.Arrivals.Users, c.Manners.Stay = 50, time.Second })
		if f := got.Report; *f.KendallTau < 0.9 || *f.MaxOvertakenBy < 40 {
			t.Errorf("kendall_tau %v, overtaken by %d, want a line that goes backward", *f.KendallTau, *f.MaxOvertakenBy)
		}
	})
}

func TestTheOrderOfAMuteRoomIsNotMeasurable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(1)
		r.mute = true
		got := send(t, t.Context(), r, func(c *load.Config) { c.Arrivals.Users, c.Manners.Stay = 5, time.Second })
		if n := got.Report.N; got.Report.KendallTau != nil || n != 4 || got.Unordered != n || got.Report.MaxWait == 0 {
			t.Errorf("%d without a wave, report %+v", got.Unordered, got.Report)
		}
	})
}

func TestVisitorsStayWithTheirGateway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(5)
		got := send(t, t.Context(), r, func(c *load.Config) {
			c.URLs, c.Arrivals.Users = []string{"http://a", "http://b", "http://c"}, 60
		})
		met := map[string]string{}
		for host, tokens := range r.gates {
			for token := range tokens {
				if other, ok := met[token]; ok {
					t.Errorf("%s was at %s and at %s", token, host, other)
				}
				met[token] = host
			}
			if len(tokens) != 20 {
				t.Errorf("%d visitors at %s, want 20", len(tokens), host)
			}
		}
		if got.Visitors.Done != 60 {
			t.Errorf("visitors %+v", got.Visitors)
		}
	})
}

func TestVisitorsGoOverWhenTheirGatewayIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(100)
		dial := street(t, r, "a", "b")
		var closed atomic.Bool
		g, err := load.New(load.Config{
			URLs: []string{"http://a", "http://b"}, Room: "shop", Connections: 2, Arrivals: load.Arrivals{Users: 10},
			Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
				if closed.Load() && address == "b:80" {
					return nil, &net.OpError{Op: "dial", Err: errNobody}
				}
				return dial(ctx, network, address)
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := g.Reach(t.Context()); err != nil {
			t.Fatal(err)
		}
		closed.Store(true)
		got := g.Run(t.Context())
		if got.Visitors.Done != 10 || got.Visitors.Moved != 5 || got.Errors["cannot connect: "+errNobody.Error()] != 15 {
			t.Errorf("visitors %+v, errors %v, want those of b to be at a after three tries", got.Visitors, got.Errors)
		}
	})
}

func TestBusyGatewaysAreAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(100)
		var n, tooSoon atomic.Int64
		last := map[string]time.Time{}
		r.answer = func(w http.ResponseWriter, q *http.Request) bool {
			if strings.HasSuffix(q.URL.Path, "/status") {
				return false
			}
			if time.Since(last[q.URL.Path]) < 3*time.Second {
				tooSoon.Add(1)
			}
			if n.Add(1)%3 != 0 {
				last[q.URL.Path] = time.Now()
				w.Header().Set("Retry-After", "3")
				problem(w, []int{503, 429}[n.Load()%2], "busy")
				return true
			}
			delete(last, q.URL.Path)
			return false
		}
		got := send(t, t.Context(), r, func(c *load.Config) { c.Arrivals.Users, c.Connections = 1, 1 })
		want := map[string]int64{"429 busy": 2, "503 busy": 2}
		if diff := cmp.Diff(want, got.Errors); diff != "" || got.Visitors.Done != 1 || got.Retries != 4 || tooSoon.Load() != 0 {
			t.Errorf("visitors %+v, %d retries, %d too soon; errors (-want +got):\n%s", got.Visitors, got.Retries, tooSoon.Load(), diff)
		}
	})
}

func TestPatienceEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(100)
		r.answer = func(w http.ResponseWriter, q *http.Request) bool {
			if strings.HasSuffix(q.URL.Path, "/status") {
				return false
			}
			problem(w, 503, "unavailable")
			return true
		}
		got := send(t, t.Context(), r, func(c *load.Config) { c.Arrivals.Users, c.Patience = 3, 10*time.Second })
		if diff := cmp.Diff(map[string]int64{"join: 503 unavailable": 3}, got.Lost); diff != "" || got.Visitors.Lost != 3 || got.Seconds < 10 || got.Seconds > 13 {
			t.Errorf("%+v after %v s; lost (-want +got):\n%s", got.Visitors, got.Seconds, diff)
		}
	})
}

// Whatever a gateway says, a visitor either gets through or is lost with a reason.
func TestStrangeAnswersLoseVisitors(t *testing.T) {
	for answer, want := range map[string]string{
		`{"state":"admitted","joined_at":"2026-11-21T12:19:15Z"}`:               "join: the answer has no pass",
		`{"state":"waiting","joined_at":"2026-11-21T12:19:15Z"}`:                "join: the answer has no ticket",
		`{"state":"waiting","ticket":"a b","joined_at":"2026-11-21T12:19:15Z"}`: "join: the answer has no ticket",
		`{"state":"waiting","ticket":"a"}`:                                      "join: the answer has no joined_at",
		`{"state":"asleep","ticket":"a","joined_at":"2026-11-21T12:19:15Z"}`:    `join: the answer has the state "asleep"`,
		``:       "join: the answer has no joined_at",
		`<html>`: "join: the answer is not the JSON that a gateway sends",
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRoom(1)
			r.answer = func(w http.ResponseWriter, q *http.Request) bool {
				if strings.HasSuffix(q.URL.Path, "/status") {
					return false
				}
				fmt.Fprint(w, answer)
				return true
			}
			got := send(t, t.Context(), r, func(c *load.Config) { c.Arrivals.Users = 1 })
			if diff := cmp.Diff(map[string]int64{want: 1}, got.Lost); diff != "" {
				t.Errorf("%s (-want +got):\n%s", answer, diff)
			}
		})
	}
}

func TestAPassThatIsGoodNoLongerLosesTheVisitor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(1)
		r.answer = func(w http.ResponseWriter, q *http.Request) bool {
			if q.URL.Path == "/page" {
				w.WriteHeader(http.StatusTooManyRequests)
			}
			return q.URL.Path == "/page"
		}
		got := send(t, t.Context(), r, func(c *load.Config) { c.Arrivals.Users, c.Manners.Browse = 1, 1 })
		if diff := cmp.Diff(map[string]int64{"browse: 429": 1}, got.Lost); diff != "" || got.Retries != 0 {
			t.Errorf("%d retries; lost (-want +got):\n%s", got.Retries, diff)
		}
	})
}

func TestSomeGiveUpAndSomeReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(5)
		got := send(t, t.Context(), r, func(c *load.Config) {
			c.Arrivals.Users, c.Manners = 100, load.Manners{Stay: time.Second, Abandon: 0.5, Return: 1}
		})
		v := got.Visitors
		if v.Abandoned < 20 || v.Abandoned > 60 || v.Done+v.Abandoned != 100 || v.Returned != v.Done || v.Lost != 0 {
			t.Errorf("visitors %+v, want about half to give up, and all others to return and get through", v)
		}
		if r.asked["abandon"] != int(v.Abandoned) || r.asked["refresh"] != int(v.Done) || r.active != 0 || len(r.line) != 0 {
			t.Errorf("the room was asked %v, has %d on the site and %d in line", r.asked, r.active, len(r.line))
		}
	})
}

// A pass is not held any longer when it has expired.
func TestAnExpiredPassIsNotHeld(t *testing.T) {
	for session, want := range map[time.Duration]int{time.Millisecond: 1, time.Hour: 5} {
		synctest.Test(t, func(t *testing.T) {
			r := newRoom(10)
			r.session = session
			got := send(t, t.Context(), r, func(c *load.Config) {
				c.Arrivals, c.Manners.Stay = load.Arrivals{Rate: 1, Users: 5}, 10*time.Minute
			})
			if got.HeldMost != want || got.Visitors.Done != 5 {
				t.Errorf("%d passes at a time that are good for %v, want %d; %+v", got.HeldMost, session, want, got.Visitors)
			}
		})
	}
}

// Who comes back when the pass has expired joins again.
func TestWhoReturnsTooLateJoinsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(5)
		refused := 0
		r.answer = func(w http.ResponseWriter, q *http.Request) bool {
			if strings.HasSuffix(q.URL.Path, "/refresh") {
				refused++
				problem(w, http.StatusGone, "pass_expired")
				return true
			}
			return false
		}
		got := send(t, t.Context(), r, func(c *load.Config) {
			c.Arrivals.Users, c.Manners.Return, c.Connections = 2, 1, 1
		})
		if got.Visitors != (load.Visitors{Came: 2, Done: 2, Returned: 2}) || r.asked["join"] != 4 || refused != 2 || got.Report.OpenAdmissions != 4 {
			t.Errorf("visitors %+v, requests %v, report %+v", got.Visitors, r.asked, got.Report)
		}
	})
}

func TestCheckInEveryOverridesWhatTheGatewaySays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(0)
		got := send(t, t.Context(), r, func(c *load.Config) {
			c.Arrivals = load.Arrivals{Users: 100, Duration: 10 * time.Second}
			c.Manners.CheckInEvery = 100 * time.Millisecond
		})
		if n := got.Requests["check_in"].Count; n < 9_900 || n > 10_000 {
			t.Errorf("%d check-ins, want ten a second of 100 visitors for ten seconds", n)
		}
		if got.Visitors != (load.Visitors{Came: 100, Waiting: 100}) || got.Stopped || got.Seconds != 10 {
			t.Errorf("visitors %+v, stopped %v, after %v s", got.Visitors, got.Stopped, got.Seconds)
		}
	})
}

func TestTheClosedModelHasSoManyAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(1000)
		got := send(t, t.Context(), r, func(c *load.Config) {
			c.Arrivals = load.Arrivals{Users: 90, Concurrency: 30, Drain: -1}
			c.Manners.Stay = time.Second
		})
		if got.Visitors.Done != 90 || r.most != 30 || got.Seconds < 2 {
			t.Errorf("%+v, at most %d at a time, in %v s; want 30", got.Visitors, r.most, got.Seconds)
		}
	})
}

func TestTheOpenModelComesAtItsRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(10_000)
		got := send(t, t.Context(), r, func(c *load.Config) {
			c.URLs = []string{"http://a", "http://b"}
			c.Arrivals = load.Arrivals{Rate: 50, Duration: time.Minute, Drain: -1}
		})
		if n := got.Visitors.Came; n < 2750 || n > 3250 || got.Visitors.Done != n || got.Model != "open" {
			t.Errorf("%+v, want about 3,000 of them", got.Visitors)
		}
		if got.Requests["join"].Latency.Max > 0.001 {
			t.Errorf("latency %+v, want none in a bubble", got.Requests["join"].Latency)
		}
	})
}

// A gateway that stalls for two seconds keeps everybody waiting who was to come
// meanwhile, and that is what the latencies say.
func TestTheOpenModelLeavesNoDelayOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(10_000)
		began := time.Now()
		r.answer = func(_ http.ResponseWriter, q *http.Request) bool {
			if at := time.Since(began); strings.HasSuffix(q.URL.Path, "/join") && at > 4*time.Second && at < 6*time.Second {
				time.Sleep(6*time.Second - at)
			}
			return false
		}
		got := send(t, t.Context(), r, func(c *load.Config) {
			c.Arrivals, c.Connections = load.Arrivals{Rate: 100, Duration: 10 * time.Second, Drain: -1}, 1
		})
		l := got.Requests["join"].Latency
		if l.P50 > 0.01 || l.P90 < 0.8 || l.P90 > 1.2 || l.P99 < 1.8 || l.Max > 2.1 {
			t.Errorf("latencies %+v, want a fifth of them spread over two seconds", l)
		}
		if got.Late.P99 < 1 {
			t.Errorf("late by %+v, want to hear that one connection was too few", got.Late)
		}
	})
}

func TestWhoIsStoppedReportsSoFar(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		r := newRoom(10)
		got := send(t, ctx, r, func(c *load.Config) {
			c.Arrivals = load.Arrivals{Rate: 10, Users: 1000}
			c.Manners.Stay = 2 * time.Second
		})
		v := got.Visitors
		if !got.Stopped || v.Came < 20 || v.Came > 80 || v.Done == 0 || v.OnSite == 0 || v.Came != v.Done+v.OnSite+v.Waiting || v.Lost != 0 || len(got.Errors) != 0 {
			t.Errorf("stopped %v, visitors %+v, errors %v", got.Stopped, v, got.Errors)
		}
		if got.Report.N+got.Report.OpenAdmissions < int(v.Done) {
			t.Errorf("report %+v, want at least the %d who are done in it", got.Report, v.Done)
		}
	})
}

// A request that hangs does not keep the generator when it is stopped.
func TestARequestThatHangsIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		r := newRoom(10)
		r.answer = func(_ http.ResponseWriter, q *http.Request) bool {
			if strings.HasSuffix(q.URL.Path, "/join") {
				<-q.Context().Done()
			}
			return false
		}
		got := send(t, ctx, r, func(c *load.Config) { c.Arrivals.Users = 3 })
		if !got.Stopped || got.Seconds > 5.1 || got.Visitors != (load.Visitors{Came: 3, Waiting: 3}) || len(got.Errors) != 0 {
			t.Errorf("after %v s: %+v, errors %v", got.Seconds, got.Visitors, got.Errors)
		}
	})
}

// A gateway that closes idle connections costs a new one, and nobody notices.
func TestAConnectionThatWasIdleForTooLongIsMadeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(10)
		r.session = 2 * time.Hour
		got := send(t, t.Context(), r, func(c *load.Config) {
			c.Arrivals.Users, c.Connections, c.Manners.Stay = 1, 1, time.Hour
		})
		if got.Visitors.Done != 1 || got.Reconnects != 1 || got.Retries != 0 || len(got.Errors) != 0 {
			t.Errorf("%+v, %d reconnects, %d retries, errors %v", got.Visitors, got.Reconnects, got.Retries, got.Errors)
		}
	})
}

func TestTheSameSeedDrawsTheSame(t *testing.T) {
	came := func(seed uint64) (v load.Visitors) {
		synctest.Test(t, func(t *testing.T) {
			v = send(t, t.Context(), newRoom(1000), func(c *load.Config) {
				c.Seed, c.Arrivals = seed, load.Arrivals{Rate: 20, Duration: 20 * time.Second, Drain: -1}
				c.Manners = load.Manners{Return: 0.5, Stay: time.Second}
			}).Visitors
		})
		return v
	}
	if a, b, c := came(1), came(1), came(2); a != b || a == c {
		t.Errorf("seeds 1, 1 and 2 gave %+v, %+v and %+v", a, b, c)
	}
}
