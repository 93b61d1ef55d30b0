package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/gateway"
	"github.com/anteroom/anteroom/gateway/admin"
	"github.com/anteroom/anteroom/internal/config"
	"github.com/anteroom/anteroom/internal/node"
	"github.com/anteroom/anteroom/membership"
)

// operator carries out what is asked for on the admin port. A change is proposed
// to the cluster like one of a file: a wave brings it into force everywhere, and
// of two at a time the one with the later stamp counts.
type operator struct{ s *Server }

var _ admin.Operator = operator{}

// forceWithin is how long an edit waits for the wave that brings it into force.
const forceWithin = 5 * time.Second

// running is a room as the cluster has it, nil if there is none for visitors. The
// second is also of a deleted one, which a new one takes the place of.
func (o operator) running(name string) (running, any *node.RoomStatus) {
	r, ok := o.s.loop.Snapshot().Room(name)
	switch {
	case !ok:
		return nil, nil
	case r.Room.Mode == eviction.Deleted, r.Room.Version == eviction.Version{}: // or proposed here a moment ago
		return nil, r
	}
	return r, r
}

// etagOf names one state of a room's configuration. The sum is in it because
// files that were written by hand may differ in one version.
func etagOf(r eviction.Room) string {
	return fmt.Sprintf(`"%x-%x-%s"`, r.Version.Stamp, r.Sum(), r.Version.By)
}

func modeOf(m eviction.Mode) admin.Mode { return admin.Mode(m.String()) }

func configured(r eviction.Room) admin.Configured {
	c, _ := configOf(r) // what is wrong with it is in the log
	return admin.Configured{Keys: c.JSON(), ETag: etagOf(r), Mode: modeOf(byHand(r))}
}

func (o operator) Configured(room string) (admin.Configured, bool) {
	r, _ := o.running(room)
	if r == nil {
		return admin.Configured{}, false
	}
	return configured(r.Room), true
}

func refuse(status int, code, format string, args ...any) error {
	return &admin.Refusal{Status: status, Code: code, Detail: fmt.Sprintf(format, args...)}
}

func unknownRoom() error {
	return refuse(http.StatusNotFound, "room_unknown", "There is no such room.")
}

// met reports whether the edit's conditions are, for a room that may be nil.
func met(e *admin.Edit, r *node.RoomStatus) error {
	etag := ""
	if r != nil {
		etag = etagOf(r.Room)
	}
	if !e.Matches(etag) {
		return refuse(http.StatusPreconditionFailed, "room_changed", "The room is not the one that If-Match or If-None-Match speaks of. Read it again.")
	}
	return nil
}

// Put makes a room what body says. What it does not say has its default; what an
// operator did by hand, and a page of its own, stay as they are.
func (o operator) Put(ctx context.Context, e admin.Edit, body []byte) (admin.Outcome, error) {
	o.s.edits.Lock()
	defer o.s.edits.Unlock()
	running, old := o.running(e.Room)
	if err := met(&e, running); err != nil {
		return admin.Outcome{}, err
	}
	room, problems := config.ParseRoom(body, config.RoomOptions{
		Name: e.Room, Prefix: o.s.c.Prefix, CountryHeader: o.s.c.CountryHeader, Others: o.others(e.Room), Ignore: admin.ReadOnly(),
	})
	if len(problems) == 0 && room.Name != e.Room {
		problems = []config.Problem{{Key: "name", Text: fmt.Sprintf("%q is not the room of the address, %q; a room keeps its name", room.Name, e.Room)}}
	}
	if len(problems) > 0 {
		return admin.Outcome{}, invalidRoom(problems)
	}
	next, _ := otherwise(room, running)
	if running != nil {
		next = withPageOf(next, running.Room)
		if running.Room.Sum() == next.Sum() {
			return admin.Outcome{Room: configured(running.Room)}, nil
		}
	}
	if err := bothWays(next); err != nil {
		return admin.Outcome{}, err
	}
	action := "update"
	if running == nil {
		action = "create"
	}
	out, err := o.propose(ctx, e, action, next, old)
	out.Created = running == nil
	return out, err
}

func invalidRoom(problems []config.Problem) error {
	r := &admin.Refusal{Status: http.StatusBadRequest, Code: "room_invalid"}
	var keys []string
	for _, p := range problems {
		r.Errors = append(r.Errors, admin.FieldError{Key: p.Key, Detail: p.Text})
		if p.Key != "" {
			keys = append(keys, p.Key)
		}
	}
	r.Detail = "Nothing was changed. Wrong: " + strings.Join(keys, ", ") + "."
	if len(keys) == 0 {
		r.Detail = "Nothing was changed: " + problems[0].Text + "."
	}
	return r
}

// bothWays refuses what would be a hold that lets everybody in.
func bothWays(r eviction.Room) error {
	if byHand(r) != eviction.Normal && r.Mode != eviction.Deleted && r.Method == eviction.Passthrough {
		return refuse(http.StatusConflict, "room_open",
			"Everybody goes straight through a room that is suspended, or whose queueing_method is passthrough, so it cannot be held or drained. Release it first, or have people wait.")
	}
	return nil
}

// others are the other rooms of the cluster.
func (o operator) others(name string) (all []config.Room) {
	snapshot := o.s.loop.Snapshot()
	for i := range snapshot.Rooms {
		if r := snapshot.Rooms[i].Room; r.Name != name && r.Mode != eviction.Deleted {
			c, _ := configOf(r) // as far as it can be read
			all = append(all, c)
		}
	}
	return all
}

// Delete ends a room. Its configuration stays as a tombstone, with a version, so
// that no node brings it back that was away, or that has it in its file.
func (o operator) Delete(ctx context.Context, e admin.Edit) (admin.Outcome, error) {
	o.s.edits.Lock()
	defer o.s.edits.Unlock()
	running, _ := o.running(e.Room)
	if running == nil {
		return admin.Outcome{}, unknownRoom()
	}
	if err := met(&e, running); err != nil {
		return admin.Outcome{}, err
	}
	next := running.Room
	next.Mode, next.Settings = eviction.Deleted, ""
	return o.propose(ctx, e, "delete", next, running)
}

// SetMode holds, releases or drains a room.
func (o operator) SetMode(ctx context.Context, e admin.Edit, m admin.Mode) (admin.Outcome, error) {
	o.s.edits.Lock()
	defer o.s.edits.Unlock()
	running, _ := o.running(e.Room)
	if running == nil {
		return admin.Outcome{}, unknownRoom()
	}
	if err := met(&e, running); err != nil {
		return admin.Outcome{}, err
	}
	mode, action := eviction.Normal, "release"
	switch m {
	case admin.Held:
		mode, action = eviction.Held, "hold"
	case admin.Draining:
		mode, action = eviction.Draining, "drain"
	case admin.Normal:
	}
	next := withMode(running.Room, mode)
	if mode == byHand(running.Room) {
		return admin.Outcome{Room: configured(running.Room)}, nil
	}
	if err := bothWays(next); err != nil {
		return admin.Outcome{}, err
	}
	return o.propose(ctx, e, action, next, running)
}

// propose gives a room to the cluster and waits until it is in force here. The
// caller holds edits.
func (o operator) propose(ctx context.Context, e admin.Edit, action string, next eviction.Room, old *node.RoomStatus) (admin.Outcome, error) {
	var before eviction.Room
	if old != nil {
		before = old.Room
	}
	if err := o.s.loop.SetRoom(next); errors.Is(err, node.ErrInvalid) {
		return admin.Outcome{}, refuse(http.StatusBadRequest, "room_invalid", "Nothing was changed: %s.", strings.ReplaceAll(err.Error(), "\n", " "))
	} else if err != nil {
		return admin.Outcome{}, refuse(http.StatusServiceUnavailable, "unavailable", "The node is stopping. Ask another one.")
	}
	o.s.audits.add(admin.AuditEntry{At: time.Now().UTC(), Who: e.Who, From: e.From, Action: action, Room: next.Name, Changes: changesOf(before, next)})
	now, ok := o.inForce(ctx, next.Name, before.Version)
	switch {
	case !ok:
		return admin.Outcome{Room: configured(next), Pending: true}, nil
	case now.Sum() != next.WithDefaults().KeepSeeds(&now).Sum():
		return admin.Outcome{}, refuse(http.StatusPreconditionFailed, "room_changed", "Another change of the room came at the same time, and counts. Read it again.")
	}
	return admin.Outcome{Room: configured(now)}, nil
}

// inForce waits for a room of another version than that one.
func (o operator) inForce(ctx context.Context, name string, before eviction.Version) (eviction.Room, bool) {
	ctx, cancel := context.WithTimeout(ctx, forceWithin)
	defer cancel()
	every := time.NewTicker(20 * time.Millisecond)
	defer every.Stop()
	for {
		if r, ok := o.s.loop.Snapshot().Room(name); ok && r.Room.Version != before && r.Room.Version != (eviction.Version{}) {
			return r.Room, true
		}
		select {
		case <-ctx.Done():
			return eviction.Room{}, false
		case <-every.C:
		}
	}
}

// Reclaim says that a node will not return. Rooms that share out their limit over
// the sides of a split, or stop at one, wait for it otherwise.
func (o operator) Reclaim(ctx context.Context, e admin.Edit, name string) (admin.Reclaimed, error) {
	o.s.edits.Lock()
	defer o.s.edits.Unlock()
	done := admin.Reclaimed{Node: name, Rooms: []string{}}
	snapshot := o.s.loop.Snapshot()
	called := func(m eviction.Member) bool { return string(m.Name) == name }
	if slices.ContainsFunc(snapshot.Status.List, called) {
		return done, refuse(http.StatusConflict, "node_alive", "The node is in the waves. Stop it first.")
	}
	if o.s.members != nil && slices.ContainsFunc(o.s.members.Members(), func(m membership.Member) bool { return called(m.Member) }) {
		return done, refuse(http.StatusConflict, "node_alive", "Gossip says that the node runs. Stop it first; one that was stopped just now is noticed within seconds.")
	}
	var gone []eviction.Member
	for _, m := range snapshot.Met {
		if called(m) {
			gone = append(gone, m)
		}
	}
	if len(gone) == 0 {
		return done, refuse(http.StatusNotFound, "node_unknown", "No node of that name was in a wave with this one, or it is forgotten because nothing waits for it.")
	}
	for i := range snapshot.Rooms {
		old := &snapshot.Rooms[i]
		deleted := old.Room.Mode == eviction.Deleted
		if stops := old.Room.OnPartition == eviction.Stop && !deleted; !stops && !old.Shares {
			continue
		}
		next := old.Room
		next.Reclaimed = slices.DeleteFunc(slices.Clone(next.Reclaimed), func(m eviction.Member) bool {
			return slices.Contains(gone, m) || !slices.Contains(snapshot.Met, m) // nobody remembers it
		})
		next.Reclaimed = append(next.Reclaimed, gone...)
		if next.Sum() != old.Room.Sum() {
			if _, err := o.propose(ctx, e, "reclaim", next, old); err != nil {
				return done, err
			}
		}
		if !deleted {
			done.Rooms = append(done.Rooms, next.Name)
		}
	}
	return done, nil
}

func (o operator) Find(p gateway.Probe) gateway.Finding { return o.s.gateway.Find(p) }

func (o operator) History(room string) ([]admin.Sample, bool) {
	if r, _ := o.running(room); r == nil {
		return nil, false
	}
	return o.s.samples.of(room), true
}

func (o operator) Audit() []admin.AuditEntry { return o.s.audits.list() }
