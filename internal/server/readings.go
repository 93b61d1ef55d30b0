package server

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/config"
	"github.com/anteroom/anteroom/internal/loop"
	"github.com/anteroom/anteroom/internal/node"
	"github.com/anteroom/anteroom/internal/notify"
	"github.com/anteroom/anteroom/qpid"
)

// eventNews is how long after its time an event is still news.
const eventNews = 10 * time.Minute

// conditionsView is what a node sees when it looks whether something is worth a
// notification.
type conditionsView struct {
	*loop.Snapshot
	now      time.Time
	at       time.Time // by the cluster's clock, as events go by
	self     string
	t        config.NotificationThresholds
	expiring []expiring
}

// figureData is what a notification says of a figure of a room.
type figureData struct {
	Queued        int      `json:"queued"`
	Inside        int      `json:"inside"` // on the site, or called and on the way
	Limit         int      `json:"total_active_users"`
	SlotsMissing  int      `json:"slots_missing"`
	EstimatedWait *float64 `json:"estimated_wait_seconds"` // of who joins now; null: not known
}

// nodeData is what one says of a node.
type nodeData struct {
	Node  string   `json:"node"`
	Nodes []string `json:"nodes"` // that are there
}

// eventData is what one says of an event of a room.
type eventData struct {
	Name     string    `json:"name"`
	Prequeue time.Time `json:"prequeue_start_time"`
	Start    time.Time `json:"event_start_time"`
	Queued   int       `json:"queued"`
}

// certificateData is what one says of a certificate.
type certificateData struct {
	Node  string    `json:"node"`
	Key   string    `json:"key"` // of the configuration
	Until time.Time `json:"not_after"`
}

// readings are all conditions as they look now. What a node sees on a side without a
// quorum tells nothing of the nodes and rooms of the cluster, and must not be there
// when that has lasted for long as the cluster comes together again.
func (v *conditionsView) readings() []notify.Reading {
	all := append(v.ofThisSide(), v.ofCertificates()...)
	if v.Status.Grade <= eviction.Side {
		return all
	}
	all = append(all, v.ofNodes()...)
	for i := range v.Rooms {
		if r := &v.Rooms[i]; r.Room.Mode != eviction.Deleted && r.Account.Born > 0 {
			all = append(all, v.ofRoom(r)...)
			all = append(all, v.ofEvents(r)...)
		}
	}
	return all
}

// tells reports whether this node tells what is about the cluster: of those with a
// quorum, or that go on without one, the one that runs the waves.
func (v *conditionsView) tells() bool { return v.Status.Leading && v.Status.Grade > eviction.Side }

// root is for the first event of a condition. A cluster that is founded anew knows
// nothing of what an earlier one told.
func (v *conditionsView) root() string {
	return fmt.Sprintf("%s-%d", v.Status.Line.By, v.Status.Line.Stamp)
}

func (v *conditionsView) ofRoom(r *node.RoomStatus) []notify.Reading {
	name, limit := r.Room.Name, r.Now.Target
	data := figureData{Queued: r.Total, Inside: r.Active, Limit: limit, SlotsMissing: r.Missing}
	wait := r.Wait.P50
	if wait > 0 {
		seconds := wait.Seconds()
		data.EstimatedWait = &seconds
	}
	reading := func(key string, state notify.State, after config.Duration, begins, ends, beginText, endText string) notify.Reading {
		return notify.Reading{
			Key: key + " " + name, State: state, After: time.Duration(after), Settle: time.Duration(v.t.Settle), Root: v.root(), Mine: v.tells(),
			Begins: notify.Event{Type: begins, Room: name, Text: "Room " + name + ": " + beginText, Data: data},
			Ends:   notify.Event{Type: ends, Room: name, Text: "Room " + name + ": " + endText, Data: data},
		}
	}
	all := []notify.Reading{
		reading("queueing", notify.Holds(r.Total > 0), v.t.Queueing, notify.QueueingBegan, notify.QueueingEnded,
			fmt.Sprintf("%d people wait", r.Total), "nobody waits any more"),
		reading("limit", v.limit(r), v.t.LimitReached, notify.LimitReached, notify.LimitFree,
			fmt.Sprintf("it has been full for %v: %d inside, the limit is %d", v.t.LimitReached, r.Active, limit), fmt.Sprintf("it is no longer full: %d inside, the limit is %d", r.Active, limit)),
		reading("slots", notify.Holds(r.Missing > 0), v.t.SlotsMissing, notify.SlotsMissing, notify.SlotsBack,
			fmt.Sprintf("%d of %d slots are missing: whoever had them on a lost node may still be there", r.Missing, limit), "no slots are missing any more"),
	}
	if above := time.Duration(v.t.Wait); above > 0 {
		state := notify.Holds(wait > above)
		if wait <= above && wait > above*4/5 {
			state = notify.Between
		}
		all = append(all, reading("wait", state, 10*config.Duration(lookEvery), notify.WaitAbove, notify.WaitBelow,
			fmt.Sprintf("who joins now waits %v, more than %v", wait.Round(time.Minute), v.t.Wait), fmt.Sprintf("who joins now waits %v", wait.Round(time.Minute))))
	}
	return all
}

// limit is whether a room is full. While people come and go it is a little below
// its limit most of the time.
func (v *conditionsView) limit(r *node.RoomStatus) notify.State {
	switch limit := r.Now.Target; {
	case limit > 0 && r.Active >= limit:
		return notify.On
	case limit > 0 && 10*r.Active >= 9*limit:
		return notify.Between
	}
	return notify.Off
}

// ofEvents are the events of a room whose time has come. That is told once.
func (v *conditionsView) ofEvents(r *node.RoomStatus) (all []notify.Reading) {
	for _, e := range r.Room.Events {
		data := eventData{Name: e.Name, Prequeue: time.UnixMicro(e.Prequeue).UTC(), Start: time.UnixMicro(e.Start).UTC(), Queued: r.Total}
		add := func(kind string, at time.Time, text string) {
			if age := v.at.Sub(at); age < 0 || age > eventNews {
				return
			}
			all = append(all, notify.Reading{
				Key: kind + " " + r.Room.Name + " " + strconv.FormatInt(at.UnixMicro(), 10), State: notify.On, Root: v.root(), Mine: v.tells(),
				Begins: notify.Event{Type: kind, Room: r.Room.Name, Text: "Room " + r.Room.Name + ": " + text, Data: data},
			})
		}
		if 0 < e.Prequeue && e.Prequeue < e.Start {
			add(notify.EventPrequeue, data.Prequeue, fmt.Sprintf("people gather for %s, which starts at %s", e.Name, data.Start.Format("15:04:05 UTC")))
		}
		add(notify.EventStarted, data.Start, e.Name+" has started")
	}
	return all
}

// here are the nodes of this side.
func (v *conditionsView) here() (names []string) {
	for _, m := range v.Status.List {
		names = append(names, string(m.Name))
	}
	slices.Sort(names)
	return names
}

// ofNodes is which nodes are out of the waves.
func (v *conditionsView) ofNodes() (all []notify.Reading) {
	here := v.here()
	for _, n := range v.Status.Voters.Names {
		name, data := string(n), nodeData{string(n), here}
		all = append(all, notify.Reading{
			Key: "node " + name, State: notify.Holds(!slices.Contains(here, name)),
			After: time.Duration(v.t.NodeLost), Settle: time.Duration(v.t.Settle), Root: v.root(), Mine: v.tells(),
			Begins: notify.Event{Type: notify.NodeLost, Text: fmt.Sprintf("Node %s is lost: it has been out of the waves for %v without a goodbye", name, v.t.NodeLost), Data: data},
			Ends:   notify.Event{Type: notify.NodeBack, Text: "Node " + name + " is back", Data: data},
		})
	}
	return all
}

// ofThisSide is what a node sees for certain on a side of its own, too.
func (v *conditionsView) ofThisSide() []notify.Reading {
	st, settle, data := &v.Status, time.Duration(v.t.Settle), nodeData{v.self, v.here()}
	majority := notify.Between
	switch {
	case st.Grade >= eviction.Primary:
		majority = notify.Off
	case st.Grade == eviction.Side && len(st.Voters.Names) > 0 && st.Installed != (qpid.Epoch{}):
		majority = notify.On
	}
	return []notify.Reading{{
		Key: "majority", State: majority, After: time.Duration(v.t.MajorityLost), Settle: settle, Root: v.root(), Mine: st.Leading,
		Begins: notify.Event{Type: notify.MajorityLost, Text: fmt.Sprintf("Nodes %v see no majority: who waits there keeps the place, and nobody is called unless the room says so", data.Nodes), Data: data},
		Ends:   notify.Event{Type: notify.MajorityBack, Text: fmt.Sprintf("Nodes %v are a majority again", data.Nodes), Data: data},
	}, {
		Key: "clock " + v.self, State: notify.Holds(st.Quarantined), After: time.Duration(v.t.ClockOff), Settle: settle, Root: v.root(), Mine: true,
		Begins: notify.Event{Type: notify.ClockOff, Text: "The clock of node " + v.self + " is off: it is left out until it is set right (chrony, NTP)", Data: data},
		Ends:   notify.Event{Type: notify.ClockRight, Text: "The clock of node " + v.self + " is right again", Data: data},
	}}
}

// ofCertificates are those that run out. A new one is another condition.
func (v *conditionsView) ofCertificates() (all []notify.Reading) {
	for _, c := range v.expiring {
		all = append(all, notify.Reading{
			Key: "certificate " + c.id, State: notify.On, Root: "certificate", Mine: true,
			Begins: notify.Event{
				Type: notify.CertExpiring, Data: certificateData{v.self, c.key, c.until},
				Text: fmt.Sprintf("The certificate of %s is good until %s only", c.key, c.until.Format("2006-01-02 15:04 UTC")),
			},
		})
	}
	return all
}
