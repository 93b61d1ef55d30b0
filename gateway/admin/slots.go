package admin

import (
	"net/http"
	"time"
)

// SlotsList is the answer to GET /v1/slots.
type SlotsList struct {
	Room  string      `json:"room"`  // empty: all of them together
	Nodes []NodeSlots `json:"nodes"` // by name
	// Missing are the slots of lost nodes, which cannot be made again before WholeAt: the
	// time at which the last of them are, in whichever room.
	Missing int        `json:"slots_missing"`
	WholeAt *time.Time `json:"whole_at,omitempty"`
}

// NodeSlots are what one node has of a room, or of all of them.
type NodeSlots struct {
	Node       string `json:"node"`
	Answers    bool   `json:"answers"` // false: it does not, and nothing is known of the others
	SlotsOwned int    `json:"slots_owned"`
	SlotsUsed  int    `json:"slots_used"` // called + on site
	SlotsFree  int    `json:"slots_free"`
	Queued     int    `json:"queued"`
	Called     int    `json:"called"`
	OnSite     int    `json:"on_site"`
	Parked     int    `json:"parked"`
	// KeptElsewhere are those in line whose place another node keeps too: they wait on if
	// this one is lost. Kept are places of other nodes that this one keeps.
	KeptElsewhere int `json:"kept_elsewhere"`
	Kept          int `json:"kept"`
}

// slots says how the slots are spread over the nodes.
func (a *admin) slots(w http.ResponseWriter, r *http.Request) {
	list := SlotsList{Room: r.URL.Query().Get("room")}
	if _, ok := a.find(list.Room); list.Room != "" && !ok {
		a.unknown(w, r)
		return
	}
	for _, room := range a.c.Source.Rooms() {
		if list.Room != "" && room.Name != list.Room {
			continue
		}
		list.Missing += room.SlotsMissing
		if at := room.WholeAt; at != nil && (list.WholeAt == nil || at.After(*list.WholeAt)) {
			list.WholeAt = at
		}
	}
	list.Nodes = a.c.Historian.Slots(r.Context(), list.Room)
	a.json(w, r, list)
}
