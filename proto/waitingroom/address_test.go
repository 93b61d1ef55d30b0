package waitingroom_test

import (
	"context"
	"net"
	"net/netip"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/anteroom/anteroom/internal/peraddress"
	anteroomv1 "github.com/anteroom/anteroom/proto/anteroom/v1"
	"github.com/anteroom/anteroom/proto/waitingroom"
)

// A program is bounded as a browser is, by the address that it calls from.
func TestAProgramIsBoundedByItsAddress(t *testing.T) {
	q := shop()
	q.state.Room = q.state.Room.WithDefaults()
	table := peraddress.New(peraddress.Config{Clock: q.Clock})
	table.SetRooms(map[string]peraddress.Limits{"shop": {Places: 2}})
	s := waitingroom.New(waitingroom.Config{Queue: q, Sealer: sealer{}, Addresses: table})
	defer s.Close()
	q.will(waiting(4), nil)
	join := func(from string) error {
		at := net.TCPAddrFromAddrPort(netip.MustParseAddrPort(from))
		_, err := s.Join(peer.NewContext(context.WithoutCancel(t.Context()), &peer.Peer{Addr: at}), &anteroomv1.JoinRequest{Room: "shop"})
		return err
	}
	for i := range 4 {
		err := join("192.0.2.7:1000")
		if reason, retry := detailsOf(t, err); i < 2 != (err == nil) || i >= 2 && (status.Code(err) != codes.ResourceExhausted || reason != "too_many_requests" || !retry) {
			t.Errorf("join %d: %v", i, err)
		}
	}
	for _, from := range []string{"192.0.2.8:1000", "127.0.0.1:1000", "10.1.2.3:1000"} {
		if err := join(from); err != nil {
			t.Errorf("from %s: %v", from, err)
		}
	}
}
