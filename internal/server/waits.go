package server

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/gateway/admin"
	"github.com/anteroom/anteroom/internal/series"
	"github.com/anteroom/anteroom/membership"
	peerv1 "github.com/anteroom/anteroom/proto/anteroom/peer/v1"
)

// waitsOf is of how many seconds people count as getting in now: few, as their waits
// change while a line grows, and enough for a room that lets in one every few seconds.
const waitsOf = 60

// Waits asks all nodes how long people had waited who got in of late, and puts together
// what they say.
func (o historian) Waits(ctx context.Context) admin.WaitsList {
	h := o.h
	ctx, cancel := context.WithTimeout(ctx, slotsWithin)
	defer cancel()
	others := h.others()
	parts, errs := make([]*peerv1.ReadWaitsResponse, len(others)), make([]error, len(others))
	var asked sync.WaitGroup
	for i, m := range others {
		asked.Go(func() { parts[i], errs[i] = h.askWaits(ctx, m) })
	}
	asked.Wait()
	list := admin.WaitsList{Seconds: waitsOf, Rooms: []admin.RoomWaits{}, Missing: []string{}}
	all := h.live.Waits(h.now() - waitsOf)
	for i, m := range others {
		if errs[i] != nil {
			h.s.log.Debug("waits: a node does not answer", "peer", string(m.Name), "err", errs[i])
			list.Missing = append(list.Missing, string(m.Name))
			continue
		}
		for _, r := range parts[i].GetRooms() {
			waits, err := series.ParseHist(r.GetWaits())
			if err != nil {
				h.s.log.Warn("waits: a node sends what is no histogram", "peer", string(m.Name), "room", r.GetRoom())
			}
			sum := all[r.GetRoom()]
			sum.Merge(waits)
			all[r.GetRoom()] = sum
		}
	}
	snapshot := h.s.loop.Snapshot()
	for i := range snapshot.Rooms { // another node may name rooms that this one does not know
		r := snapshot.Rooms[i].Room
		if waits := all[r.Name]; r.Mode != eviction.Deleted && len(waits) > 0 {
			list.Rooms = append(list.Rooms, admin.RoomWaits{Room: r.Name, Shares: sharesOf(waits)})
		}
	}
	slices.SortFunc(list.Rooms, func(a, b admin.RoomWaits) int { return cmp.Compare(a.Room, b.Room) })
	return list
}

func (h *past) askWaits(ctx context.Context, m membership.Member) (*peerv1.ReadWaitsResponse, error) {
	c, err := h.peers.to(m)
	if err != nil {
		return nil, err
	}
	return c.ReadWaits(ctx, &peerv1.ReadWaitsRequest{Seconds: waitsOf})
}

// ReadWaits tells another node.
func (s historyService) ReadWaits(_ context.Context, q *peerv1.ReadWaitsRequest) (*peerv1.ReadWaitsResponse, error) {
	a := &peerv1.ReadWaitsResponse{}
	for room, waits := range s.h.live.Waits(s.h.now() - int64(q.GetSeconds())) {
		a.Rooms = append(a.Rooms, &peerv1.RoomWaits{Room: room, Waits: waits.Bytes()})
	}
	return a, nil
}
