package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/anteroom/anteroom/client"
	"github.com/anteroom/anteroom/internal/term"
)

func (p *program) queuePeekCommand() *cobra.Command {
	q := &queueing{program: p}
	items := 10
	cmd := q.of(&cobra.Command{
		Use:   "peek --queue NAME",
		Short: "Show the first items of a queue, and change nothing",
		Args:  noCommand,
	}, func(ctx context.Context, of *client.Queue, _ []string) error {
		l, err := of.Peek(ctx, items)
		if err != nil {
			return err
		}
		return q.listing(l)
	})
	q.flags.whole(&items, "max", 1, listMax, "at most so many items")
	return cmd
}

// listMax bounds what a command lists at once.
const listMax = 100_000

// listing prints items, and says who did not answer, and whether there are more.
func (q *queueing) listing(l client.Listing) error {
	if len(l.Missing) > 0 {
		fmt.Fprintf(q.stderr, "anteroom queue: no answer of %s: what it keeps is not shown\n", strings.Join(l.Missing, ", "))
	}
	if l.More {
		fmt.Fprintf(q.stderr, "anteroom queue: there are more; --max shows up to %d\n", listMax)
	}
	if q.asJSON {
		for _, i := range l.Items {
			q.line(q.itemLine(i))
		}
		return nil
	}
	head, letters, keys := []string{"id", "priority", "attempts", "put at", "reason", "payload"}, false, false
	for _, i := range l.Items {
		letters, keys = letters || i.OriginQueue != "", keys || i.Key != ""
	}
	if keys {
		head = slices.Insert(head, len(head)-1, "key")
	}
	if letters {
		head = slices.Insert(head, 4, "put into")
	}
	var rows [][]string
	for _, i := range l.Items {
		row := []string{payloadText([]byte(i.ID)), fmt.Sprint(i.Priority), fmt.Sprint(i.Attempts), when(i.InsertedAt), payloadText([]byte(i.Reason)), payloadText(i.Payload)}
		if keys {
			row = slices.Insert(row, len(row)-1, payloadText([]byte(i.Key)))
		}
		if letters {
			row = slices.Insert(row, 4, cmp.Or(i.OriginQueue, q.name))
		}
		rows = append(rows, row)
	}
	return term.WriteTable(q.stdout, head, rows)
}

func (p *program) queueLenCommand() *cobra.Command {
	q := &queueing{program: p}
	return q.of(&cobra.Command{
		Use:   "len --queue NAME",
		Short: "Count the items of a queue",
		Args:  noCommand,
	}, func(ctx context.Context, of *client.Queue, _ []string) error {
		n, err := of.Len(ctx)
		if err != nil {
			return err
		}
		q.lacking(n.Missing, "what it keeps is not counted")
		if q.asJSON {
			q.line(struct {
				Queue string `json:"queue"`
				client.Counts
			}{q.name, n})
			return nil
		}
		return term.WriteTable(q.stdout, []string{"ready", "delayed", "leased", "dead"},
			[][]string{{fmt.Sprint(n.Ready), fmt.Sprint(n.Delayed), fmt.Sprint(n.Leased), fmt.Sprint(n.Dead)}})
	})
}

func (p *program) queuePositionCommand() *cobra.Command {
	q := &queueing{program: p}
	return q.of(&cobra.Command{
		Use:   "position --queue NAME ID…",
		Short: "Say at which place items stand",
		Long: `Say at which place items stand, counted from 1, over all nodes. If a node does not
answer, the place may be higher by what that node is known to have.`,
		Args: words("id"),
	}, func(ctx context.Context, of *client.Queue, ids []string) error {
		var errs []error
		for _, id := range ids {
			place, err := of.Position(ctx, id)
			switch {
			case err != nil:
				errs = append(errs, fmt.Errorf("%s: %w", id, q.explain(err)))
			case q.asJSON:
				q.line(struct {
					Queue string `json:"queue"`
					ID    string `json:"id"`
					client.Place
				}{q.name, id, place})
			default:
				fmt.Fprintf(q.stdout, "%s: %s\n", id, placeText(place))
			}
		}
		return errors.Join(errs...)
	})
}

func placeText(p client.Place) string {
	if p.State != client.Ready {
		return string(p.State)
	}
	if p.Bound == nil {
		return fmt.Sprintf("%d or more: no answer of %s", p.Position, strings.Join(p.Missing, ", "))
	}
	if *p.Bound > 0 {
		return fmt.Sprintf("%d to %d", p.Position, p.Position+*p.Bound)
	}
	return fmt.Sprint(p.Position)
}

func (p *program) queueStatsCommand() *cobra.Command {
	q := &queueing{program: p, optional: true}
	return q.of(&cobra.Command{
		Use:   "stats [--queue NAME]",
		Short: "Show all queues, or one in detail",
		Args:  noCommand,
	}, func(ctx context.Context, of *client.Queue, _ []string) error {
		all, missing, err := of.Client().Stats(ctx)
		if q.name != "" {
			var one client.Stats
			one, missing, err = of.Stats(ctx)
			all = []client.Stats{one}
		}
		if err != nil {
			return err
		}
		q.lacking(missing, "what it keeps is not counted")
		if q.asJSON {
			q.line(map[string]any{"queues": append([]client.Stats{}, all...), "missing": append([]string{}, missing...)})
			return nil
		}
		var rows [][]string
		for _, s := range all {
			rows = append(rows, []string{
				s.Queue, s.Kind, string(s.Mode), fmt.Sprint(s.Ready), fmt.Sprint(s.Delayed), fmt.Sprint(s.Leased), fmt.Sprint(s.Dead),
				fmt.Sprint(s.Bytes), when(s.Oldest), fmt.Sprint(s.Waiters),
			})
		}
		if err := term.WriteTable(q.stdout, []string{"queue", "kind", "mode", "ready", "delayed", "leased", "dead", "bytes", "oldest", "waiters"}, rows); err != nil {
			return err
		}
		if q.name == "" {
			return nil
		}
		return q.details(all[0])
	})
}

// details prints the rest of what is known of one queue.
func (q *queueing) details(s client.Stats) error {
	n := s.Counters
	fmt.Fprintf(q.stdout, "\nput %d, repeated %d, taken %d, acknowledged %d, given back %d, lapsed %d, cancelled %d, expired %d, died %d\n\n",
		n.Inserted, n.Repeated, n.Leased, n.Acked, n.Nacked, n.Lapsed, n.Cancelled, n.Expired, n.Died)
	if s.Blocked > 0 {
		fmt.Fprintf(q.stdout, "of the ready ones, %d wait for another one of their key\n\n", s.Blocked)
	}
	rows := make([][]string, len(s.Nodes))
	for i, of := range s.Nodes {
		first := ""
		if of.Node == s.Root {
			first = "has the first item"
		}
		rows[i] = []string{of.Node, fmt.Sprint(of.Ready), fmt.Sprint(of.Leased), first}
	}
	return term.WriteTable(q.stdout, []string{"node", "ready", "leased", ""}, rows)
}

func (p *program) queueWatchCommand() *cobra.Command {
	q := &queueing{program: p}
	return q.of(&cobra.Command{
		Use:   "watch --queue NAME",
		Short: "Show what happens to a queue, as it happens",
		Args:  noCommand,
	}, func(ctx context.Context, of *client.Queue, _ []string) error {
		for e, err := range of.Watch(ctx) {
			if err != nil {
				return err
			}
			if q.asJSON {
				q.line(e)
				continue
			}
			if e.Broken {
				fmt.Fprintln(q.stderr, "anteroom queue watch: the connection broke; what happened meanwhile is not shown")
			}
			if e.Missed > 0 {
				fmt.Fprintf(q.stderr, "anteroom queue watch: too slow for %d events, which are not shown\n", e.Missed)
			}
			fmt.Fprintln(q.stdout, eventText(e))
		}
		return nil
	})
}

func eventText(e client.Event) string {
	at := e.At.UTC().Format(time.RFC3339)
	if e.Item == nil {
		return fmt.Sprintf("%s  %-9s  %s  %s", at, e.Kind, e.Mode, e.Node)
	}
	return fmt.Sprintf("%s  %-9s  %s  priority %d, attempts %d, at %s", at, e.Kind, payloadText([]byte(e.Item.ID)), e.Item.Priority, e.Item.Attempts, e.Node)
}
