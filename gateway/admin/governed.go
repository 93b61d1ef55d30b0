package admin

import (
	"fmt"
	"time"
)

// Governed is what outflow: adaptive makes of a room's limit, and by which figure.
type Governed struct {
	Bound   int        `json:"total_active_users"` // 0: the limit is the configured one
	Since   *time.Time `json:"since,omitempty"`    // the limit was last the configured one, where this node saw it
	Verdict string     `json:"verdict"`            // on the origin in the last window: healthy, near, overloaded or unknown
	Cause   string     `json:"cause"`              // of near and overloaded: errors, latency, unanswered or load
	Figure  float64    `json:"figure"`             // a share of the answers, or of the requests; the load that the origin says
	Latency float64    `json:"latency_seconds"`    // that an answer may take
	Text    string     `json:"text"`               // Reason
}

// Limit is the room's, or what the governor leaves of it.
func (r *Room) Limit() int {
	if g := r.Governed; g != nil && g.Bound > 0 {
		return min(r.TotalActiveUsers, g.Bound)
	}
	return r.TotalActiveUsers
}

// Reason says why the bound is where it is.
func (g *Governed) Reason() string {
	text := ""
	switch g.Cause {
	case "errors":
		text = fmt.Sprintf("%.1f %% of the origin's answers fail", 100*g.Figure)
	case "latency":
		text = fmt.Sprintf("%.1f %% of the origin's answers take longer than %v", 100*g.Figure, time.Duration(g.Latency*1e9))
	case "unanswered":
		text = fmt.Sprintf("%.0f %% of the requests to the origin have no answer yet", 100*g.Figure)
	case "load":
		text = fmt.Sprintf("the origin says that its load is %.2f", g.Figure)
	}
	switch g.Verdict {
	case "overloaded":
		return text + ", so fewer are let in"
	case "near":
		return text + ", so it stays there"
	case "healthy":
		return "the origin bore it in the last seconds, so it is raised bit by bit"
	}
	return "too few requests go to the origin to say more"
}
