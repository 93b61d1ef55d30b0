package config

import "time"

// What decides how many people are let in, up to the limits.
const (
	Fixed    = "fixed"    // the limits alone
	Adaptive = "adaptive" // and what the origin bears
)

// Governor is what `outflow: adaptive` asks of an origin.
type Governor struct {
	Floor        int      `json:"floor"`         // people; 0: a tenth of the limit
	Latency      Duration `json:"latency"`       // until an answer begins, for 95 of 100; 0: as long as it takes
	ErrorPercent int      `json:"error_percent"` // of the answers that may fail
	LoadHeader   string   `json:"load_header"`   // of the origin's answers; empty: none
}

// DefaultGovernor returns one of which the file says nothing.
func DefaultGovernor() Governor { return Governor{Latency: governorLatency, ErrorPercent: 1} }

const (
	governorLatency                        = Duration(time.Second)
	governorLatencyMin, governorLatencyMax = Duration(time.Millisecond), Duration(time.Minute)
	errorPercentMax                        = 50
)

// checkOutflow checks what the flow follows.
func (f *File) checkOutflow(key string, r Room) {
	if r.Outflow != Fixed && r.Outflow != Adaptive {
		f.fault(key+".outflow", "%q; give fixed, or adaptive: the number of people on the site follows what the origin bears, up to total_active_users", r.Outflow)
	}
	if r.Outflow == Adaptive && r.Origin == "" {
		f.fault(key+".outflow", "adaptive goes by the answers that pass through the proxy, and the room has no origin; give one, or give fixed")
	}
	if r.Outflow == Adaptive && limitless(r.QueueingMethod) {
		f.warn(key+".outflow", "adaptive lowers a limit, and with queueing_method %s there is none", r.QueueingMethod)
	}
	g, at := r.Governor, key+".governor"
	if g.Floor < 0 {
		f.fault(at+".floor", "%d; give the number of people for whom it is never too much, or 0 for a tenth of total_active_users", g.Floor)
	} else if g.Floor >= r.TotalActiveUsers && g.Floor > 0 && r.Outflow == Adaptive {
		f.warn(at+".floor", "%d is not below total_active_users, %d, so nothing is ever lowered", g.Floor, r.TotalActiveUsers)
	}
	if l := g.Latency; l != 0 && (l < governorLatencyMin || l > governorLatencyMax) {
		f.fault(at+".latency", "%v; give a time from %v to %v, or 0s if it does not matter how long answers take", l, governorLatencyMin, governorLatencyMax)
	}
	if p := g.ErrorPercent; p < 1 || p > errorPercentMax {
		f.fault(at+".error_percent", "%d; give how many of 100 answers may fail, 1 to %d", p, errorPercentMax)
	}
	if g.LoadHeader != "" && !matches(tokenPattern, g.LoadHeader) {
		f.fault(at+".load_header", "%q is no name of a header; give one such as X-Load", g.LoadHeader)
	}
}
