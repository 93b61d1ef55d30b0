package client_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/anteroom/anteroom/client"
)

func TestConfigureChangesWhatIsSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c, _ := newCluster(t, 1)
		q := c.Queue("jobs")
		all := client.NewSettings{
			MaxItems: new(uint32(1)), MaxPayload: new(uint32(2)), Lease: new(3 * time.Second), LeaseMax: new(4 * time.Second), MaxAttempts: new(uint32(0)),
			DeadLettersMax: new(uint32(6)), DeadLetterQueue: new("dead"), Remember: new(7 * time.Second), RememberMax: new(uint32(8)),
			Interval: new(time.Duration(0)), PerInterval: new(uint32(9)), MaxInFlight: new(uint32(13)), ExclusiveKeys: new(true), FairKeys: new(true), BackoffBase: new(10 * time.Second), BackoffFactor: new(uint32(11)), BackoffMax: new(12 * time.Second),
		}
		got, missing, err := q.Configure(t.Context(), all)
		want := client.Settings{
			Kind: "durable", MaxItems: 1, MaxPayload: 2, Lease: 3 * time.Second, LeaseMax: 4 * time.Second, DeadLettersMax: 6, DeadLetterQueue: "dead",
			Remember: 7 * time.Second, RememberMax: 8, PerInterval: 9, MaxInFlight: 13, ExclusiveKeys: true, FairKeys: true, BackoffBase: 10 * time.Second, BackoffFactor: 11, BackoffMax: 12 * time.Second,
			ChangedAt: time.Unix(7, 0).UTC(), ChangedBy: "node-1",
		}
		if diff := cmp.Diff(want, got); err != nil || diff != "" || !cmp.Equal(missing, []string{"node-2"}) {
			t.Errorf("%v, missing %v (-want +got):\n%s", err, missing, diff)
		}
		if got, err := q.Settings(t.Context()); err != nil || got != (client.Settings{Kind: "durable"}) {
			t.Errorf("shown: %+v, %v", got, err)
		}
		if _, _, err := q.Configure(t.Context(), client.NewSettings{}); !errors.Is(err, client.ErrInvalid) {
			t.Errorf("nothing set: %v", err)
		}
	})
}
