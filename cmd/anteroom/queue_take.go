package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/anteroom/anteroom/client"
	"github.com/anteroom/anteroom/internal/term"
)

// leaseLongest is more than any queue grants.
const leaseLongest = 30 * 24 * time.Hour

// nothing is an end without result that is no failure. Its exit code is 3.
type nothing struct{ error }

func (p *program) queueTakeCommand() *cobra.Command {
	q := &queueing{program: p}
	items := 1
	var lease, wait time.Duration
	cmd := q.of(&cobra.Command{
		Use:   "take --queue NAME",
		Short: "Lease the first items of a queue",
		Long: `Lease the first items of a queue, and print them with their receipts. They are
yours until the lease lapses: ack says that the work is done, nack gives an item
back, extend gets more time. Exit code 3 says that there was nothing to take.
anteroom queue work does all of this around a command of yours.`,
		Example: `  anteroom queue take --queue jobs --lease 5m --wait 30s --json`,
		Args:    noCommand,
	}, func(ctx context.Context, from *client.Queue, _ []string) error {
		t, err := from.Take(ctx, client.Want{Items: items, Lease: lease, Wait: wait})
		if err != nil {
			return err
		}
		if len(t.Leases) == 0 && t.Paused {
			return nothing{fmt.Errorf("%s is paused; anteroom queue resume --queue %s ends that", q.name, q.name)}
		}
		if len(t.Leases) == 0 && len(t.Missing) > 0 {
			return nothing{fmt.Errorf("%s: there is nothing to take here, and no answer of %s, which may have items, or the right to let them out", q.name, strings.Join(t.Missing, ", "))}
		}
		if len(t.Leases) == 0 {
			return nothing{fmt.Errorf("%s: there is nothing to take; --wait waits for it", q.name)}
		}
		q.lacking(t.Missing, "what it keeps may go before these")
		var rows [][]string
		for _, l := range t.Leases {
			if q.asJSON {
				line := q.itemLine(l.Item)
				line.Receipt, line.Until, line.LeaseUntil, line.Missing = l.Receipt, l.Until, time.Time{}, t.Missing
				q.line(line)
				continue
			}
			rows = append(rows, []string{l.Receipt, payloadText([]byte(l.ID)), fmt.Sprint(l.Priority), fmt.Sprint(l.Attempts), when(l.Until), payloadText(l.Payload)})
		}
		if q.asJSON {
			return nil
		}
		return term.WriteTable(q.stdout, []string{"receipt", "id", "priority", "attempt", "until", "payload"}, rows)
	})
	q.flags.whole(&items, "max", 1, 1000, "at most so many items")
	q.flags.duration(&lease, "lease", 0, leaseLongest, "how long they are yours; 0s is as the queue says")
	q.flags.duration(&wait, "wait", 0, time.Minute, "how long to wait for the first")
	return cmd
}

func (p *program) queueAckCommand() *cobra.Command {
	q := &queueing{program: p}
	return q.of(&cobra.Command{
		Use:   "ack --queue NAME RECEIPT…",
		Short: "Say that the work on leased items is done",
		Args:  words("receipt"),
	}, func(ctx context.Context, of *client.Queue, receipts []string) error {
		errs, _ := of.AckAll(ctx, receipts) // of which err is the first
		return q.results(receipts, "receipt", func(i int) (string, error) { return "acknowledged", errs[i] })
	})
}

func (p *program) queueNackCommand() *cobra.Command {
	q := &queueing{program: p}
	var delay time.Duration
	var reason string
	cmd := q.of(&cobra.Command{
		Use:   "nack --queue NAME RECEIPT…",
		Short: "Give leased items back",
		Args:  words("receipt"),
	}, func(ctx context.Context, of *client.Queue, receipts []string) error {
		if delay == 0 && q.flags.Changed("delay") {
			delay = client.AtOnce
		}
		return q.each(receipts, "receipt", func(receipt string) (string, error) {
			state, err := of.Nack(ctx, receipt, delay, reason)
			return string(state), err
		})
	})
	q.flags.duration(&delay, "delay", 0, leaseLongest, "not to be taken again for so long, 0s: at once; left out it is as the queue's backoff says")
	q.flags.Lookup("delay").DefValue = "" // 0s, given, is not the same as left out
	q.flags.StringVar(&reason, "reason", "", "`TEXT` for whoever looks at the item later")
	return cmd
}

func (p *program) queueExtendCommand() *cobra.Command {
	q := &queueing{program: p}
	var lease time.Duration
	cmd := q.of(&cobra.Command{
		Use:   "extend --queue NAME RECEIPT…",
		Short: "Make leases last longer",
		Args:  words("receipt"),
	}, func(ctx context.Context, of *client.Queue, receipts []string) error {
		leases, _ := of.ExtendAll(ctx, receipts, lease) // which have the error
		return q.results(receipts, "receipt", func(i int) (string, error) { return "until " + when(leases[i].Until), leases[i].Err })
	})
	q.flags.duration(&lease, "lease", 0, leaseLongest, "how long from now; 0s is as the queue says")
	return cmd
}

// each does something with every word, tells how that went, and at the end of
// those with which it failed.
func (q *queueing) each(words []string, what string, f func(word string) (result string, err error)) error {
	return q.results(words, what, func(i int) (string, error) { return f(words[i]) })
}

// results is each where f has the place of the word.
func (q *queueing) results(words []string, what string, f func(i int) (result string, err error)) error {
	var errs []error
	for i, word := range words {
		result, err := f(i)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("%s: %w", word, q.explain(err)))
		case q.asJSON:
			q.line(map[string]string{"queue": q.name, what: word, "result": result})
		default:
			fmt.Fprintf(q.stdout, "%s: %s\n", word, result)
		}
	}
	return errors.Join(errs...)
}
