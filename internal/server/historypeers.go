package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/series"
	"github.com/anteroom/anteroom/membership"
	peerv1 "github.com/anteroom/anteroom/proto/anteroom/peer/v1"
	"github.com/anteroom/anteroom/proto/link"
	"github.com/anteroom/anteroom/qpid"
)

const (
	historyPartMax   = 128 << 10       // bytes of rows in a message
	historyAnswerMax = 32 << 20        // bytes of rows in an answer
	historyMinuteMax = 16 << 20        // bytes of a node's minute
	historyWithin    = 3 * time.Second // a node answers, or counts as missing
)

// historyPeers are the connections to the other nodes, beside the links: what is
// asked of a history must not hold up the waves.
type historyPeers struct {
	s *Server

	mu    sync.Mutex
	conns map[eviction.Member]*grpc.ClientConn
}

// to returns the service of a member.
func (p *historyPeers) to(m membership.Member) (peerv1.HistoryClient, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	conn := p.conns[m.Member]
	if conn == nil {
		o := []grpc.DialOption{
			grpc.WithTransportCredentials(p.s.auth.Client()), grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(link.RequestMax)),
			grpc.WithConnectParams(grpc.ConnectParams{
				Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 2, Jitter: 0.2, MaxDelay: time.Second},
				MinConnectTimeout: historyWithin,
			}),
			grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 10 * time.Second, Timeout: historyWithin}), // or a dead one would be asked for long
			grpc.WithDisableServiceConfig(), grpc.WithNoProxy(), grpc.WithIdleTimeout(time.Minute),
		}
		if p.s.o.Dial != nil {
			o = append(o, grpc.WithContextDialer(p.s.o.Dial))
		}
		var err error
		if conn, err = grpc.NewClient("passthrough:///"+m.Addr, o...); err != nil {
			return nil, err
		}
		if p.conns == nil {
			p.conns = make(map[eviction.Member]*grpc.ClientConn)
		}
		p.conns[m.Member] = conn
	}
	return peerv1.NewHistoryClient(conn), nil
}

// only closes the connections to whom is no member any more.
func (p *historyPeers) only(members map[eviction.Member]string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for m, conn := range p.conns {
		if _, ok := members[m]; !ok {
			_ = conn.Close() // only ever says that it is closed
			delete(p.conns, m)
		}
	}
}

func (p *historyPeers) close() { p.only(nil) }

// others are the other members, by name.
func (h *past) others() []membership.Member {
	all := slices.DeleteFunc(slices.Clone(h.s.members.Members()), func(m membership.Member) bool { return m.Member == h.s.self.Member })
	slices.SortFunc(all, func(a, b membership.Member) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// handOn gives each minute to one other node, until ctx ends.
func (h *past) handOn(ctx context.Context) {
	retry := time.NewTicker(2 * time.Second)
	defer retry.Stop()
	for {
		var m series.Minute
		select {
		case <-ctx.Done():
			return
		case m = <-h.pending:
		}
		for !h.handOver(ctx, m) {
			select {
			case <-ctx.Done():
				return
			case <-retry.C:
			}
			if len(h.pending) == cap(h.pending) {
				break // that much is waiting: this one is given up
			}
		}
	}
}

// handOver gives a minute to the next member by name, so that each keeps those of one
// other. It reports whether that has it, or nobody else is there.
func (h *past) handOver(ctx context.Context, m series.Minute) bool {
	others := h.others()
	if len(others) == 0 {
		return true
	}
	i, _ := slices.BinarySearchFunc(others, h.s.self.Name, func(o membership.Member, self qpid.NodeID) int { return cmp.Compare(o.Name, self) })
	keeper, err := h.peers.to(others[i%len(others)])
	if err != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, historyWithin)
	defer cancel()
	stream, err := keeper.KeepMinute(ctx)
	for part := range slices.Chunk(series.EncodeMinute(m), historyPartMax) {
		if err == nil {
			err = stream.Send(&peerv1.KeepMinuteRequest{Node: string(h.s.self.Name), Part: part})
		}
	}
	if err == nil || errors.Is(err, io.EOF) {
		_, err = stream.CloseAndRecv()
	}
	return err == nil || status.Code(err) == codes.Unimplemented // a node of before keeps nothing
}

// historyService is what the other nodes ask.
type historyService struct {
	peerv1.UnimplementedHistoryServer
	h *past
}

// KeepMinute keeps a minute of another node.
func (s historyService) KeepMinute(stream grpc.ClientStreamingServer[peerv1.KeepMinuteRequest, peerv1.KeepMinuteResponse]) error {
	var node string
	var all []byte
	for {
		r, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		node = r.GetNode()
		if all = append(all, r.GetPart()...); len(all) > historyMinuteMax {
			return status.Error(codes.ResourceExhausted, "the minute is too large")
		}
	}
	m, err := series.DecodeMinute(all)
	if err == nil && (node == "" || node == string(s.h.s.self.Name)) {
		err = errors.New("it is of no other node")
	}
	if err != nil {
		return status.Error(codes.InvalidArgument, err.Error())
	}
	if err := s.h.kept.Add(node, m); err != nil {
		return status.Error(codes.Unavailable, err.Error())
	}
	return stream.SendAndClose(&peerv1.KeepMinuteResponse{})
}

// ReadHistory tells what this node has.
func (s historyService) ReadHistory(r *peerv1.ReadHistoryRequest, stream grpc.ServerStreamingServer[peerv1.ReadHistoryResponse]) error {
	span := series.Span{From: r.GetFrom(), To: r.GetTo(), Step: r.GetStep()}
	if err := span.Check(); err != nil {
		return status.Error(codes.InvalidArgument, err.Error())
	}
	h := s.h
	select {
	case h.reading <- struct{}{}:
		defer func() { <-h.reading }()
	case <-stream.Context().Done():
		return status.FromContextError(stream.Context().Err()).Err()
	}
	part := h.local(r.GetRoom(), r.GetNode(), span, r.GetBefore())
	first := &peerv1.ReadHistoryResponse{Node: string(h.s.self.Name), Since: part.since, Known: part.known}
	for _, k := range part.kept {
		first.Kept = append(first.Kept, &peerv1.KeptHistory{Node: k.node, From: k.from, Until: k.until, Left: k.left})
	}
	if err := stream.Send(first); err != nil {
		return err
	}
	sent := 0
	var b []byte
	for i := range part.rows {
		b = series.AppendRow(b, &part.rows[i], span)
		if len(b) < historyPartMax && i < len(part.rows)-1 {
			continue
		}
		if sent += len(b); sent > historyAnswerMax {
			return status.Error(codes.ResourceExhausted, "the answer is too large; ask for a coarser step")
		}
		if err := stream.Send(&peerv1.ReadHistoryResponse{Rows: b}); err != nil {
			return err
		}
		b = b[:0]
	}
	return nil
}

// askHistory asks another node.
func (h *past) askHistory(ctx context.Context, m membership.Member, room, node string, span series.Span, before int64) (p part, err error) {
	ctx, cancel := context.WithTimeout(ctx, historyWithin)
	defer cancel()
	c, err := h.peers.to(m)
	if err != nil {
		return p, err
	}
	stream, err := c.ReadHistory(ctx, &peerv1.ReadHistoryRequest{Room: room, From: span.From, To: span.To, Step: span.Step, Node: node, Before: before})
	if err != nil {
		return p, err
	}
	for size := 0; ; {
		r, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return p, nil
		}
		if err != nil {
			return p, err
		}
		if r.GetNode() != "" {
			p.since, p.known = r.GetSince(), r.GetKnown()
			for _, k := range r.GetKept() {
				p.kept = append(p.kept, keptSpan{k.GetNode(), k.GetFrom(), k.GetUntil(), k.GetLeft()})
			}
		}
		if size += len(r.GetRows()); size > historyAnswerMax {
			return p, fmt.Errorf("%s tells too much", m.Name)
		}
		err = series.Decode(r.GetRows(), span.From, span.Step, func(row *series.Row) bool {
			p.rows = append(p.rows, *row)
			return len(p.rows) <= span.Steps()
		})
		if err != nil {
			return p, err
		}
	}
}
