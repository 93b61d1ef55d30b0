package load_test

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/anteroom/anteroom/internal/load"
)

// copiesFile is tableFile with another room, in which people wait.
const copiesFile = tableFile + `  - {name: line, routes: [{host: line.example, path: /}], total_active_users: 1, queue_all: true, refresh_interval: 1h, ticket_ttl: 2h}
`

// copiesWork is what the clusters of BenchmarkCopies are given in turn: arguments of
// `anteroom load`, and the kind of request for which processor time is counted.
type copiesWork struct {
	name string
	args []string
	kind string
}

func copiesWorks() []copiesWork {
	visit := []string{"--room", "shop", "--join-async", "--check-in-every", "200ms", "--no-end"}
	wait := []string{"--room", "line", "--join-async", "--duration", "4s", "--drain", "0s", "--check-in-every"}
	return []copiesWork{
		{"visit", slices.Concat(visit, []string{"--users", "5000"}), "leave"},
		{"join", slices.Concat(wait, []string{"1h", "--users", "10000"}), "join"},
		{"check-in", slices.Concat(wait, []string{"10ms", "--users", "100"}), "check_in"},
		{"slowly", slices.Concat(visit, []string{"--rate", "200", "--duration", "4s"}), "leave"},
	}
}

// BenchmarkCopies is what `cluster.copies: 1` costs: two clusters of three processes each take
// turns, one without. An op is four kinds of work at each:
//
//	visit      as in Table62
//	join       10,000 people join who are not called
//	check-in   100 people who wait ask every 10 ms
//	slowly     200 visitors a second, as in Table62: the median of joins and of leaves
//
//	go test ./internal/load -run '^$' -bench Copies -benchtime=9x
//
// The figures are medians of the ops: processor time of all nodes together for each, in µs;
// latencies in µs; and the ratio of copies 1 to 0, op by op.
func BenchmarkCopies(b *testing.B) {
	binary := build(b)
	var clusters [2]*nodes
	for copies := range clusters {
		clusters[copies] = startNodes(b, binary, 3, copiesFile+fmt.Sprintf("cluster: {copies: %d}\n", copies))
		for _, w := range copiesWorks() {
			clusters[copies].do(b, w) // to warm up
		}
	}
	figures := map[string][]float64{}
	note := func(name string, v [2]float64) {
		for copies, unit := range []string{"-0-µs", "-1-µs"} {
			figures[name+unit] = append(figures[name+unit], v[copies])
		}
		figures[name+"-ratio"] = append(figures[name+"-ratio"], v[1]/v[0])
	}
	for b.Loop() {
		for _, w := range copiesWorks() {
			var cpu, join, leave [2]float64
			for i := range clusters {
				copies := (i + len(figures["visit-ratio"])) % 2 // now one comes first, now the other
				before := clusters[copies].cpu(b)
				r := clusters[copies].do(b, w)
				cpu[copies] = (clusters[copies].cpu(b) - before).Seconds() * 1e6 / float64(r.Requests[w.kind].Count)
				join[copies], leave[copies] = r.Requests["join"].Latency.P50*1e6, r.Requests["leave"].Latency.P50*1e6
			}
			if w.name == "slowly" {
				note("join-latency", join)
				note("leave-latency", leave)
			} else {
				note(w.name, cpu)
			}
		}
	}
	b.ReportMetric(0, "ns/op")
	for unit, v := range figures {
		b.ReportMetric(median(v), unit)
	}
}

func median(v []float64) float64 {
	slices.Sort(v)
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

// do has visitors come for w.
func (c *nodes) do(b *testing.B, w copiesWork) *load.Result {
	b.Helper()
	args := slices.Concat([]string{"load", "--json"}, w.args, c.urls)
	out, err := exec.CommandContext(b.Context(), c.binary, args...).Output()
	if err != nil {
		b.Fatalf("anteroom %s: %v", strings.Join(args, " "), err)
	}
	r := &load.Result{}
	if err := json.Unmarshal(out, r); err != nil || r.Visitors.Lost > 0 || r.Requests[w.kind].Count == 0 {
		b.Fatalf("anteroom %s: %v; %+v, %v", strings.Join(args, " "), err, r.Visitors, r.Errors)
	}
	return r
}
