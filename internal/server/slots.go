package server

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/gateway/admin"
	"github.com/anteroom/anteroom/membership"
	peerv1 "github.com/anteroom/anteroom/proto/anteroom/peer/v1"
)

// slotsWithin is how long a node may take to say what it has: who looks at a dashboard
// waits for it.
const slotsWithin = time.Second

// Slots asks all nodes what they have of a room, or of all rooms where none is named.
func (o historian) Slots(ctx context.Context, room string) []admin.NodeSlots {
	h := o.h
	ctx, cancel := context.WithTimeout(ctx, slotsWithin)
	defer cancel()
	others := h.others()
	all := make([]admin.NodeSlots, len(others), len(others)+1)
	var asked sync.WaitGroup
	for i, m := range others {
		asked.Go(func() { all[i] = h.askPart(ctx, m, room) })
	}
	asked.Wait()
	all = append(all, slotsOf(string(h.s.self.Name), h.part(room)))
	slices.SortFunc(all, func(a, b admin.NodeSlots) int { return cmp.Compare(a.Node, b.Node) })
	return all
}

func (h *past) askPart(ctx context.Context, m membership.Member, room string) admin.NodeSlots {
	c, err := h.peers.to(m)
	if err == nil {
		var p *peerv1.ReadPartResponse
		if p, err = c.ReadPart(ctx, &peerv1.ReadPartRequest{Room: room}); err == nil {
			return slotsOf(string(m.Name), p)
		}
	}
	h.s.log.Debug("slots: a node does not answer", "peer", string(m.Name), "err", err)
	return admin.NodeSlots{Node: string(m.Name)}
}

// ReadPart tells another node.
func (s historyService) ReadPart(_ context.Context, r *peerv1.ReadPartRequest) (*peerv1.ReadPartResponse, error) {
	return s.h.part(r.GetRoom()), nil
}

// part is what this node has.
func (h *past) part(room string) *peerv1.ReadPartResponse {
	p := &peerv1.ReadPartResponse{}
	snapshot := h.s.loop.Snapshot()
	for i := range snapshot.Rooms {
		r := &snapshot.Rooms[i]
		if r.Room.Mode == eviction.Deleted || room != "" && r.Room.Name != room {
			continue
		}
		p.SlotsOwned += uint64(r.Owned)
		p.SlotsUsed += uint64(r.Used)
		p.SlotsFree += uint64(r.Free)
		p.Queued += uint64(r.Queued)
		p.Called += uint64(r.Called)
		p.OnSite += uint64(r.OnSite)
		p.Parked += uint64(r.Parked)
		p.Kept += uint64(r.Kept)
		if r.Bare >= 0 {
			p.KeptElsewhere += uint64(max(0, r.Queued-r.Bare))
		}
	}
	return p
}

func slotsOf(node string, p *peerv1.ReadPartResponse) admin.NodeSlots {
	return admin.NodeSlots{
		Node: node, Answers: true, SlotsOwned: int(p.GetSlotsOwned()), SlotsUsed: int(p.GetSlotsUsed()), SlotsFree: int(p.GetSlotsFree()),
		Queued: int(p.GetQueued()), Called: int(p.GetCalled()), OnSite: int(p.GetOnSite()), Parked: int(p.GetParked()),
		KeptElsewhere: int(p.GetKeptElsewhere()), Kept: int(p.GetKept()),
	}
}
