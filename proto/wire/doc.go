// Package wire turns what the nodes of a cluster say into protobuf and back:
// message bodies (FromBody, ToBody), and the visitors' requests, answers and
// errors that one node forwards to another.
//
// Encoding cannot go wrong. Decoding is strict: a length, number or enum that no
// node would send is an error, and what was decoded is safe to keep, since
// it shares no memory with the input. What a message means is not looked at:
// packages eviction and qpid do that.
//
// The two are inverse, with one exception: an empty list is decoded as nil.
package wire

import (
	"errors"

	"google.golang.org/protobuf/proto"

	"github.com/anteroom/anteroom/eviction"
	peerv1 "github.com/anteroom/anteroom/proto/anteroom/peer/v1"
)

// ErrKind is a message of a kind that this version does not know: its sender
// may be newer.
var ErrKind = errors.New("wire: unknown kind of message")

// ErrMalformed is input that no node would send.
var ErrMalformed = errors.New("wire: malformed")

// Bounds of what may come in. They are far above what a cluster sends and keep
// a broken peer from taking much more memory than it had to send.
const (
	nameMax     = 512     // bytes of a name of a node or a room
	settingsMax = 1 << 20 // bytes of a room's settings
	textMax     = 2048    // bytes of a sentence for people
	nodesMax    = 4096    // nodes that a message speaks of
	roomsMax    = 4096    // rooms that a message speaks of
	recordsMax  = 1 << 16 // of one kind: accounts, voids, moves, front items, tickets taken over
	weightsMax  = 1 << 20 // in one list
)

// Marshal encodes one message body.
func Marshal(b eviction.Body) ([]byte, error) {
	p, err := FromBody(b)
	if err != nil {
		return nil, err
	}
	return proto.Marshal(p)
}

// Unmarshal decodes what Marshal encoded.
func Unmarshal(data []byte) (eviction.Body, error) {
	var p peerv1.Body
	if err := proto.Unmarshal(data, &p); err != nil {
		return nil, errors.Join(ErrMalformed, err)
	}
	return ToBody(&p)
}
