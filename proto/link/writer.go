package link

import (
	"log/slog"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/anteroom/anteroom/eviction"
	peerv1 "github.com/anteroom/anteroom/proto/anteroom/peer/v1"
	"github.com/anteroom/anteroom/proto/wire"
)

// writer numbers the messages of one stream and sends them in frames.
type writer struct {
	o      *outgoing
	stream peerv1.Peer_LinkClient
	next   uint64 // number of the next message

	// The frame that is being filled.
	bodies []*peerv1.Body
	size   int
}

func (w *writer) send(r *peerv1.LinkRequest) error { return w.stream.Send(r) }

func (w *writer) ping() error {
	sent := int64(time.Since(w.o.links.started))
	return w.send(&peerv1.LinkRequest{Kind: &peerv1.LinkRequest_Ping{Ping: &peerv1.Ping{Sent: sent}}})
}

// messages sends all of them, in as few frames as they fit.
func (w *writer) messages(all []eviction.Message) error {
	for _, m := range all {
		body, err := wire.FromBody(m.Body)
		size := proto.Size(body)
		switch {
		case err != nil || size > w.o.links.c.MessageMax:
			w.o.counts.dropped.Add(1)
			w.o.links.log.Error("message not sent", attr(w.o.to), slog.String("kind", m.Body.Kind()), slog.Int("bytes", size), slog.Any("err", err))
		case size > frameMax:
			if err := w.flush(); err != nil {
				return err
			}
			if err := w.parts(body); err != nil {
				return err
			}
		default:
			if w.size+size > frameMax {
				if err := w.flush(); err != nil {
					return err
				}
			}
			w.bodies, w.size = append(w.bodies, body), w.size+size
		}
	}
	return w.flush()
}

// hints sends what has happened to tickets that are watched at the other node.
func (w *writer) hints(all []hint) error {
	if len(all) == 0 {
		return nil
	}
	hints := make([]*peerv1.Hint, len(all))
	for i, h := range all {
		hints[i] = wire.FromHint(h.room, h.id)
	}
	return w.send(&peerv1.LinkRequest{Kind: &peerv1.LinkRequest_Hints{Hints: &peerv1.Hints{Hints: hints}}})
}

// flush sends the frame.
func (w *writer) flush() error {
	n := uint64(len(w.bodies))
	if n == 0 {
		return nil
	}
	err := w.send(&peerv1.LinkRequest{Kind: &peerv1.LinkRequest_Frame{Frame: &peerv1.Frame{Seq: w.next, Bodies: w.bodies}}})
	w.sent(n, w.size)
	w.bodies, w.size = nil, 0
	return err
}

// parts sends one message in pieces.
func (w *writer) parts(body *peerv1.Body) error {
	data, err := proto.Marshal(body)
	if err != nil {
		return err
	}
	size := len(data)
	for len(data) > 0 {
		n := min(len(data), frameMax)
		part := &peerv1.Part{Seq: w.next, Data: data[:n], Last: n == len(data)}
		if err := w.send(&peerv1.LinkRequest{Kind: &peerv1.LinkRequest_Part{Part: part}}); err != nil {
			return err
		}
		data = data[n:]
	}
	w.sent(1, size)
	return nil
}

func (w *writer) sent(n uint64, size int) {
	w.next += n
	w.o.counts.sent.Add(n)
	w.o.counts.sentBytes.Add(uint64(size))
}
