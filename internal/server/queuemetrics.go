package server

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/anteroom/anteroom/internal/broker"
	"github.com/anteroom/anteroom/internal/pqueue"
	"github.com/anteroom/anteroom/internal/replog"
)

// queueMetrics offers this node's share of the priority queues to Prometheus. It is
// read when asked for. Shares of several nodes add up. There is a series for each
// queue that is listed, and for a bounded number of others; what the rest of them
// have is in a series of the label otherQueues.
type queueMetrics struct{ q *queues }

var _ prometheus.Collector = queueMetrics{}

// otherQueues is no name of a queue.
const otherQueues = "_other"

// queueMetric is one number of a queue, and of many together.
type queueMetric struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	of   func(pqueue.Stats) float64
	rest func(broker.Rest) float64
}

func queueItems() *prometheus.Desc {
	return prometheus.NewDesc("anteroom_queue_items", "Items of a queue that this node keeps: ready, delayed, leased or dead.", []string{"queue", "state"}, nil)
}

func queueMetricsOfOne() []queueMetric {
	count := func(name, help string, of func(pqueue.Counters) uint64) queueMetric {
		d := prometheus.NewDesc("anteroom_queue_"+name+"_total", help, []string{"queue"}, nil)
		one := func(s pqueue.Stats) float64 { return float64(of(s.Counters)) }
		return queueMetric{d, prometheus.CounterValue, one, func(r broker.Rest) float64 { return one(r.Sum) }}
	}
	gauge := func(name, help string, of func(pqueue.Stats) float64) queueMetric {
		d := prometheus.NewDesc("anteroom_queue_"+name, help, []string{"queue"}, nil)
		return queueMetric{d, prometheus.GaugeValue, of, func(r broker.Rest) float64 { return of(r.Sum) }}
	}
	flag := func(name, help string, of func(pqueue.Stats) bool, many func(broker.Rest) int) queueMetric {
		m := gauge(name, help, func(s pqueue.Stats) float64 { return truth(of(s)) })
		m.rest = func(r broker.Rest) float64 { return float64(many(r)) }
		return m
	}
	return []queueMetric{
		gauge("bytes", "Bytes of the items of a queue that this node keeps.", func(s pqueue.Stats) float64 { return float64(s.Bytes) }),
		gauge("waiters", "Callers of DeleteMin who wait at this node.", func(s pqueue.Stats) float64 { return float64(s.Waiters) }),
		flag("root", "1 if the first item of the whole queue is thought to be here.",
			func(s pqueue.Stats) bool { return s.Root }, func(r broker.Rest) int { return r.Roots }),
		flag("paused", "1 if the queue is paused.",
			func(s pqueue.Stats) bool { return s.Mode.Mode == pqueue.Paused }, func(r broker.Rest) int { return r.Paused }),
		flag("draining", "1 if nothing can be inserted.",
			func(s pqueue.Stats) bool { return s.Mode.Mode == pqueue.Draining }, func(r broker.Rest) int { return r.Draining }),
		gauge("slots_lost", "Of max_in_flight, slots that nodes may use which are gone; told where the first item is.", func(s pqueue.Stats) float64 { return float64(s.SlotsLost) }),
		gauge("blocked", "Ready items that this node keeps, and that wait for another one of their key.", func(s pqueue.Stats) float64 { return float64(s.Blocked) }),
		gauge("keys_held_back", "1 while no item with a key goes out, since some may be leased at nodes that are gone; told where the first item is.", func(s pqueue.Stats) float64 { return truth(s.KeysHeldBack) }),
		gauge("oldest_timestamp_seconds", "When the first ready item here was inserted; 0: none is ready.", func(s pqueue.Stats) float64 { return float64(s.Oldest) / 1e6 }),
		count("inserted", "Items inserted.", func(c pqueue.Counters) uint64 { return c.Inserted }),
		count("leased", "Leases given.", func(c pqueue.Counters) uint64 { return c.Leased }),
		count("acked", "Items acknowledged.", func(c pqueue.Counters) uint64 { return c.Acked }),
		count("nacked", "Items given back.", func(c pqueue.Counters) uint64 { return c.Nacked }),
		count("lapsed", "Leases that ran out.", func(c pqueue.Counters) uint64 { return c.Lapsed }),
		count("cancelled", "Items cancelled.", func(c pqueue.Counters) uint64 { return c.Cancelled }),
		count("expired", "Items whose ttl ran out.", func(c pqueue.Counters) uint64 { return c.Expired }),
		count("died", "Items that became dead letters.", func(c pqueue.Counters) uint64 { return c.Died }),
		count("repeated", "Inserts that were repeated and changed nothing.", func(c pqueue.Counters) uint64 { return c.Repeated }),
	}
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// queueTotals are the numbers of the node.
func queueTotals() map[string]*prometheus.Desc {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("anteroom_queue_"+name, help, nil, nil)
	}
	return map[string]*prometheus.Desc{
		"rounds":   desc("rounds_total", "Times that the tree of the queues was made anew."),
		"refused":  desc("messages_refused_total", "Messages of other nodes about queues that made no sense or for which there was no room."),
		"repeated": desc("deletemins_repeated_total", "DeleteMins that were asked again because no answer had come."),
		"returned": desc("leases_returned_total", "Leases that came when nobody waited for them any more, and went back at once."),
		"calls":    desc("calls", "Calls under way at this node."),
		"known":    desc("known", "Queues that this node knows, of queueing.queues_max."),
	}
}

func queueLogs() *prometheus.Desc {
	return prometheus.NewDesc("anteroom_queue_log_ready", "1 if the log behind durable or replicated queues takes items.", []string{"kind"}, nil)
}

// queueStorage is what is told of the disk of each log.
func queueStorage() map[string]*prometheus.Desc {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("anteroom_queue_storage_"+name, help, []string{"kind"}, nil)
	}
	return map[string]*prometheus.Desc{
		"free":    desc("free_bytes", "Bytes that are free on the disk behind durable or replicated queues; 0 where the system does not say."),
		"reserve": desc("reserve_bytes", "With fewer bytes free nothing is put into these queues (storage_full)."),
		"full":    desc("full", "1 if nothing is put into these queues for want of room."),
	}
}

// Describe implements prometheus.Collector.
func (m queueMetrics) Describe(to chan<- *prometheus.Desc) {
	to <- queueItems()
	to <- queueLogs()
	for _, q := range queueMetricsOfOne() {
		to <- q.desc
	}
	for _, all := range []map[string]*prometheus.Desc{queueTotals(), queueStorage()} {
		for _, d := range all {
			to <- d
		}
	}
}

// Collect implements prometheus.Collector.
func (m queueMetrics) Collect(to chan<- prometheus.Metric) {
	snap := m.q.loop.Snapshot()
	items, all := queueItems(), queueMetricsOfOne()
	keeps := func(s pqueue.Stats, name string) {
		for state, n := range map[string]int{"ready": s.Ready, "delayed": s.Delayed, "leased": s.Leased, "dead": s.Dead} {
			to <- prometheus.MustNewConstMetric(items, prometheus.GaugeValue, float64(n), name, state)
		}
	}
	for _, s := range snap.Queues {
		keeps(s, s.Queue)
		for _, q := range all {
			to <- prometheus.MustNewConstMetric(q.desc, q.kind, q.of(s), s.Queue)
		}
	}
	if rest := snap.Rest; rest.Queues > 0 || rest.Sum.Counters != (pqueue.Counters{}) {
		keeps(rest.Sum, otherQueues)
		for _, q := range all {
			to <- prometheus.MustNewConstMetric(q.desc, q.kind, q.rest(rest), otherQueues)
		}
	}
	for i, l := range m.q.logs {
		to <- prometheus.MustNewConstMetric(queueLogs(), prometheus.GaugeValue, truth(l.Ready() == nil), m.q.kinds[i].String())
		room, _ := l.Room()
		s := l.Storage()
		for name, v := range map[string]float64{"free": float64(s.Free), "reserve": float64(s.Reserve), "full": truth(room != replog.RoomForAll)} {
			to <- prometheus.MustNewConstMetric(queueStorage()[name], prometheus.GaugeValue, v, m.q.kinds[i].String())
		}
	}
	totals := queueTotals()
	for name, n := range map[string]uint64{
		"rounds": snap.Counts.Rounds, "refused": snap.Counts.Refused, "repeated": snap.Counts.Repeated, "returned": snap.Counts.Returned,
	} {
		to <- prometheus.MustNewConstMetric(totals[name], prometheus.CounterValue, float64(n))
	}
	to <- prometheus.MustNewConstMetric(totals["calls"], prometheus.GaugeValue, float64(snap.Calls))
	to <- prometheus.MustNewConstMetric(totals["known"], prometheus.GaugeValue, float64(snap.Known))
}
