package wire

import (
	"github.com/anteroom/anteroom/eviction"
	peerv1 "github.com/anteroom/anteroom/proto/anteroom/peer/v1"
)

// A reply speaks of all the nodes of a subtree, and most of what it says of them is the
// same of each. So what is like that of the first is left out.

func fromNodeReplies(in []eviction.NodeReply) []*peerv1.NodeReply {
	out := make([]*peerv1.NodeReply, len(in))
	for i := range in {
		out[i] = fromNodeReply(in[i])
		n, first := &in[i], &in[0]
		if i == 0 || n.Line != first.Line || n.Knows != first.Knows || n.Expect != first.Expect || n.Joins != first.Joins || n.Since != first.Since {
			continue
		}
		p := out[i]
		p.Like, p.Line, p.Knows, p.Expect, p.Joins, p.Since = true, nil, false, 0, false, 0
		p.Clock, p.ClockMore = 0, n.Clock-first.Clock
		p.Hlc, p.HlcMore = 0, int64(n.HLC-first.HLC)
	}
	return out
}

func (r *reader) nodeReplies(in []*peerv1.NodeReply) []eviction.NodeReply {
	out := list(r, "nodes", in, nodesMax, r.nodeReply)
	for i := range out {
		p := in[i]
		if !p.GetLike() {
			continue
		}
		n, first := &out[i], &out[0]
		n.Line, n.Knows, n.Expect, n.Joins, n.Since = first.Line, first.Knows, first.Expect, first.Joins, first.Since
		n.Clock, n.HLC = first.Clock+p.GetClockMore(), first.HLC+uint64(p.GetHlcMore())
	}
	return out
}

func fromRoomNodes(in []eviction.RoomNode) []*peerv1.RoomNode {
	out := make([]*peerv1.RoomNode, len(in))
	for i := range in {
		out[i] = fromRoomNode(in[i])
		n, first := &in[i], &in[0]
		if i == 0 || n.Line != first.Line || n.Holds != first.Holds || n.Version != first.Version || n.Sum != first.Sum || n.TTL != first.TTL || n.Dealt != first.Dealt {
			continue
		}
		p := out[i]
		p.Like, p.Line, p.Holds, p.Version, p.Sum, p.Ttl, p.Dealt = true, nil, nil, nil, 0, 0, nil
		if n.First != 0 {
			p.First, p.FirstMore = 1, int64(n.First-first.First)
		}
	}
	return out
}

func (r *reader) roomNodes(in []*peerv1.RoomNode) []eviction.RoomNode {
	out := list(r, "nodes", in, nodesMax, r.roomNode)
	for i := range out {
		p := in[i]
		if !p.GetLike() {
			continue
		}
		n, first := &out[i], &out[0]
		n.Line, n.Holds, n.Version, n.Sum, n.TTL, n.Dealt = first.Line, first.Holds, first.Version, first.Sum, first.TTL, first.Dealt
		if n.First != 0 {
			n.First = first.First + uint64(p.GetFirstMore())
		}
	}
	return out
}
