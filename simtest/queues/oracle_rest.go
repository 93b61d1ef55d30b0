package queues

import (
	"strings"

	"github.com/anteroom/anteroom/internal/broker"
	"github.com/anteroom/anteroom/internal/pqueue"
	"github.com/anteroom/anteroom/qpid"
)

// shown checks what a Peek has shown just before these were taken, and whether it
// says that there are more.
func (o *oracle) shown(queue string, peek *broker.Answer, taken []broker.Part, more bool) {
	if peek != nil && peek.Result.Code == pqueue.Unavailable && strings.HasSuffix(queue, "safe") {
		return // it says so: this node heard of two leaders of the log in the wrong order
	}
	if peek == nil || len(peek.Parts) < len(taken) || more != (peek.More != qpid.Weight{}) {
		o.fail("queue %s at rest: before a take of %d, of all there are: %v, a peek shows %+v", queue, len(taken), !more, peek)
		return
	}
	for i, p := range taken {
		if was, is := peek.Parts[i].Result.Items[0], p.Result.Items[0]; was.Number != is.Number {
			o.fail("queue %s at rest: a peek shows %s in place %d, and a take brings %s", queue, was.ID, i, is.ID)
		}
	}
}

// drained takes in items of the end, which must come in order.
func (o *oracle) drained(queue string, parts []broker.Part) {
	for _, p := range parts {
		got := p.Result.Items[0]
		last, ok := o.last[queue]
		if ok && goesBefore(got, last) {
			o.fail("queue %s at rest: %s (%d, %d) comes after %s (%d, %d)", queue, got.ID, got.Priority, got.Stamp, last.ID, last.Priority, last.Stamp)
		}
		o.last[queue] = got
		i := o.item(queue, broker.HandleOf(p.Kind, p.Node, got.Number), got.ID)
		i.fetched = true
		o.swept(i, got.Payload)
	}
}
