package client

import (
	"context"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	anteroomv1 "github.com/anteroom/anteroom/proto/anteroom/v1"
)

// Settings are what a queue goes by: the keys of those names in the nodes'
// configuration, or what Configure has made of them.
type Settings struct {
	Kind            string        `json:"kind"` // memory, durable or replicated
	MaxItems        uint32        `json:"max_items"`
	MaxPayload      uint32        `json:"max_payload"`
	Lease           time.Duration `json:"-"`
	LeaseMax        time.Duration `json:"-"`
	MaxAttempts     uint32        `json:"max_attempts"` // 0: no bound
	DeadLettersMax  uint32        `json:"dead_letters_max"`
	DeadLetterQueue string        `json:"dead_letter_queue"` // empty: dead letters stay
	Remember        time.Duration `json:"-"`
	RememberMax     uint32        `json:"remember_max"`
	Interval        time.Duration `json:"-"` // 0: none
	PerInterval     uint32        `json:"per_interval"`
	MaxInFlight     uint32        `json:"max_in_flight"`  // 0: no bound
	ExclusiveKeys   bool          `json:"exclusive_keys"` // of the items of one key, one is leased at a time
	FairKeys        bool          `json:"fair_keys"`      // of the items of one priority, those of each key go out in turn
	BackoffBase     time.Duration `json:"-"`              // 0: none
	BackoffFactor   uint32        `json:"-"`
	BackoffMax      time.Duration `json:"-"`
	ChangedAt       time.Time     `json:"changed_at,omitzero"`  // at run time; zero: never
	ChangedBy       string        `json:"changed_by,omitempty"` // the node that was told
}

// NewSettings are settings that are to be different. Nil: as it is.
type NewSettings struct {
	MaxItems        *uint32
	MaxPayload      *uint32
	Lease           *time.Duration
	LeaseMax        *time.Duration
	MaxAttempts     *uint32
	DeadLettersMax  *uint32 // with fewer than there are, the oldest are dropped
	DeadLetterQueue *string
	Remember        *time.Duration
	RememberMax     *uint32
	Interval        *time.Duration
	PerInterval     *uint32
	MaxInFlight     *uint32
	ExclusiveKeys   *bool
	FairKeys        *bool
	BackoffBase     *time.Duration
	BackoffFactor   *uint32
	BackoffMax      *time.Duration
}

// Settings says what the queue goes by.
func (q *Queue) Settings(ctx context.Context) (Settings, error) {
	s, _, err := q.configure(ctx, nil)
	return s, err
}

// Configure changes settings of the queue while it runs, on all nodes, and says what
// it goes by now. Nothing is lost. Nodes that are missing learn it when they are back.
func (q *Queue) Configure(ctx context.Context, n NewSettings) (s Settings, missing []string, err error) {
	if n == (NewSettings{}) {
		return s, nil, &Error{Op: "configure", Queue: q.name, Reason: ErrInvalid, Text: "NewSettings without any; give one at least"}
	}
	return q.configure(ctx, &anteroomv1.QueueSettings{
		MaxItems: n.MaxItems, MaxPayload: n.MaxPayload, Lease: spanOf(n.Lease), LeaseMax: spanOf(n.LeaseMax), MaxAttempts: n.MaxAttempts,
		DeadLettersMax: n.DeadLettersMax, DeadLetterQueue: n.DeadLetterQueue, Remember: spanOf(n.Remember), RememberMax: n.RememberMax,
		Interval: spanOf(n.Interval), PerInterval: n.PerInterval, MaxInFlight: n.MaxInFlight, ExclusiveKeys: n.ExclusiveKeys, FairKeys: n.FairKeys,
		BackoffBase: spanOf(n.BackoffBase), BackoffFactor: n.BackoffFactor, BackoffMax: spanOf(n.BackoffMax),
	})
}

func (q *Queue) configure(ctx context.Context, n *anteroomv1.QueueSettings) (Settings, []string, error) {
	var a *anteroomv1.ConfigureResponse
	err := q.call(ctx, "configure", func(ctx context.Context, w wire) (err error) {
		a, err = w.Configure(ctx, &anteroomv1.ConfigureRequest{Queue: q.name, Settings: n})
		return err
	})
	s := a.GetSettings()
	return Settings{
		Kind: a.GetKind(), MaxItems: s.GetMaxItems(), MaxPayload: s.GetMaxPayload(), Lease: s.GetLease().AsDuration(), LeaseMax: s.GetLeaseMax().AsDuration(),
		MaxAttempts: s.GetMaxAttempts(), DeadLettersMax: s.GetDeadLettersMax(), DeadLetterQueue: s.GetDeadLetterQueue(),
		Remember: s.GetRemember().AsDuration(), RememberMax: s.GetRememberMax(), Interval: s.GetInterval().AsDuration(), PerInterval: s.GetPerInterval(),
		MaxInFlight: s.GetMaxInFlight(), ExclusiveKeys: s.GetExclusiveKeys(), FairKeys: s.GetFairKeys(),
		BackoffBase: s.GetBackoffBase().AsDuration(), BackoffFactor: s.GetBackoffFactor(), BackoffMax: s.GetBackoffMax().AsDuration(),
		ChangedAt: timeOf(a.GetChangedAt()), ChangedBy: a.GetChangedBy(),
	}, a.GetMissing(), err
}

func spanOf(d *time.Duration) *durationpb.Duration {
	if d == nil {
		return nil
	}
	return durationpb.New(*d)
}
