package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/anteroom/anteroom/gateway/admin"
	"github.com/anteroom/anteroom/internal/term"
)

// adminDefault is where a node's admin port is unless it is told otherwise.
const adminDefault = "http://127.0.0.1:9090"

// everyMin keeps a slip from keeping a node busy.
const everyMin = 100 * time.Millisecond

func (p *program) statusCommand() *cobra.Command {
	var watch, asJSON bool
	var wait time.Duration
	client := adminClient{url: adminDefault}
	every := time.Second
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show a cluster and its rooms, as one of its nodes sees them",
		Example: `  anteroom status
  anteroom status --wait
  anteroom status --watch --admin http://10.0.0.2:9090`,
		Args: noCommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if every < everyMin {
				return wrongUsage(fmt.Errorf("--every %v; give a time of at least %v", every, everyMin))
			}
			if wait > 0 {
				if err := client.await(cmd.Context(), wait); err != nil {
					return unlessStopped(cmd.Context(), err)
				}
			}
			var before status
			for {
				s, err := client.status(cmd.Context())
				if err != nil && (!watch || cmd.Context().Err() != nil) {
					return unlessStopped(cmd.Context(), err)
				}
				_ = client.get(cmd.Context(), "/v1/slots", &s.Slots) // the rest is worth showing without
				s.trend = trend(before.Rooms, s.Rooms)
				before = s
				p.showStatus(s, err, watch, asJSON)
				if !watch {
					return nil
				}
				select {
				case <-cmd.Context().Done():
					return nil
				case <-time.After(every):
				}
			}
		},
	}
	cmd.Flags().BoolVar(&watch, "watch", false, "go on showing it")
	cmd.Flags().DurationVar(&wait, "wait", 0, "first wait, this `LONG` at most [1m], until the node answers and its cluster serves")
	cmd.Flags().Lookup("wait").NoOptDefVal = "1m"
	cmd.Flags().DurationVar(&every, "every", every, "with --watch: how often")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON, with --watch one object a line")
	client.add(cmd)
	return cmd
}

// awaitEvery is how often a node is asked whether it serves.
const awaitEvery = 200 * time.Millisecond

// settlesIn is for how long a node that serves is asked on while a room in which nobody
// is has not opened: the places of a new one are on their way to the nodes.
const settlesIn = 2 * time.Second

// await waits until a node answers, all members that it sees are in its waves, and new
// rooms have opened.
func (a *adminClient) await(ctx context.Context, within time.Duration) error {
	over := time.NewTimer(within)
	defer over.Stop()
	often := time.NewTicker(awaitEvery)
	defer often.Stop()
	var served time.Time // since when it serves; zero: it does not
	for {
		s, err := a.status(ctx)
		c := &s.Cluster
		switch serves := err == nil && c.Waiting == "" && inWave(c.Members) == len(c.Members); {
		case !serves:
			served = time.Time{}
		case !slices.ContainsFunc(s.Rooms, settles) || !served.IsZero() && time.Since(served) >= settlesIn:
			return nil
		case served.IsZero():
			served = time.Now()
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-over.C:
			if !served.IsZero() {
				return nil
			}
			if err == nil {
				err = fmt.Errorf("%s is not serving: %s", c.Node, cmp.Or(c.Waiting, fmt.Sprintf("%d of %s are in its waves", inWave(c.Members), nodesText(len(c.Members)))))
			}
			return fmt.Errorf("after %v: %w", within, err)
		case <-often.C:
		}
	}
}

// settles reports whether nobody is in a room, or waits for it, and it may open yet.
func settles(r admin.Room) bool {
	return !r.Open && !r.Suspended && r.Paused == "" && r.HeldUntil == nil && r.Queued+r.Called+r.Active == 0
}

// trend is how the people who wait in each room have become more since the last
// look, or fewer.
func trend(before, now []admin.Room) map[string]int {
	by := make(map[string]int, len(now))
	was := make(map[string]int, len(before))
	for i := range before {
		was[before[i].Name] = before[i].Queued
	}
	for i := range now {
		if queued, known := was[now[i].Name]; known {
			by[now[i].Name] = now[i].Queued - queued
		}
	}
	return by
}

// unlessStopped drops an error that Ctrl-C has caused.
func unlessStopped(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// status is a cluster and its rooms, and what is known of the origins behind them.
type status struct {
	Cluster admin.Cluster      `json:"cluster"`
	Rooms   []admin.Room       `json:"rooms"`
	Health  []admin.RoomHealth `json:"health"`
	Slots   admin.SlotsList    `json:"slots"`
	trend   map[string]int     // see there
}

func (a *adminClient) status(ctx context.Context) (s status, err error) {
	if err := a.get(ctx, "/v1/cluster", &s.Cluster); err != nil {
		return s, err
	}
	if s.Cluster.Node == "" { // JSON, but whose?
		return s, a.stranger("no node is named in the answer to /v1/cluster")
	}
	var rooms admin.RoomList
	var health admin.HealthList
	err = a.get(ctx, "/v1/rooms", &rooms)
	if err == nil {
		err = a.get(ctx, "/v1/health", &health)
	}
	s.Rooms, s.Health = rooms.Rooms, health.Rooms
	return s, err
}

// showStatus prints one look. When watched on a terminal it writes over the
// last one.
func (p *program) showStatus(s status, err error, watch, asJSON bool) {
	if asJSON {
		if err != nil {
			fmt.Fprintln(p.stderr, err)
			return
		}
		line, _ := json.Marshal(s) // strings and numbers
		fmt.Fprintf(p.stdout, "%s\n", line)
		return
	}
	var b bytes.Buffer
	if watch && term.IsTerminal(p.stdout) {
		b.WriteString("\x1b[H\x1b[2J") // home, and clear
	}
	if err != nil {
		fmt.Fprintln(&b, err)
	} else {
		writeStatus(&b, s, p.now())
	}
	if watch {
		fmt.Fprintln(&b)
	}
	fmt.Fprint(p.stdout, b.String())
}

func writeStatus(b *bytes.Buffer, s status, now time.Time) {
	c := &s.Cluster
	switch {
	case c.Relay != "":
		fmt.Fprintf(b, "%s is left out of the waves, and %s answers its visitors meanwhile: is the network between it and %s well?\n", c.Node, c.Relay, c.Coordinator)
	case c.Grade == "side" && !c.Quarantined && len(c.Voters) > 0:
		fmt.Fprintf(b, "%s is on a side without a quorum of %s; places and passes are kept\n", c.Node, strings.Join(c.Voters, ", "))
	case c.Waiting != "":
		fmt.Fprintf(b, "%s is not serving: %s\n", c.Node, c.Waiting)
	default:
		fmt.Fprintf(b, "%s sees %s in wave %d, run by %s\n", c.Node, nodesText(inWave(c.Members)), c.Epoch, c.Coordinator)
	}
	for _, w := range c.Warnings {
		fmt.Fprintf(b, "warning: %s\n", w)
	}
	fmt.Fprintln(b)
	rows := make([][]string, 0, len(c.Members))
	for _, m := range c.Members {
		state := "in the wave"
		if !m.InWave {
			state = "alive, left out of waves"
		}
		trip := "-"
		if m.RoundTrip > 0 {
			trip = fmt.Sprintf("%.1f ms", 1000*m.RoundTrip)
		}
		row := append([]string{m.Name, state, m.Parent, trip, now.Sub(m.Started).Round(time.Second).String()}, s.slotsOf(m.Name)...)
		rows = append(rows, append(row, cmp.Or(m.Address, "-")))
	}
	_ = term.WriteTable(b, []string{"node", "state", "parent", "round trip", "up", "slots", "waiting", "kept elsewhere", "peer address"}, rows) // a buffer
	fmt.Fprintln(b)
	rows = rows[:0]
	for i := range s.Rooms {
		row := roomRow(&s.Rooms[i])
		if by := s.trend[s.Rooms[i].Name]; by != 0 {
			row[4] += fmt.Sprintf(" (%+d)", by)
		}
		rows = append(rows, row)
	}
	_ = term.WriteTable(b, []string{"room", "limit", "on site", "called", "waiting", "called/min", "wait", "state"}, rows)
	writeOrigins(b, s.Health)
}

// slotsOf is what a node has, in all rooms: its slots, and those in line there and how many
// of them another node keeps too. It is what the loss of that node would cost.
func (s *status) slotsOf(node string) []string {
	for _, n := range s.Slots.Nodes {
		if n.Node == node && n.Answers {
			return []string{fmt.Sprint(n.SlotsOwned), fmt.Sprint(n.Queued), fmt.Sprint(n.KeptElsewhere)}
		}
	}
	return []string{"-", "-", "-"}
}

func inWave(members []admin.Member) (n int) {
	for _, m := range members {
		if m.InWave {
			n++
		}
	}
	return n
}

func roomRow(r *admin.Room) []string {
	state := "full"
	switch {
	case r.Queued > 0:
		state = "queueing"
	case r.Called+r.Active < r.TotalActiveUsers:
		state = "in turn" // whoever comes is called by a wave
	}
	switch {
	case r.Here.Broken != "":
		state = "given up by this node, until it is restarted: " + r.Here.Broken
	case r.Here.Unwritten:
		state = "nobody is called by this node: its disk takes no visits"
	case r.Suspended:
		state = "suspended: everyone goes through"
	case r.Paused != "":
		state = "paused: " + r.Paused
	case r.HeldUntil != nil:
		state = "held until " + r.HeldUntil.Local().Format(time.TimeOnly) + ": passes of before the restart may still be good"
	case r.Open:
		state = "open"
	}
	if r.SlotsMissing > 0 && r.WholeAt != nil && r.HeldUntil == nil {
		state += fmt.Sprintf("; %d places of a lost node are back at %s", r.SlotsMissing, r.WholeAt.Local().Format(time.TimeOnly))
	}
	if r.CountedAt != nil {
		state += "; those who wait were counted at " + r.CountedAt.Local().Format(time.TimeOnly)
	}
	wait := "-"
	if r.Queued > 0 && r.EstimatedWaitSeconds > 0 {
		wait = time.Duration(r.EstimatedWaitSeconds * float64(time.Second)).Round(time.Second).String()
	}
	return []string{
		r.Name, fmt.Sprint(r.TotalActiveUsers), fmt.Sprint(r.Active), fmt.Sprint(r.Called), fmt.Sprint(r.Queued),
		fmt.Sprintf("%.0f", r.AdmittedPerMinute), wait, state,
	}
}
