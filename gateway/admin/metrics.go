package admin

import "github.com/prometheus/client_golang/prometheus"

// Collector offers a node's state to Prometheus. It is read when asked for.
type Collector struct {
	source  Source
	cluster []gauge[Cluster]
	room    []gauge[Room]
}

var _ prometheus.Collector = (*Collector)(nil)

// gauge is one number of a T.
type gauge[T any] struct {
	desc *prometheus.Desc
	of   func(T) float64
}

// NewCollector returns a collector over s.
func NewCollector(s Source) *Collector {
	cluster := func(name, help string, of func(Cluster) float64) gauge[Cluster] {
		return gauge[Cluster]{prometheus.NewDesc("anteroom_"+name, help, nil, nil), of}
	}
	room := func(name, help string, of func(Room) float64) gauge[Room] {
		return gauge[Room]{prometheus.NewDesc("anteroom_room_"+name, help, []string{"room"}, nil), of}
	}
	return &Collector{
		source: s,
		cluster: []gauge[Cluster]{
			cluster("members", "Members of the cluster that gossip believes alive.", func(c Cluster) float64 { return float64(len(c.Members)) }),
			cluster("members_in_wave", "Members that took part in the last wave.", inWave),
			cluster("epoch", "Number of the last wave that this node took part in.", func(c Cluster) float64 { return float64(c.Epoch) }),
			cluster("lease_seconds", "Time left of this node's lease.", func(c Cluster) float64 { return c.Lease }),
			cluster("coordinator", "1 if this node runs the waves.", func(c Cluster) float64 { return truth(c.Node == c.Coordinator) }),
			cluster("quarantined", "1 if this node's clock is off.", func(c Cluster) float64 { return truth(c.Quarantined) }),
			cluster("serving", "1 if this node is part of a cluster and may call people.", func(c Cluster) float64 { return truth(c.Waiting == "") }),
		},
		room: []gauge[Room]{
			room("limit", "total_active_users.", func(r Room) float64 { return float64(r.TotalActiveUsers) }),
			room("governed_limit", "Of total_active_users, what the governor lets in: all of it where outflow is fixed.", func(r Room) float64 { return float64(r.Limit()) }),
			room("queued", "People waiting in the whole room, as of the last wave.", func(r Room) float64 { return float64(r.Queued) }),
			room("called", "People called and not there yet, in the whole room.", func(r Room) float64 { return float64(r.Called) }),
			room("active", "People on the site, in the whole room.", func(r Room) float64 { return float64(r.Active) }),
			room("admitted_per_minute", "Rate of calls of late, in the whole room.", func(r Room) float64 { return r.AdmittedPerMinute }),
			room("estimated_wait_seconds", "Estimated wait of somebody who joins now; 0: not known.", func(r Room) float64 { return r.EstimatedWaitSeconds }),
			room("open", "1 if newcomers walk straight in.", func(r Room) float64 { return truth(r.Open) }),
			room("held", "1 if an operator lets nobody new in.", func(r Room) float64 { return truth(r.Mode == Held) }),
			room("draining", "1 if an operator lets nobody join any more.", func(r Room) float64 { return truth(r.Mode == Draining) }),
			room("origin_unhealthy", "1 if the health checks say that the origin is unhealthy.", func(r Room) float64 { return truth(r.OriginHealth == "unhealthy") }),
			room("held_by_origin", "1 if nobody is let in because the origin is unhealthy.", func(r Room) float64 { return truth(r.OriginHolds) }),
			room("slots_owned", "Slots that this node owns.", func(r Room) float64 { return float64(r.Here.SlotsOwned) }),
			room("slots_used", "Slots of this node with somebody called or on the site.", func(r Room) float64 { return float64(r.Here.SlotsUsed) }),
			room("queued_here", "People waiting at this node.", func(r Room) float64 { return float64(r.Here.Queued) }),
			room("bare_here", "People who wait at this node and whose place no other node keeps; -1: they are not counted.", func(r Room) float64 { return float64(r.Here.Bare) }),
			room("kept_here", "Places of other nodes that this node keeps.", func(r Room) float64 { return float64(r.Here.Kept) }),
			room("parked_here", "People of this node who have fallen silent.", func(r Room) float64 { return float64(r.Here.Parked) }),
			room("broken", "1 if this node has found the room not as it must be, and calls nobody in it until it is restarted.", func(r Room) float64 { return truth(r.Here.Broken != "") }),
			room("unwritten", "1 if this node's disk takes no visits, so that it calls nobody.", func(r Room) float64 { return truth(r.Here.Unwritten) }),
			room("may_admit", "1 if this node's lease allows calls.", func(r Room) float64 { return truth(r.Here.MayAdmit) }),
		},
	}
}

func inWave(c Cluster) float64 {
	n := 0.0
	for _, m := range c.Members {
		n += truth(m.InWave)
	}
	return n
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// Describe sends the descriptions of all metrics.
func (c *Collector) Describe(out chan<- *prometheus.Desc) {
	for _, g := range c.cluster {
		out <- g.desc
	}
	for _, g := range c.room {
		out <- g.desc
	}
}

// Collect sends all metrics as they are now.
func (c *Collector) Collect(out chan<- prometheus.Metric) {
	cluster := c.source.Cluster()
	for _, g := range c.cluster {
		out <- prometheus.MustNewConstMetric(g.desc, prometheus.GaugeValue, g.of(cluster))
	}
	for _, r := range c.source.Rooms() {
		for _, g := range c.room {
			out <- prometheus.MustNewConstMetric(g.desc, prometheus.GaugeValue, g.of(r), r.Name)
		}
	}
}
