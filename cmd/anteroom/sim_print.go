package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/term"
	"github.com/anteroom/anteroom/internal/trials"
)

// print shows the runs to people.
func (r *recorder) print() {
	fmt.Fprintf(r.stdout, "%s\n\n", r.describe())
	if r.all.Runs == 0 {
		fmt.Fprintln(r.stdout, "no run gave figures")
		return
	}
	header, rows := r.table()
	term.WriteTable(r.stdout, header, rows) //nolint:errcheck // a terminal that is gone cannot be told
	if r.all.Stuck > 0 {
		fmt.Fprintf(r.stdout, "\nIn %d of %d runs too many nodes were lost for anybody to be let in afterwards.\n", r.all.Stuck, r.all.Runs)
	}
	if r.folder != nil {
		fmt.Fprintf(r.stdout, "\nwrote %s: %s\n", r.out, strings.Join(r.folder.Files(), ", "))
	}
}

// describe is what was simulated, in a line.
func (r *recorder) describe() string {
	o, room := &r.options, &r.options.Rooms[0]
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s apart, %s in %s, room for %s, %s", counted(o.Nodes, "node"), shortRange(o.Net.Latency),
		counted(o.Users, "visitor"), short(o.Span), term.Count(int64(room.Target)), r.rules(room))
	for _, f := range []struct {
		n    int
		what string
	}{{o.Faults.Kills, "killed"}, {o.Faults.Adds, "added"}} {
		if f.n > 0 {
			fmt.Fprintf(&b, ", %d %s", f.n, f.what)
		}
	}
	if o.Faults.Partitions > 0 {
		fmt.Fprintf(&b, ", %s", counted(o.Faults.Partitions, "partition"))
	}
	if n := r.all.Runs + r.all.Failed; n == 1 {
		fmt.Fprintf(&b, "; seed %d", r.seed)
	} else if n > 1 {
		fmt.Fprintf(&b, "; %d runs, seeds %d to %d", n, r.seed, r.seed+uint64(n)-1)
	}
	if r.all.Failed > 0 && r.all.Runs > 0 {
		fmt.Fprintf(&b, ", the %d that failed left out", r.all.Failed)
	}
	return b.String()
}

func (r *recorder) rules(room *eviction.Room) string {
	rules := []string{"first come, first served", "by draw"}[room.Method]
	rules += [...]string{"", " by deleteMin"}[room.Algorithm]
	if room.QueueAll {
		rules += ", everyone queues"
	}
	return rules
}

// table is of the one run, or of the means over runs.
func (r *recorder) table() (header []string, rows [][]string) {
	n := r.all.Runs + r.all.Failed
	wall := r.all.Wall.Seconds() / float64(max(1, n))
	if n == 1 {
		for _, m := range trials.Metrics() {
			rows = append(rows, []string{m.Name, number(m.Unit, m.Of(&r.only)), m.Note})
		}
		if !r.trace { // which is the same, byte for byte, however long it takes
			rows = append(rows, []string{"wall time", number(trials.Seconds, wall), ""})
		}
		return nil, append(rows, []string{"trace", fmt.Sprintf("%016x", r.only.Hash), "hash; the same run has the same"})
	}
	for i, m := range trials.Metrics() {
		s := r.all.Spread(i)
		seed := ""
		if s.Most > s.Least {
			seed = strconv.FormatUint(s.MostSeed, 10)
		}
		rows = append(rows, []string{m.Name, number(m.Unit, s.Mean.Mean), half(m.Unit, s), number(m.Unit, s.Least), number(m.Unit, s.Most), seed})
	}
	rows = append(rows, []string{"wall time", number(trials.Seconds, wall)})
	return []string{"per run", "mean", "± 95 %", "least", "most", "in seed"}, rows
}
