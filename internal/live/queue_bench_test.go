package live

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anteroom/anteroom/client"
	"github.com/anteroom/anteroom/internal/term"
)

const (
	benchWorkers = 32 // at a time
	benchPayload = 1024
	benchOnes    = 300 // calls of one worker, for latencies
)

// contender is one of those that take turns.
type contender struct {
	name    string
	workers []hand
	// Of each turn: calls a second of all workers, and latencies of one.
	puts, takes         []float64
	putTimes, takeTimes []time.Duration
}

// share has every worker do its part of n calls.
func share(workers []hand, n int, f func(hand) error) (perSecond float64, err error) {
	var group sync.WaitGroup
	errs := make(chan error, len(workers))
	began := time.Now()
	for i, w := range workers {
		group.Go(func() {
			for range (n + i) / len(workers) {
				if err := f(w); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	group.Wait()
	took := time.Since(began)
	select {
	case err = <-errs:
	default:
	}
	return float64(n) / took.Seconds(), err
}

func taken1(h hand) error {
	job, err := h.take()
	if err == nil {
		err = h.ack(job)
	}
	return err
}

// turn puts n items and takes them again, by all workers, and then some by one.
func (c *contender) turn(n int) error {
	payload := bytes.Repeat([]byte("x"), benchPayload)
	put := func(h hand) error { return h.put(payload) }
	for _, phase := range []struct {
		to *[]float64
		f  func(hand) error
	}{{&c.puts, put}, {&c.takes, taken1}} {
		rate, err := share(c.workers, n, phase.f)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		*phase.to = append(*phase.to, rate)
	}
	for _, phase := range []struct {
		to *[]time.Duration
		f  func(hand) error
	}{{&c.putTimes, put}, {&c.takeTimes, taken1}} {
		for range benchOnes {
			began := time.Now()
			if err := phase.f(c.workers[0]); err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			*phase.to = append(*phase.to, time.Since(began))
		}
	}
	return nil
}

func median(all []float64) float64 {
	all = slices.Sorted(slices.Values(all))
	return all[len(all)/2]
}

// spread is a median with the least and the most.
func spread(all []float64) string {
	return fmt.Sprintf("%.0f (%.0f to %.0f)", median(all), slices.Min(all), slices.Max(all))
}

// Puts and takes of 1 KB, in turns with beanstalkd and with Redis, which are one
// process each, with calls of their own in place of sessions, and with calls to our
// nodes that do nothing. A take is
// acknowledged: two calls. Set -benchtime=6x: the number of turns.
//
//	ANTEROOM_E2E=1 go test ./internal/live -run '^$' -bench QueueBesideOthers -benchtime=6x
func BenchmarkQueueBesideOthers(b *testing.B) {
	for _, kind := range []struct {
		name, config string
		items        int // of each turn
		durable      bool
		nodes        []int
	}{
		{"memory", "", 8000, false, []int{1, 3, 8}},
		{"durable", ", durable: true", 2000, true, []int{1, 3, 8}},
		{"replicas=2", ", replicas: 2", 2000, true, []int{3, 8}},
	} {
		for _, nodes := range kind.nodes {
			b.Run(fmt.Sprintf("%s/nodes=%d", kind.name, nodes), func(b *testing.B) {
				all := contenders(b, nodes, kind.config, kind.durable)
				for b.Loop() {
					for _, c := range all {
						if err := c.turn(kind.items); err != nil {
							b.Fatal(err)
						}
					}
				}
				report(b, all)
			})
		}
	}
}

// contenders starts all servers, and connects the workers.
func contenders(b *testing.B, nodes int, config string, durable bool) (all []*contender) {
	b.Helper()
	c := newCluster(b, 10)
	c.data = durable
	c.queues = "  - {name: bench" + config + "}\n"
	c.run(nodes)
	mine := &contender{name: "anteroom"}
	alone := &contender{name: "without-sessions"}
	clients, lone := make([]*client.Client, nodes), make([]*client.Client, nodes)
	for i, p := range c.nodes {
		clients[i], lone[i] = p.client(b), p.client(b, client.WithoutSession())
	}
	for i := range benchWorkers {
		mine.workers = append(mine.workers, ours{clients[i%nodes].Queue("bench")})
		alone.workers = append(alone.workers, ours{lone[i%nodes].Queue("bench")})
	}
	calls, conns := &contender{name: "bare-calls"}, make([]bare, nodes)
	for i, p := range c.nodes {
		conns[i] = newBare(b, p.grpc())
	}
	for i := range benchWorkers {
		calls.workers = append(calls.workers, conns[i%nodes])
	}
	all = append(all, mine, alone, calls)
	for _, r := range rivals() {
		all = append(all, &contender{name: r.name, workers: r.hands(b, r.start(b, durable), benchWorkers)})
	}
	return all
}

// report prints a table, and the medians as metrics.
func report(b *testing.B, all []*contender) {
	b.Helper()
	var rows [][]string
	us := func(all []time.Duration, p float64) string {
		return fmt.Sprintf("%.0f", float64(percentile(all, p))/float64(time.Microsecond))
	}
	for _, c := range all {
		b.ReportMetric(median(c.puts), c.name+"-puts/s")
		b.ReportMetric(median(c.takes), c.name+"-takes/s")
		ratio := func(mine, theirs []float64) string { return fmt.Sprintf("%.2f", median(mine)/median(theirs)) }
		rows = append(rows, []string{
			c.name, spread(c.puts), ratio(all[0].puts, c.puts), spread(c.takes), ratio(all[0].takes, c.takes),
			us(c.putTimes, 0.5), us(c.putTimes, 0.99), us(c.takeTimes, 0.5), us(c.takeTimes, 0.99),
		})
	}
	var text strings.Builder
	_ = term.WriteTable(&text, []string{"", "puts a second", "ratio", "takes and acks", "ratio", "put µs p50", "p99", "take and ack µs p50", "p99"}, rows)
	b.Logf("%d turns\n%s", b.N, text.String())
}
