package server

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/gateway/admin"
	"github.com/anteroom/anteroom/internal/health"
	"github.com/anteroom/anteroom/internal/notify"
	peerv1 "github.com/anteroom/anteroom/proto/anteroom/peer/v1"
)

// notificationsOnDisk is the name of the file in node.data.
const notificationsOnDisk = "notifications.json"

// buildNotifications makes what sends them; nothing of it runs yet.
func (s *Server) buildNotifications() error {
	c := notify.Config{
		Receivers: s.c.Receivers(), Self: string(s.self.Name), Logger: s.log,
		Members: func() (names []string) {
			for _, m := range s.members.Members() {
				names = append(names, string(m.Name))
			}
			return names
		},
		Tell: func(event, receiver string, done bool) {
			d := &peerv1.Delivery{Event: event, Receiver: receiver, Done: done}
			s.notices.Tell("delivery/"+event+"/"+receiver, &peerv1.Notice{Kind: &peerv1.Notice_Delivery{Delivery: d}})
		},
	}
	if s.store != nil {
		c.Save = func(text []byte) error { return s.store.Write(notificationsOnDisk, text) }
		var err error
		if c.Kept, err = os.ReadFile(s.store.Path(notificationsOnDisk)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	var err error
	if s.sender, err = notify.New(c); err != nil {
		return err
	}
	s.metrics.MustRegister(s.sender.Metrics()...)
	return nil
}

// tell notifies of what has changed in the rooms. It is called with every new set
// of them, at all nodes, and what it makes of one change is the same at each.
func (s *Server) tell(before, now []eviction.Room) {
	for _, r := range now {
		i := slices.IndexFunc(before, func(o eviction.Room) bool { return o.Name == r.Name })
		if i < 0 || r.Version.Compare(before[i].Version) <= 0 { // a room that is new here may be old elsewhere
			continue
		}
		for _, e := range eventsOf(before[i], r) {
			s.sender.Add(e, time.Now())
		}
	}
}

// healthData is what a notification says of an origin. The keys are those of
// Cloudflare's, so that what was written for theirs reads ours.
type healthData struct {
	Time          time.Time `json:"time"`
	Status        string    `json:"status"` // Healthy or Unhealthy
	Reason        string    `json:"reason"`
	Name          string    `json:"name"`
	ExpectedCodes string    `json:"expected_codes"`
	ActualCode    int       `json:"actual_code"`
	ID            string    `json:"health_check_id"`
}

// changeData is what one says of a change of a room.
type changeData struct {
	Node    string         `json:"node"` // that was asked for it
	Action  string         `json:"action"`
	Changes []admin.Change `json:"changes"`
}

// eventsOf are those that lie between two versions of a room.
func eventsOf(old, r eviction.Room) (events []notify.Event) {
	was := healthOf(old)
	for _, v := range healthOf(r).Checks {
		i := slices.IndexFunc(was.Checks, func(o health.Verdict) bool { return o.Check == v.Check })
		if known := i >= 0; known && was.Checks[i].Since == v.Since || !known && v.Status == health.Healthy {
			continue // that it is well is no news where nobody thought otherwise
		}
		events = append(events, healthEvent(r, v))
	}
	changes := slices.DeleteFunc(changesOf(old, r), func(c admin.Change) bool { return strings.HasPrefix(c.Key, "origin_h") })
	if len(changes) == 0 {
		return events
	}
	action := actionOf(old, r)
	return append(events, notify.Event{
		ID:   notify.ID(notify.RoomChanged, r.Name, strconv.FormatUint(r.Version.Stamp, 10), string(r.Version.By)),
		Type: notify.RoomChanged, Time: time.UnixMicro(int64(r.Version.Stamp)).UTC(), Room: r.Name,
		Text: fmt.Sprintf("Room %s: %s, by way of node %s", r.Name, action, r.Version.By),
		Data: changeData{Node: string(r.Version.By), Action: action, Changes: changes},
	})
}

func healthEvent(r eviction.Room, v health.Verdict) notify.Event {
	e := notify.Event{
		ID:   notify.ID("origin", r.Name, v.Check, string(v.Status), strconv.FormatInt(v.Since, 10)),
		Type: notify.OriginHealthy, Time: time.UnixMicro(v.Since).UTC(), Room: r.Name,
	}
	d := healthData{Time: e.Time, Status: "Healthy", Reason: v.Reason, Name: v.Check, ActualCode: v.Code}
	if v.Status == health.Unhealthy {
		e.Type, d.Status = notify.OriginUnhealthy, "Unhealthy"
	}
	if c, err := configOf(r); err == nil {
		for _, check := range checksOf(c) {
			if check.Name == v.Check {
				d.ExpectedCodes, d.ID = strings.Join(check.Codes, ","), check.ID()
			}
		}
	}
	e.Text = fmt.Sprintf("Room %s: its origin is %s (%s: %s)", r.Name, strings.ToLower(d.Status), v.Check, v.Reason)
	if v.Code != 0 {
		e.Text = fmt.Sprintf("Room %s: its origin is %s (%s: %s, %d)", r.Name, strings.ToLower(d.Status), v.Check, v.Reason, v.Code)
	}
	e.Data = d
	return e
}
