package node_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/node"
	"github.com/anteroom/anteroom/qpid"
)

// A peer is authenticated but may be wrong: whatever it sends, nobody panics,
// no slot comes out of nothing, and when it comes to its senses all is well.
func TestSenselessMessages(t *testing.T) {
	reply := func(spoil func(*eviction.Reply)) func(eviction.Body) eviction.Body {
		return func(b eviction.Body) eviction.Body {
			r, ok := b.(*eviction.Reply)
			if !ok {
				return b
			}
			w := *r
			w.Nodes, w.Rooms = slices.Clone(r.Nodes), slices.Clone(r.Rooms)
			for i := range w.Rooms {
				w.Rooms[i].Nodes = slices.Clone(w.Rooms[i].Nodes)
			}
			spoil(&w)
			return &w
		}
	}
	commit := func(spoil func(*eviction.Commit)) func(eviction.Body) eviction.Body {
		return func(b eviction.Body) eviction.Body {
			c, ok := b.(*eviction.Commit)
			if !ok {
				return b
			}
			w := *c
			w.Rooms = slices.Clone(c.Rooms)
			spoil(&w)
			return &w
		}
	}
	room := func(spoil func(*eviction.RoomCommit)) func(eviction.Body) eviction.Body {
		return commit(func(c *eviction.Commit) {
			for i := range c.Rooms {
				spoil(&c.Rooms[i])
			}
		})
	}
	gather := func(spoil func(*eviction.Gather)) func(eviction.Body) eviction.Body {
		return func(b eviction.Body) eviction.Body {
			g, ok := b.(*eviction.Gather)
			if !ok {
				return b
			}
			w := *g
			w.List, w.Rooms = slices.Clone(g.List), slices.Clone(g.Rooms)
			spoil(&w)
			return &w
		}
	}
	far := []int{-1, 3, 99}
	tests := map[string]func(eviction.Body) eviction.Body{
		"reply of no room":       reply(func(r *eviction.Reply) { r.Rooms = nil }),
		"reply of no node":       reply(func(r *eviction.Reply) { r.Nodes = nil }),
		"reply of the same node": reply(func(r *eviction.Reply) { r.Nodes = append(r.Nodes, r.Nodes...) }),
		"reply of another's": reply(func(r *eviction.Reply) {
			for i := range r.Nodes {
				r.Nodes[i].Index = (r.Nodes[i].Index + 1) % 3
			}
		}),
		"reply of other rooms": reply(func(r *eviction.Reply) {
			for i := range r.Rooms {
				r.Rooms[i].Room = "elsewhere"
			}
		}),
		"commit of no room":     commit(func(c *eviction.Commit) { c.Rooms = nil }),
		"commit with few rests": commit(func(c *eviction.Commit) { c.RestMin = []qpid.Weight{} }),
		"commit without accounts": room(func(r *eviction.RoomCommit) {
			r.Born = nil
		}),
		"commit to burn less than nothing": room(func(r *eviction.RoomCommit) {
			r.Burn = []eviction.Deal{{Index: 1, N: -50}, {Index: 2, N: -50}}
		}),
		"commit with strange moves": room(func(r *eviction.RoomCommit) {
			r.Moves = []eviction.Move{{From: 1, To: 77, Slots: 1}, {From: 1, To: -1, Slots: 1}, {From: 2, To: 0, Slots: -7}}
		}),
		"commit that waits at few": room(func(r *eviction.RoomCommit) { r.Waiting = []int{} }),
		"commit with a digest of few": room(func(r *eviction.RoomCommit) {
			r.Digest, r.First = &eviction.Digest{}, []int{0}
		}),
		"commit with a digest upside down": room(func(r *eviction.RoomCommit) {
			r.Digest, r.First = &eviction.Digest{Marks: []eviction.Mark{{Key: eviction.Key{Stamp: 2}, Rank: 1}, {Key: eviction.Key{Stamp: 1}}}, Length: 2}, make([]int, len(r.Born))
		}),
		"commit with people at a mark that is none": room(func(r *eviction.RoomCommit) {
			r.Digest, r.First = &eviction.Digest{Marks: []eviction.Mark{{Key: eviction.Key{Stamp: 1}}}, Length: 1}, []int{0, 0, 2}
		}),
		"gather of nobody":        gather(func(g *eviction.Gather) { g.List = nil }),
		"gather of doubles":       gather(func(g *eviction.Gather) { g.List = append(g.List, g.List...) }),
		"gather led by another":   gather(func(g *eviction.Gather) { g.Lead.Name = "x" }),
		"gather in another order": gather(func(g *eviction.Gather) { slices.Reverse(g.List) }),
		"gather of less than nothing": gather(func(g *eviction.Gather) {
			for i := range g.Rooms {
				g.Rooms[i].Want = -5
			}
		}),
		"gather with a long wait":         gather(func(g *eviction.Gather) { g.Wait = 1 << 62 }),
		"gather of the last epoch of all": gather(func(g *eviction.Gather) { g.Epoch.Num = math.MaxUint64 }),
		"acks of the last epoch of all": func(b eviction.Body) eviction.Body {
			if a, ok := b.(*eviction.ProbeAck); ok {
				w := *a
				w.Epoch.Num = math.MaxUint64 - 1
				return &w
			}
			return b
		},
		"nothing at all": func(eviction.Body) eviction.Body { return nil },
	}
	for _, f := range far {
		tests[fmt.Sprintf("reply of node %d", f)] = reply(func(r *eviction.Reply) {
			for i := range r.Nodes {
				r.Nodes[i].Index = f
			}
		})
		tests[fmt.Sprintf("room reply of node %d", f)] = reply(func(r *eviction.Reply) {
			for i := range r.Rooms {
				for j := range r.Rooms[i].Nodes {
					r.Rooms[i].Nodes[j].Index = f
				}
			}
		})
		tests[fmt.Sprintf("front of node %d", f)] = reply(func(r *eviction.Reply) {
			for i := range r.Rooms {
				w := qpid.Weight{Stamp: 1}
				r.Rooms[i].Front = eviction.Front{Items: []eviction.Tagged{{Weight: w, Index: f}}, Samples: []eviction.Sample{{Weight: w, Rank: 1, Index: f}}}
			}
		})
	}
	for name, spoil := range tests {
		t.Run(name, func(t *testing.T) {
			c := founded(t, 3, eviction.Room{Name: "shop", Target: 6, Session: time.Second, QueueAll: true, Algorithm: eviction.ByQPID},
				eviction.Room{Name: "cut", Target: 6, Session: time.Second, QueueAll: true})
			c.lenient = true
			c.pass = func(m eviction.Message) []eviction.Message {
				m.Body = spoil(m.Body)
				if m.From.Name == "b0" || m.From.Name == "a0" && m.To.Name == "b0" {
					return []eviction.Message{m}
				}
				return []eviction.Message{m}
			}
			for range 3 {
				for _, m := range c.node {
					c.join(m, "shop")
					c.join(m, "cut")
				}
				c.run(time.Second)
			}
			c.pass = nil
			for _, r := range []string{"shop", "cut"} {
				if owned, _ := c.supply(r); owned > 6 {
					t.Errorf("room %s: %d slots exist, want at most 6", r, owned)
				}
			}
			c.until("wave", 20*time.Second, func() bool {
				for _, m := range c.node {
					if s := m.Status(); s.Grade != eviction.Unanimous || s.LeaseUntil < bootStart+c.now+9e6 {
						return false
					}
				}
				return true
			})
		})
	}
}

// spoiled copies a message body and changes some of its numbers and lengths.
func spoiled(rng *rand.Rand, b eviction.Body) eviction.Body {
	p := reflect.New(reflect.TypeOf(b).Elem())
	p.Elem().Set(spoil(rng, reflect.ValueOf(b).Elem()))
	return p.Interface().(eviction.Body)
}

func spoil(rng *rand.Rand, v reflect.Value) reflect.Value {
	out := reflect.New(v.Type()).Elem()
	out.Set(v)
	odd := rng.IntN(30) == 0
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if out.Field(i).CanSet() {
				out.Field(i).Set(spoil(rng, v.Field(i)))
			}
		}
	case reflect.Pointer:
		if !v.IsNil() {
			out.Set(reflect.New(v.Type().Elem()))
			out.Elem().Set(spoil(rng, v.Elem()))
		}
	case reflect.Slice:
		n := v.Len()
		if odd {
			n = rng.IntN(2*n + 2)
		}
		out.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			if v.Len() > 0 {
				out.Index(i).Set(spoil(rng, v.Index(i%v.Len())))
			}
		}
	case reflect.Int, reflect.Int64:
		if odd {
			out.SetInt([]int64{-1, 0, 1, 7, 1 << 20, math.MaxInt64, math.MinInt64}[rng.IntN(7)])
		}
	case reflect.Uint64, reflect.Uint32:
		if odd {
			out.SetUint([]uint64{0, 1, 7, 1 << 20, math.MaxUint32}[rng.IntN(5)])
		}
	case reflect.Uint8:
		if odd && v.Type().Name() != "uint8" {
			out.SetUint(uint64(rng.IntN(6)))
		}
	default:
	}
	return out
}

// Nothing that a peer sends makes another panic. (It may well stop the cluster
// for a while: a peer is trusted to follow the protocol.)
func TestSpoiledMessagesDoNotPanic(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 9))
		rooms := []eviction.Room{
			{Name: "shop", Target: 6, Session: time.Second, QueueAll: seed%2 == 0, NewPerMinute: int(seed%3) * 600},
			{Name: "qpid", Target: 6, Session: time.Second, Algorithm: eviction.ByQPID, OnPartition: eviction.Share},
			{Name: "lots", Target: 6, Session: time.Second, Method: eviction.Random, Survivor: time.Second},
		}
		c := founded(t, 1+int(seed)%4, rooms...)
		c.lenient = true
		c.pass = func(m eviction.Message) []eviction.Message {
			if rng.IntN(10) == 0 {
				m.Body = spoiled(rng, m.Body)
			}
			return []eviction.Message{m}
		}
		var tickets []node.Ticket
		for range 40 {
			for _, m := range c.node {
				for _, r := range rooms {
					c.ids++
					if a, err := m.Join(c.at(m), r.Name, qpid.ItemID{byte(c.ids), byte(c.ids >> 8)}, false); err == nil {
						tickets = append(tickets, a.Ticket)
					}
				}
			}
			c.run(200 * time.Millisecond)
			for range min(5, len(tickets)) {
				m := c.node[rng.IntN(len(c.node))]
				if a, err := m.Leave(c.at(m), tickets[rng.IntN(len(tickets))]); err == nil && a.State == node.Admitted && rng.IntN(2) == 0 {
					_, _ = m.End(c.at(m), a.Pass)
				}
			}
		}
	}
}
