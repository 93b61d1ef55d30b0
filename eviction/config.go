package eviction

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/anteroom/anteroom/qpid"
)

// Config is what a node's file says of its cluster. Nodes may differ in Period and Urgent
// as far as Fresh is the same, and in what Bounds has; not in the rest. The zero value
// of a field means its default.
type Config struct {
	Period       time.Duration // between waves [200ms]
	Urgent       time.Duration // between waves when someone starts to wait [50ms]
	Deadline     time.Duration // Lc: a wave is answered within it or dropped [500ms]
	Lease        time.Duration // L: a node may admit this long after its last wave [10s]
	MaxSkew      time.Duration // ε: clocks differ by at most this, or their node is left out [500ms]
	ExcludeAfter time.Duration // silent this long: left out of waves, its slots voided [2s]
	Margin       time.Duration // on top of every wait for another clock [200ms]
	Fanout       int           // children of a tree node [8]
	Exact        int           // up to this many tickets a node tells one by one, more by samples [512]
	Samples      int           // certified samples per node above that [64]
	WaveBytes    int           // about how large a wave's messages may be; past it rooms take turns [1 MiB]
	Copies       int           // other nodes that keep a place in line, and go on with it if its node is lost: 0 or 1
}

// WithDefaults fills the zero fields.
func (c Config) WithDefaults() Config {
	c.Period = cmp.Or(c.Period, 200*time.Millisecond)
	c.Urgent = cmp.Or(c.Urgent, min(50*time.Millisecond, c.Period))
	c.Deadline = cmp.Or(c.Deadline, 500*time.Millisecond)
	c.Lease = cmp.Or(c.Lease, 10*time.Second)
	c.MaxSkew = cmp.Or(c.MaxSkew, 500*time.Millisecond)
	c.ExcludeAfter = cmp.Or(c.ExcludeAfter, 2*time.Second)
	c.Margin = cmp.Or(c.Margin, 200*time.Millisecond)
	c.Fanout = cmp.Or(c.Fanout, 8)
	c.Exact = cmp.Or(c.Exact, 512)
	c.Samples = cmp.Or(c.Samples, 64)
	c.WaveBytes = cmp.Or(c.WaveBytes, 1<<20)
	return c
}

// Fresh is for how long the word of a wave counts where no lease says so, as in the
// priority queues: some waves may come late. Nodes reckon with what others take for
// fresh, so it has to be the same at all of them; Period alone need not be.
func (c Config) Fresh() time.Duration {
	return max(600*time.Millisecond, 3*c.WithDefaults().Period)
}

// Validate returns every error at once, each saying what would be right.
func (c Config) Validate() error {
	c = c.WithDefaults()
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	for _, d := range []struct {
		name string
		d    time.Duration
	}{
		{"period", c.Period},
		{"urgent", c.Urgent},
		{"deadline", c.Deadline},
		{"lease", c.Lease},
		{"max_skew", c.MaxSkew},
		{"exclude_after", c.ExcludeAfter},
		{"margin", c.Margin},
	} {
		if d.d < 0 {
			bad("cluster.%s: %v is negative; give a positive duration", d.name, d.d)
		}
	}
	if c.Lease < 2*c.ExcludeAfter {
		bad("cluster.lease: %v is shorter than two detections; make it at least 2 × exclude_after = %v", c.Lease, 2*c.ExcludeAfter)
	}
	if c.Lease < roomsEvery+2*c.Period {
		bad("cluster.lease: %v is shorter than it may take until a wave speaks of a quiet room; make it at least %v", c.Lease, roomsEvery+2*c.Period)
	}
	if c.ExcludeAfter < 2*c.Period {
		bad("cluster.exclude_after: %v is shorter than two periods; make it at least %v", c.ExcludeAfter, 2*c.Period)
	}
	if c.Urgent > c.Period {
		bad("cluster.urgent: %v is longer than the period; make it at most %v", c.Urgent, c.Period)
	}
	if c.Fanout < 1 {
		bad("cluster.fanout: %d; make it at least 1", c.Fanout)
	}
	if c.Exact < 1 || c.Samples < 2 {
		bad("cluster: exact %d and samples %d; make them at least 1 and 2", c.Exact, c.Samples)
	}
	if c.WaveBytes < 0 {
		bad("cluster: wave_bytes %d is negative", c.WaveBytes)
	}
	if c.Copies < 0 || c.Copies > 1 {
		bad("cluster.copies: %d; give 1, or 0 for places that no other node keeps", c.Copies)
	}
	return errors.Join(errs...)
}

// roomsEvery is how often a wave speaks of a room in which nothing happens.
const roomsEvery = time.Second

// micros converts a duration to the core's unit.
func micros(d time.Duration) int64 { return d.Microseconds() }

// Method says who of the waiting goes next.
type Method uint8

// The queueing methods, with Cloudflare's names.
const (
	FIFO        Method = iota // first come, first served
	Random                    // a fair draw among the waiting at each wave
	Passthrough               // nobody waits; the limit is not held
	Reject                    // nobody is let in
)

func (m Method) String() string { return [...]string{"fifo", "random", "passthrough", "reject"}[m] }

// Algorithm says how the waiting are called.
type Algorithm uint8

const (
	// ByCut lets a wave call everyone up to a weight.
	ByCut Algorithm = iota
	// ByQPID calls one person per deleteMin, as in the thesis.
	ByQPID
)

func (a Algorithm) String() string { return [...]string{"cut", "qpid"}[a] }

// Policy says what a side of a partition without a quorum does.
type Policy uint8

const (
	// Majority: the side without a quorum keeps places and passes but calls nobody.
	Majority Policy = iota
	// Share: each side goes on with the slots it has.
	Share
	// Stop: nobody calls unless all voters are together.
	Stop
)

func (p Policy) String() string { return [...]string{"majority", "share", "stop"}[p] }

// admits reports whether people may be let in, and those of lost nodes taken
// over, in a room of this policy by a lease of that grade. onLine: the lease is of the
// line that the room is on; sides: the account may act on a side, see sharing.go.
func (p Policy) admits(g Grade, onLine, sides bool) bool {
	least := Primary
	if p == Stop {
		least = Unanimous
	}
	return g >= least && onLine || g >= Side && sides
}

// counts reports whether the people of a wave of that grade are the whole line: where each
// side goes on by itself they are its own line.
func (p Policy) counts(g Grade) bool { return g >= Primary || p == Share }

// Mode is what an operator does with a room by hand, whatever else its
// configuration says. Its slots stay where they are in every mode: what holds
// the limit does not depend on it.
type Mode uint8

const (
	// Normal: people are called as the configuration says.
	Normal Mode = iota
	// Held: nobody new is called or walks in. Who is on the site, or called
	// already, stays.
	Held
	// Draining: nobody joins. Those in line are called as ever.
	Draining
	// Deleted: for visitors there is no such room. The configuration stays, as a
	// tombstone: it is newer than any that would bring the room back by mistake,
	// and its slots are accounted for until the last pass has run out.
	Deleted
)

func (m Mode) String() string { return [...]string{"normal", "held", "draining", "deleted"}[m] }

// calls reports whether anybody is called in a room of this mode.
func (m Mode) calls() bool { return m != Held && m != Deleted }

// SurvivorAuto lets a side without a quorum go on alone after the larger of
// five minutes and D.
const SurvivorAuto time.Duration = -1

// Version orders a room's configurations: the last writer wins.
type Version struct {
	Stamp uint64 // hybrid logical clock, Unix microseconds
	By    qpid.NodeID
}

// Compare returns -1, 0 or +1 as v is older than, equal to or newer than o.
func (v Version) Compare(o Version) int {
	if c := cmp.Compare(v.Stamp, o.Stamp); c != 0 {
		return c
	}
	return cmp.Compare(v.By, o.By)
}

// Room is the configuration of one waiting room.
type Room struct {
	Name         string
	Target       int           // total_active_users: people on the site and called, at most
	NewPerMinute int           // new_users_per_minute; 0: no limit
	Session      time.Duration // session_duration: a pass is good this long without a refresh
	SessionMax   time.Duration // session_max: a visit is over after this long, however often it is extended; 0: no bound
	NoRenewal    bool          // a pass is not extended by a refresh
	Method       Method
	QueueAll     bool          // everyone queues, also when there is room
	Refresh      time.Duration // refresh_interval: upper bound between check-ins [20s]
	TicketTTL    time.Duration // a place is kept this long without a check-in [5m]
	ClaimWindow  time.Duration // after being called [2m]
	ClaimsMax    int           // calls that a place may let pass before it is stamped anew [2]
	Algorithm    Algorithm
	OnPartition  Policy
	Survivor     time.Duration // survivor_after: SurvivorAuto, or 0: never
	QueueMax     int           // people waiting at one node; more are refused [1,000,000]
	Events       []Event       // by time, none before the end of the one before it; see At
	Event        Event         // that holds: of a room with Events, At gives it
	Mode         Mode
	Reclaimed    []Member // nodes that an operator says will not return (OnPartition: Share, Stop)
	// Settings are what the node's owner has to know of the room. They go
	// wherever the rest goes; what is in them is the owner's business.
	Settings string
	Version  Version
}

// WithDefaults fills the zero fields.
func (r Room) WithDefaults() Room {
	r.Refresh = cmp.Or(r.Refresh, 20*time.Second)
	r.TicketTTL = cmp.Or(r.TicketTTL, 5*time.Minute)
	r.ClaimWindow = cmp.Or(r.ClaimWindow, 2*time.Minute)
	r.ClaimsMax = cmp.Or(r.ClaimsMax, 2)
	r.QueueMax = cmp.Or(r.QueueMax, 1_000_000)
	return r
}

// ToldClaim is for how long a call stands, at most, from the moment at which the
// browser was told of it: time for three requests, however seldom it makes them.
func (r *Room) ToldClaim() time.Duration {
	return min(r.ClaimWindow, max(toldMin, 3*r.Refresh))
}

const toldMin = 10 * time.Second

// ClaimsMost bounds Room.ClaimsMax.
const ClaimsMost = 50

// visitorsMax bounds numbers of visitors, so that sums and products of them fit.
const visitorsMax = 1_000_000_000

// Validate returns every error at once, each saying what would be right.
func (r Room) Validate() error {
	r = r.WithDefaults()
	var errs []error
	bad := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("room %q: "+format, append([]any{r.Name}, args...)...))
	}
	if r.Name == "" {
		bad("name: empty; give the room a name")
	}
	if r.Target < 0 || r.Target > visitorsMax {
		bad("total_active_users: %d; give 0 to %d", r.Target, visitorsMax)
	}
	if r.NewPerMinute < 0 || r.NewPerMinute > visitorsMax {
		bad("new_users_per_minute: %d; give 1 to %d, or 0 for no limit", r.NewPerMinute, visitorsMax)
	}
	if r.Session < 0 || r.Refresh <= 0 || r.TicketTTL <= 0 || r.ClaimWindow <= 0 {
		bad("session_duration %v, refresh_interval %v, ticket_ttl %v, claim_window %v: none may be negative, only the first may be zero",
			r.Session, r.Refresh, r.TicketTTL, r.ClaimWindow)
	}
	if r.SessionMax < 0 || r.SessionMax > 0 && r.SessionMax < r.Session {
		bad("session_max: %v is shorter than session_duration %v; give at least as much, or 0 for no bound", r.SessionMax, r.Session)
	}
	if r.TicketTTL < r.Refresh {
		bad("ticket_ttl: %v is shorter than refresh_interval %v; people would lose their place while they wait as told", r.TicketTTL, r.Refresh)
	}
	if r.Survivor < 0 && r.Survivor != SurvivorAuto {
		bad("survivor_after: %v is negative; give auto, or 0 for never", r.Survivor)
	}
	if r.ClaimsMax < 1 || r.ClaimsMax > ClaimsMost {
		bad("claims_max: %d; give 1 to %d", r.ClaimsMax, ClaimsMost)
	}
	if r.QueueMax < 1 {
		bad("queue_max: %d; give 1 or more", r.QueueMax)
	}
	if r.Method > Reject || r.Algorithm > ByQPID || r.OnPartition > Stop || r.Mode > Deleted {
		bad("queueing_method, algorithm, on_partition or mode is unknown")
	}
	r.checkEvents(bad)
	if r.Method == Random && r.Algorithm == ByQPID {
		bad("queueing_method random needs algorithm cut")
	}
	return errors.Join(errs...)
}

func durationOf(micros int64) time.Duration { return time.Duration(micros) * time.Microsecond }
