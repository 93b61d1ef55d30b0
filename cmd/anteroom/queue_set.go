package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/anteroom/anteroom/client"
	"github.com/anteroom/anteroom/internal/config"
	"github.com/anteroom/anteroom/internal/term"
)

// setting is one of a queue: its key in the configuration, and its flag.
type setting struct {
	key, usage string
	number     *(*uint32) // one of these
	span       *(*time.Duration)
	word       *(*string)
	truth      *(*bool)
}

func settingsInto(n *client.NewSettings) []setting {
	return []setting{
		{key: "max-items", usage: "items that are ready, delayed or leased, at one node; of a replicated queue in all", number: &n.MaxItems},
		{key: "max-payload", usage: "bytes of one item", number: &n.MaxPayload},
		{key: "lease", usage: "of whoever takes an item and does not say for how long", span: &n.Lease},
		{key: "lease-max", usage: "nobody gets a longer one", span: &n.LeaseMax},
		{key: "max-attempts", usage: "leases, and the item is a dead letter; 0: no bound", number: &n.MaxAttempts},
		{key: "dead-letters-max", usage: "dead letters that are kept; the oldest of more are dropped, at once", number: &n.DeadLettersMax},
		{key: "dead-letter-queue", usage: "`NAME` of the queue into which dead letters go; empty: they stay", word: &n.DeadLetterQueue},
		{key: "remember", usage: "for how long ids of finished items are known", span: &n.Remember},
		{key: "remember-max", usage: "how many of them", number: &n.RememberMax},
		{key: "interval", usage: "at most per-interval items go out in any such time; 0s: no bound", span: &n.Interval},
		{key: "per-interval", usage: "how many", number: &n.PerInterval},
		{key: "max-in-flight", usage: "items that are leased at once, over all nodes; 0: no bound", number: &n.MaxInFlight},
		{key: "exclusive-keys", usage: "true: of the items of one key, one is leased at a time; false: keys mean nothing", truth: &n.ExclusiveKeys},
		{key: "fair-keys", usage: "true: of the items of one priority, those of each key go out in turn; false: keys have no turns", truth: &n.FairKeys},
		{key: "backoff-base", usage: "how long an item waits after its first lease; 0s: not at all", span: &n.BackoffBase},
		{key: "backoff-factor", usage: "after each further one so many times as long", number: &n.BackoffFactor},
		{key: "backoff-max", usage: "and never longer", span: &n.BackoffMax},
	}
}

func (p *program) queueSetCommand() *cobra.Command {
	q, n := &queueing{program: p}, client.NewSettings{}
	cmd := q.of(&cobra.Command{
		Use:   "set --queue NAME [--lease 1m …]",
		Short: "Change the settings of a queue while it runs, or show them",
		Long: `Change settings of a queue on all nodes, while it runs. Items and leases stay; the
next ones go by what is new. Without any setting it shows what the queue goes by.
What keeps the items (memory, durable, replicas) cannot change here: it takes the
configuration, an empty queue and a restart.`,
		Example: `  anteroom queue set --queue jobs --lease 2m --max-attempts 8
  anteroom queue set --queue crawl --interval 500ms`,
		Args: noCommand,
	}, func(ctx context.Context, of *client.Queue, _ []string) error {
		if n == (client.NewSettings{}) {
			s, err := of.Settings(ctx)
			if err != nil {
				return err
			}
			return q.settings(s, nil)
		}
		s, missing, err := of.Configure(ctx, n)
		if err != nil {
			return err
		}
		q.lacking(missing, "it learns that when it is back")
		return q.settings(s, missing)
	})
	for _, s := range settingsInto(&n) {
		switch {
		case s.number != nil:
			q.flags.add(s.key, "N", "", s.usage, func(text string) error {
				v, err := strconv.ParseUint(text, 10, 32)
				if err != nil {
					return fmt.Errorf("no whole number; give one from 0 to %d", uint32(math.MaxUint32))
				}
				*s.number = new(uint32(v))
				return nil
			})
		case s.span != nil:
			q.flags.add(s.key, "TIME", "", s.usage, func(text string) error {
				v, err := time.ParseDuration(text)
				if err != nil || v < 0 {
					return fmt.Errorf("no time; give one such as 30s, 5m or 1h")
				}
				*s.span = new(v)
				return nil
			})
		case s.truth != nil:
			q.flags.add(s.key, "BOOL", "", s.usage, func(text string) error {
				v, err := strconv.ParseBool(text)
				if err != nil {
					return errors.New("neither true nor false; give one of them")
				}
				*s.truth = new(v)
				return nil
			})
		default:
			q.flags.Func(s.key, s.usage, func(text string) error {
				*s.word = new(text)
				return nil
			})
		}
	}
	return cmd
}

// settings prints what a queue goes by.
func (q *queueing) settings(s client.Settings, missing []string) error {
	d := func(d time.Duration) string { return config.Duration(d).String() }
	longest := ""
	if s.BackoffBase > 0 {
		longest = d(s.BackoffMax)
	}
	if q.asJSON {
		q.line(struct {
			Queue string `json:"queue"`
			client.Settings
			Lease         string   `json:"lease"`
			LeaseMax      string   `json:"lease_max"`
			Remember      string   `json:"remember"`
			Interval      string   `json:"interval"`
			BackoffBase   string   `json:"backoff_base"`
			BackoffFactor uint32   `json:"backoff_factor,omitempty"`
			BackoffMax    string   `json:"backoff_max,omitempty"`
			Missing       []string `json:"missing"`
		}{q.name, s, d(s.Lease), d(s.LeaseMax), d(s.Remember), d(s.Interval), d(s.BackoffBase), s.BackoffFactor, longest, append([]string{}, missing...)})
		return nil
	}
	u := func(n uint32) string { return fmt.Sprint(n) }
	rows := [][]string{
		{"kind", s.Kind},
		{"max_items", u(s.MaxItems)},
		{"max_payload", u(s.MaxPayload)},
		{"lease", d(s.Lease)},
		{"lease_max", d(s.LeaseMax)},
		{"max_attempts", u(s.MaxAttempts)},
		{"dead_letters_max", u(s.DeadLettersMax)},
		{"dead_letter_queue", s.DeadLetterQueue},
		{"remember", d(s.Remember)},
		{"remember_max", u(s.RememberMax)},
		{"interval", d(s.Interval)},
		{"per_interval", u(s.PerInterval)},
		{"max_in_flight", u(s.MaxInFlight)},
		{"exclusive_keys", strconv.FormatBool(s.ExclusiveKeys)},
		{"fair_keys", strconv.FormatBool(s.FairKeys)},
		{"backoff.base", d(s.BackoffBase)},
	}
	if s.BackoffBase > 0 {
		rows = append(rows, []string{"backoff.factor", u(s.BackoffFactor)}, []string{"backoff.max", longest})
	}
	if s.ChangedBy != "" {
		rows = append(rows, []string{"changed at", when(s.ChangedAt) + " by " + s.ChangedBy})
	}
	return term.WriteTable(q.stdout, []string{"setting", "value"}, rows)
}
