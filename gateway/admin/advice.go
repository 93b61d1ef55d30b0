package admin

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"
)

// Advice is something that an operator might change, with the figures that speak for
// it. It goes by what has happened, and does not know what the site bears.
type Advice struct {
	Key  string `json:"key"` // of the room's configuration
	Text string `json:"text"`
}

// Setup is what advice has to know of a room's configuration.
type Setup struct {
	Session time.Duration
	Renewal bool
	Claim   time.Duration
}

// setupOf reads it from a room's keys.
func setupOf(keys []byte) (Setup, error) {
	var k struct {
		Session string `json:"session_duration"`
		Renewal bool   `json:"session_renewal"`
		Claim   string `json:"claim_window"`
	}
	if err := json.Unmarshal(keys, &k); err != nil {
		return Setup{}, err
	}
	session, err := time.ParseDuration(k.Session)
	if err != nil {
		return Setup{}, err
	}
	claim, err := time.ParseDuration(k.Claim)
	return Setup{session, k.Renewal, claim}, err
}

// setup is that of a room; zero: nobody knows it.
func (a *admin) setup(room string) (s Setup) {
	c, ok := a.c.Operator.Configured(room)
	if !ok {
		return s
	}
	s, err := setupOf(c.Keys)
	if err != nil {
		a.c.Logger.Warn("advice without the room's settings", "room", room, "err", err)
	}
	return s
}

// Below so many of what it goes by there is no advice.
const (
	evidence = 100              // visits, calls or places
	crowded  = 10 * time.Minute // in which people waited
)

// Advise says what the figures of a span speak for. While nobody had to wait there is
// nothing to gain, and it says nothing.
func Advise(s Setup, f *Figures) []Advice {
	all := []Advice{}
	c := crowdOf(f)
	if c.steps*time.Duration(f.Step)*time.Second < crowded {
		return all
	}
	add := func(key, format string, args ...any) {
		if format != "" {
			all = append(all, Advice{key, fmt.Sprintf(format, args...)})
		}
	}
	t := &f.Total
	if t.Visit.Count >= evidence && s.Session > 0 {
		adviseSession(s, t, add)
	}
	switch admitted := c.admitted / (float64(c.steps) * float64(f.Step) / 60); {
	case c.rate > 0 && c.limit > 0 && c.onSite < 0.7*c.limit:
		add("new_users_per_minute", "While people waited %.0f of %.0f places on the site were taken on average: new_users_per_minute (%.0f) made them wait, not total_active_users. Raise it if the site bears more newcomers.", c.onSite, c.limit, c.rate)
	case c.rate > 0 && c.limit > 0 && c.onSite > 0.9*c.limit && admitted < 0.5*c.rate:
		add("total_active_users", "While people waited %.0f of %.0f places on the site were taken, and %.0f a minute got in where new_users_per_minute allows %.0f: total_active_users made them wait. Raise it if the site bears more people.", c.onSite, c.limit, admitted, c.rate)
	}
	if share := t.NoShows / math.Max(1, t.Calls); t.Calls >= evidence && share > 0.1 && s.Claim > 30*time.Second {
		add("claim_window", "%.0f %% of the calls found nobody, and each kept a place on the site empty for claim_window, %s. With %s they go on to the next person sooner.", 100*share, spell(s.Claim), spell(roundUp(s.Claim/2)))
	}
	if joined := t.Joins - t.WalkedIn; joined >= evidence && t.DropOuts > 0.3*joined && t.Wait.P50 != nil {
		add("ticket_ttl", "%.0f %% of those who queued gave up or fell silent; half of those who stayed waited for up to %s. A message on the page that says why they wait keeps people, and a longer ticket_ttl keeps the places of phones that sleep.", 100*t.DropOuts/joined, spell(seconds(*t.Wait.P50)))
	}
	return all
}

// adviseSession compares visits with session_duration, how long a place is kept for
// somebody of whom nothing is heard.
func adviseSession(s Setup, t *Totals, add func(key, format string, args ...any)) {
	half, most := seconds(*t.Visit.P50), seconds(*t.Visit.P95)
	ran := t.EndsExpired / math.Max(1, t.EndsExpired+t.EndsLeft)
	shorter := roundUp(most)
	switch {
	case !s.Renewal && ran > 0.5 && half > s.Session*9/10:
		add("session_duration", "Half of the visits last for as long as they may, %s, and are over then: people may be cut off before they are done. Give them a longer session_duration, or set session_renewal.", spell(s.Session))
	case ran <= 0.5 && shorter <= s.Session*2/3:
		add("session_duration", "Half of the visits end in %s and 95 %% in %s; sessions last %s. Who goes away without a word keeps a place for that long: with %s it is free sooner, and nearly nobody would notice.", spell(half), spell(most), spell(s.Session), spell(shorter))
	case s.Renewal && ran > 0.5 && s.Session >= 2*time.Minute && half < 2*s.Session:
		add("session_duration", "%.0f %% of the visits ended because nothing was heard for session_duration, %s: half of all people were there for some %s, and their places were taken for %s. A shorter one frees them sooner, and so does ending the visit when somebody has paid or logs out.", 100*ran, spell(s.Session), spell(max(0, half-s.Session)), spell(half))
	}
}

// crowd is how a room was while people waited in it.
type crowd struct {
	steps                         time.Duration // how many
	onSite, limit, rate, admitted float64       // on average; admitted in all
}

func crowdOf(f *Figures) (c crowd) {
	for i := range f.Time {
		if !(f.Queued[i] >= 1) || f.State[i] != "queueing" || math.IsNaN(f.Limit[i]) {
			continue
		}
		c.steps++
		c.onSite, c.limit, c.rate = c.onSite+f.OnSite[i]+f.Called[i], c.limit+f.Limit[i], c.rate+f.Rate[i]
		c.admitted += f.Admissions[i]
	}
	if n := float64(c.steps); n > 0 {
		c.onSite, c.limit, c.rate = c.onSite/n, c.limit/n, c.rate/n
	}
	return c
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// roundUp makes a time that somebody would set: whole minutes, or tens of seconds.
func roundUp(d time.Duration) time.Duration {
	step := time.Minute
	if d <= 2*time.Minute {
		step = 10 * time.Second
	}
	return (d + step - 1) / step * step
}

// spell is a time as people write it.
func spell(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		d = d.Round(100 * time.Millisecond)
	case d < time.Hour:
		d = d.Round(time.Second)
	default:
		d = d.Round(time.Minute)
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
