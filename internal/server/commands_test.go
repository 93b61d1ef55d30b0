package server

import (
	"testing"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/qpid"
)

func TestTurnsGoByTheTimeOfJoining(t *testing.T) {
	cut := eviction.Cut{Value: qpid.Weight{Stamp: 9}}
	for _, c := range []struct {
		room eviction.Room
		cut  eviction.Cut
		want uint64
	}{
		{eviction.Room{}, cut, 9},
		{eviction.Room{}, eviction.Cut{}, 1},
		{eviction.Room{Method: eviction.Random}, cut, 0},
		{eviction.Room{Algorithm: eviction.ByQPID}, cut, 0},
		{eviction.Room{}, eviction.Cut{Keying: 3, Value: cut.Value}, 0}, // after a draw
	} {
		if got := front(c.room, c.cut); got != c.want {
			t.Errorf("%v, %+v: %d, want %d", c.room.Method, c.cut, got, c.want)
		}
	}
}

func TestOriginCommandsAndAWSReachTheGateway(t *testing.T) {
	r := withPage("")
	if g, err := gatewayRoom(roomOf(r)); err != nil || g.IgnoreOrigin || g.AWS {
		t.Errorf("by default: %+v, %v", g, err)
	}
	r.OriginCommands, r.AWSAPI = nil, true
	if g, err := gatewayRoom(roomOf(r)); err != nil || !g.IgnoreOrigin || !g.AWS {
		t.Errorf("%+v, %v", g, err)
	}
	// A node of an older version knows of no such setting, and its origins may say revoke.
	if g, err := gatewayRoom(eviction.Room{Name: "shop", Settings: `{"origin":"http://127.0.0.1:9000"}`}); err != nil || g.IgnoreOrigin {
		t.Errorf("of an older node: %+v, %v", g, err)
	}
}
