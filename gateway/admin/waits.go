package admin

import "net/http"

// WaitsList is the answer to GET /v1/waits: how long people had waited who got in of
// late. Who did not have to wait does not count.
type WaitsList struct {
	Seconds int         `json:"seconds"` // how far back
	Rooms   []RoomWaits `json:"rooms"`   // into which somebody got, by name
	Missing []string    `json:"missing"` // nodes that do not answer; those whom they let in do not count
}

// RoomWaits are those of one room, in seconds.
type RoomWaits struct {
	Room string `json:"room"`
	Shares
}

// waits says how long those had waited who get in now, beside the estimate for who joins.
func (a *admin) waits(w http.ResponseWriter, r *http.Request) {
	a.json(w, r, a.c.Historian.Waits(r.Context()))
}
