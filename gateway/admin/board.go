package admin

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/anteroom/anteroom/gateway/admin/dashboard"
)

// State is all that the dashboard shows, as it was at a moment.
type State struct {
	At      time.Time    `json:"at"`
	Cluster Cluster      `json:"cluster"`
	Rooms   []RoomNow    `json:"rooms"`
	Changes []AuditEntry `json:"changes"` // the newest first
}

// RoomNow is a room, and what limits its flow.
type RoomNow struct {
	Room
	Why Reason `json:"why"`
}

// changesShown are as many as fit under the rooms.
const changesShown = 6

// look is what the dashboard's stream sends.
func (a *admin) look() []byte {
	s := State{At: time.Now().UTC(), Cluster: a.c.Source.Cluster(), Rooms: []RoomNow{}, Changes: []AuditEntry{}}
	if s.Cluster.Members == nil {
		s.Cluster.Members = []Member{} // an empty list, not null: it has just started
	}
	for _, r := range a.c.Source.Rooms() {
		s.Rooms = append(s.Rooms, RoomNow{r, Why(&s.Cluster, &r, s.At)})
	}
	if a.c.Operator != nil {
		all := a.c.Operator.Audit()
		s.Changes = append(s.Changes, all[:min(len(all), changesShown)]...)
	}
	b, err := json.Marshal(s)
	if err != nil {
		panic("admin: the state does not encode: " + err.Error()) // strings, times and finite numbers
	}
	return b
}

// dashboard adds the page, its files and its stream.
func (a *admin) dashboard(get func(path string, h http.HandlerFunc)) {
	get("/{$}", func(w http.ResponseWriter, r *http.Request) {
		c := a.c.Source.Cluster()
		b, _ := a.who(r)
		v := dashboard.Visit{Node: c.Node, Version: c.Version, Who: b.name, Operate: a.c.Operator != nil && (b.operate || !a.asks()), Profiles: a.c.Profiles}
		if err := a.board.Page(w, r, v); err != nil {
			a.c.Logger.Error("admin page", "error", err)
			a.fail(w, r, http.StatusInternalServerError, "internal", "Something went wrong here.")
		}
	})
	get("/v1/stream", func(w http.ResponseWriter, r *http.Request) {
		if !a.board.Stream(w, r) {
			w.Header().Set("Retry-After", "10")
			a.fail(w, r, http.StatusServiceUnavailable, "too_many_listeners", "As many dashboards as may are open at this node. Open that of another node, or close one.")
		}
	})
}

func (a *admin) asset(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead || !a.board.Asset(w, r, r.PathValue("name")) {
		a.fail(w, r, http.StatusNotFound, "not_found", "There is nothing at this path.")
	}
}

// why says what limits the flow into a room.
func (a *admin) why(w http.ResponseWriter, r *http.Request) {
	room, ok := a.find(r.PathValue("room"))
	if !ok {
		a.unknown(w, r)
		return
	}
	c, now := a.c.Source.Cluster(), time.Now()
	why := Why(&c, &room, now)
	if r.URL.Query().Has("advice") && a.c.Historian != nil && a.c.Operator != nil { // all nodes are asked, which may take a while if one is lost
		if f, err := a.c.Historian.Figures(r.Context(), room.Name, Span{From: now.Add(-time.Hour), To: now, Step: reportStep(time.Hour)}); err == nil {
			why.Advice = Advise(a.setup(room.Name), &f)
		}
	}
	a.json(w, r, why)
}

func sentences() map[string]string {
	all := map[string]string{}
	for code, text := range Sentences() {
		all[string(code)] = text
	}
	return all
}
