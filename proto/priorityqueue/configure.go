package priorityqueue

import (
	"cmp"
	"context"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/anteroom/anteroom/internal/broker"
	"github.com/anteroom/anteroom/internal/pqueue"
	anteroomv1 "github.com/anteroom/anteroom/proto/anteroom/v1"
)

// Configure changes settings of a queue, or shows them.
func (s *Server) Configure(ctx context.Context, r *anteroomv1.ConfigureRequest) (*anteroomv1.ConfigureResponse, error) {
	if err := checkQueue(r.GetQueue()); err != nil {
		return nil, err
	}
	is, _, ok := s.c.Queues.Settings(r.GetQueue(), r.GetSettings() != nil)
	if !ok {
		return nil, s.verdict(pqueue.QueueUnknown)
	}
	if k := cmp.Or(r.GetKind(), is.Kind.String()); k != is.Kind.String() {
		return nil, invalid("kind: %q is %v, and what keeps its items cannot change while it runs; let it run empty (drain), then give it the other kind in the configuration of all nodes and restart them, or use another queue", r.GetQueue(), is.Kind)
	}
	next, err := merge(is, r.GetSettings())
	if err != nil {
		return nil, err
	}
	a := broker.Answer{}
	if next != is {
		if err := s.sensible(next); err != nil {
			return nil, err
		}
		a, err = s.do(ctx, broker.Call{Command: pqueue.Command{Op: pqueue.OpConfigure, Queue: next.Name, Limits: next.Limits, Settings: next.Settings()}})
		if err != nil {
			return nil, err
		}
	}
	now, set, _ := s.c.Queues.Settings(r.GetQueue(), false)
	return &anteroomv1.ConfigureResponse{
		Settings: settingsOf(now), Kind: now.Kind.String(), ChangedAt: moment(int64(set.Stamp)), ChangedBy: set.By, Missing: missing(a),
	}, nil
}

// sensible says what is wrong with the settings of a queue; nil: nothing.
func (s *Server) sensible(q broker.Queue) error {
	if s.c.Check != nil {
		if err := s.c.Check(q); err != nil {
			return invalid("%v", err)
		}
	}
	// A dead letter goes on in one step, so the same node, disk or log keeps both queues.
	for name, n := q.Limits.DeadTo, 0; name != ""; n++ {
		to, _, ok := s.c.Queues.Settings(name, false)
		switch {
		case !ok:
			return invalid("dead_letter_queue: there is no queue %q; put something into it, or list it in the configuration", name)
		case to.Kind != q.Kind:
			return invalid("dead_letter_queue: %q is %v, and this queue is %v; name one of the same kind", name, to.Kind, q.Kind)
		case !s.c.Queues.Stays(name):
			return invalid("dead_letter_queue: %q is forgotten when nothing has been in it for a while; list it in the configuration, or give it settings of its own first (anteroom queue set)", name)
		case to.Name == q.Name, n > chainMax:
			return invalid("dead_letter_queue: %q leads back to this queue; the last of them needs to have none", q.Limits.DeadTo)
		}
		name = to.Limits.DeadTo
	}
	return nil
}

// chainMax bounds how many queues dead letters go through.
const chainMax = 100

// number takes over a number that is set.
func number(into *int, from *uint32) {
	if from != nil {
		*into = int(*from)
	}
}

// merge is q with what is set of s.
func merge(q broker.Queue, s *anteroomv1.QueueSettings) (broker.Queue, error) {
	if s == nil {
		return q, nil
	}
	l, factor := &q.Limits, int(q.Limits.Backoff.Factor/1000)
	number(&l.ItemsMax, s.MaxItems)
	number(&q.PayloadMax, s.MaxPayload)
	number(&l.AttemptsMax, s.MaxAttempts)
	number(&l.DeadMax, s.DeadLettersMax)
	number(&l.RememberMax, s.RememberMax)
	number(&q.PerInterval, s.PerInterval)
	number(&l.InFlightMax, s.MaxInFlight)
	if s.ExclusiveKeys != nil {
		l.Exclusive = s.GetExclusiveKeys()
	}
	if s.FairKeys != nil {
		q.FairKeys = s.GetFairKeys()
	}
	if s.DeadLetterQueue != nil {
		l.DeadTo = s.GetDeadLetterQueue()
	}
	for _, d := range []struct {
		field string
		into  *int64
		from  *durationpb.Duration
	}{
		{"lease", &q.Lease, s.GetLease()},
		{"lease_max", &l.LeaseMax, s.GetLeaseMax()},
		{"remember", &l.Remember, s.GetRemember()},
		{"interval", &q.Interval, s.GetInterval()},
		{"backoff_base", &l.Backoff.Base, s.GetBackoffBase()},
		{"backoff_max", &l.Backoff.Max, s.GetBackoffMax()},
	} {
		v, err := duration(d.field, d.from)
		if err != nil {
			return q, err
		}
		if d.from != nil {
			*d.into = v
		}
	}
	number(&factor, s.BackoffFactor)
	switch b := &l.Backoff; {
	case b.Base > 0:
		b.Factor, b.Max = int64(cmp.Or(factor, backoffFactor))*1000, cmp.Or(b.Max, backoffMax.Microseconds())
	case s.BackoffFactor != nil || s.BackoffMax != nil:
		return q, invalid("backoff_base: none, so that there is no backoff; give it as well")
	default:
		*b = pqueue.Backoff{}
	}
	return q, nil
}

// What holds of a backoff that is new, as in the configuration.
const (
	backoffFactor = 2
	backoffMax    = 5 * time.Minute
)

// settingsOf is q in the words of the service.
func settingsOf(q broker.Queue) *anteroomv1.QueueSettings {
	u := func(n int) *uint32 { return new(uint32(n)) }
	d := func(us int64) *durationpb.Duration { return durationpb.New(time.Duration(us) * time.Microsecond) }
	l := q.Limits
	s := &anteroomv1.QueueSettings{
		MaxItems: u(l.ItemsMax), MaxPayload: u(q.PayloadMax), Lease: d(q.Lease), LeaseMax: d(l.LeaseMax), MaxAttempts: u(l.AttemptsMax),
		DeadLettersMax: u(l.DeadMax), DeadLetterQueue: &l.DeadTo, Remember: d(l.Remember), RememberMax: u(l.RememberMax),
		Interval: d(q.Interval), PerInterval: u(q.PerInterval), MaxInFlight: u(l.InFlightMax), ExclusiveKeys: &l.Exclusive, FairKeys: &q.FairKeys, BackoffBase: d(l.Backoff.Base),
	}
	if l.Backoff.Base > 0 {
		s.BackoffFactor, s.BackoffMax = u(int(l.Backoff.Factor/1000)), d(l.Backoff.Max)
	}
	return s
}
