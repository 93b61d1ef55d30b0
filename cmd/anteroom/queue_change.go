package main

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/spf13/cobra"

	"github.com/anteroom/anteroom/client"
)

func (p *program) queueUpdateCommand() *cobra.Command {
	q, t := &queueing{program: p}, &starting{}
	priority, payload := 0, ""
	cmd := &cobra.Command{
		Use:   "update --queue NAME {--priority N|--payload TEXT|--delay TIME|--not-before TIME}… ID…",
		Short: "Change the priority of items, their payload, or when they are due",
		Long: `Change the priority of items, their payload, or from when on they can be taken;
--delay 0s is at once. Of an item that somebody has taken, they have the old payload
and their ack ends it all the same; the result says "leased" then.`,
		Args: words("id"),
	}
	cmd = q.of(cmd, func(ctx context.Context, of *client.Queue, ids []string) error {
		given := func(flag string) bool { return cmd.Flag(flag).Changed }
		var c client.Change
		if given("priority") {
			n := uint32(priority)
			c.Priority = &n
		}
		if given("payload") {
			c.Payload = []byte(payload)
		}
		var err error
		if c.NotBefore, err = t.at(q.now, given("delay")); err != nil {
			return err
		}
		if c.Priority == nil && c.Payload == nil && c.NotBefore.IsZero() {
			return wrongUsage(errors.New("there is nothing to change; give --priority, as in --priority 5, --payload, --delay or --not-before"))
		}
		return q.each(ids, "id", func(id string) (string, error) {
			i, err := of.Change(ctx, id, c)
			return fmt.Sprintf("priority %d, %s", i.Priority, i.State), err
		})
	})
	q.flags.whole(&priority, "priority", 0, math.MaxUint32, "the lowest goes first")
	q.flags.StringVar(&payload, "payload", "", "`TEXT` in place of the old one")
	t.define(q.flags)
	return cmd
}

func (p *program) queueCancelCommand() *cobra.Command {
	q := &queueing{program: p}
	return q.of(&cobra.Command{
		Use:   "cancel --queue NAME ID…",
		Short: "Take items away, wherever they stand",
		Args:  words("id"),
	}, func(ctx context.Context, of *client.Queue, ids []string) error {
		return q.each(ids, "id", func(id string) (string, error) {
			was, err := of.Cancel(ctx, id)
			return "cancelled, was " + string(was), err
		})
	})
}

// queueModeCommand is pause, resume or drain.
func (p *program) queueModeCommand(verb, short string, do func(*client.Queue, context.Context) ([]string, error)) *cobra.Command {
	q := &queueing{program: p}
	return q.of(&cobra.Command{Use: verb + " --queue NAME", Short: short, Args: noCommand},
		func(ctx context.Context, of *client.Queue, _ []string) error {
			missing, err := do(of, ctx)
			if err != nil {
				return err
			}
			q.lacking(missing, "it learns that when it is back")
			mode := map[string]client.Mode{"pause": client.Paused, "resume": client.Running, "drain": client.Draining}[verb]
			if q.asJSON {
				q.line(map[string]any{"queue": q.name, "mode": mode, "missing": append([]string{}, missing...)})
				return nil
			}
			fmt.Fprintf(q.stdout, "%s: %s\n", q.name, mode)
			return nil
		})
}

func (p *program) queuePurgeCommand() *cobra.Command {
	q := &queueing{program: p}
	return q.of(&cobra.Command{
		Use:   "purge --queue NAME",
		Short: "Drop all items that are ready or delayed",
		Long: `Drop all items of a queue that are ready or delayed, on all nodes, for good.
Items that somebody has taken stay theirs until they are acknowledged, given
back or lapse; dead letters stay too (anteroom queue dead delete --all).`,
		Args: noCommand,
	}, func(ctx context.Context, of *client.Queue, _ []string) error {
		n, missing, err := of.Purge(ctx)
		if err != nil {
			return err
		}
		q.lacking(missing, "what it keeps is as it was, or part of it is gone")
		q.counted(n, "item", "dropped", missing)
		return nil
	})
}

// counted tells how many things something was done to.
func (q *queueing) counted(n uint64, what, done string, missing []string) {
	if q.asJSON {
		q.line(map[string]any{"queue": q.name, "items": n, "missing": append([]string{}, missing...)})
		return
	}
	if n != 1 {
		what += "s"
	}
	fmt.Fprintf(q.stdout, "%s: %d %s %s\n", q.name, n, what, done)
}

func (p *program) queueDeadCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "dead",
		Short: "Look at dead letters, put them back, drop them",
		Long: `Dead letters are items that were taken as often as their queue's max_attempts
allows, and never acknowledged. Of a queue with a dead_letter_queue these are the ones
that wait for room there; take the others from that queue.`,
		Args: noCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	list, items := &queueing{program: p}, 100
	cmd.AddCommand(list.of(&cobra.Command{
		Use: "list --queue NAME", Short: "List dead letters, the oldest first", Args: noCommand,
	}, func(ctx context.Context, of *client.Queue, _ []string) error {
		l, err := of.DeadLetters(ctx, items)
		if err != nil {
			return err
		}
		return list.listing(l)
	}))
	list.flags.whole(&items, "max", 1, listMax, "at most so many")
	cmd.AddCommand(
		p.queueDeadOnesCommand("requeue", "Put dead letters back in line", "put back in line", (*client.Queue).Requeue),
		p.queueDeadOnesCommand("delete", "Drop dead letters", "dropped", (*client.Queue).DeleteDeadLetters),
	)
	return cmd
}

// queueDeadOnesCommand does something with some dead letters, or with all.
func (p *program) queueDeadOnesCommand(verb, short, done string, do func(*client.Queue, context.Context, ...string) (uint64, []string, error)) *cobra.Command {
	q, all := &queueing{program: p}, false
	cmd := &cobra.Command{Use: verb + " --queue NAME {ID…|--all}", Short: short, Args: cobra.ArbitraryArgs}
	cmd = q.of(cmd, func(ctx context.Context, of *client.Queue, ids []string) error {
		if all == (len(ids) > 0) {
			return wrongUsage(errors.New("give the ids of dead letters, or --all (anteroom queue dead list shows them)"))
		}
		n, missing, err := do(of, ctx, ids...)
		if err != nil {
			return err
		}
		q.lacking(missing, "what it keeps is as it was")
		q.counted(n, "dead letter", done, missing)
		return nil
	})
	q.flags.BoolVar(&all, "all", false, "all of them")
	return cmd
}
