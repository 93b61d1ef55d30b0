package main

import (
	"bytes"
	"fmt"
	"math"
	"strconv"

	"github.com/anteroom/anteroom/gateway/admin"
	"github.com/anteroom/anteroom/internal/term"
)

// writeOrigins tells of the origins behind the rooms, where there is something to tell: what
// the cluster thinks by its checks, and what visitors of the node that was asked got from
// them in the last five minutes.
func writeOrigins(b *bytes.Buffer, all []admin.RoomHealth) {
	if len(all) == 0 {
		return
	}
	rows := make([][]string, 0, len(all))
	for i := range all {
		r := &all[i]
		row := []string{r.Room, "-", "-", "-", "-", "-", checksText(r)}
		if a := r.Answers; a != nil {
			row = []string{
				r.Room, strconv.FormatInt(a.Count, 10), strconv.FormatFloat(a.FailedPercent, 'f', 1, 64) + " %",
				briefText(a.P50), briefText(a.P95), briefText(a.P99), checksText(r),
			}
		}
		rows = append(rows, row)
	}
	fmt.Fprintln(b)
	_ = term.WriteTable(b, []string{"origin of", "requests here", "failed", "p50", "p95", "p99", "by its checks"}, rows) // a buffer
}

// checksText is what the cluster thinks of an origin, and by which check, if it is ill.
func checksText(r *admin.RoomHealth) string {
	if len(r.Checks) == 0 {
		return "none"
	}
	for i := range r.Checks {
		c := &r.Checks[i]
		if c.Status != "unhealthy" {
			continue
		}
		text := "unhealthy, " + c.Name + ": " + c.Reason
		if c.ActualCode != 0 {
			text += ", " + strconv.Itoa(c.ActualCode)
		}
		return text
	}
	return r.Status
}

// briefText is a time as exact as it can be told.
func briefText(seconds float64) string {
	if seconds < 1 {
		return strconv.Itoa(int(math.Ceil(1000*seconds))) + " ms"
	}
	return strconv.FormatFloat(seconds, 'f', 1, 64) + " s"
}
