package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/anteroom/anteroom/client"
)

// obedience is how long a command has between SIGTERM and SIGKILL.
const obedience = 10 * time.Second

func (p *program) queueWorkCommand() *cobra.Command {
	q := &queueing{program: p}
	concurrency := 1
	lease, again, grace := 30*time.Second, time.Second, 30*time.Second
	cmd := q.of(&cobra.Command{
		Use:   "work --queue NAME -- COMMAND [ARG…]",
		Short: "Run a command for each item of a queue",
		Long: `Run a command for each item of a queue, until Ctrl-C. The payload is on the command's
standard input, and stands for {} in its arguments; ANTEROOM_ITEM_ID,
ANTEROOM_ITEM_PRIORITY and ANTEROOM_ITEM_ATTEMPTS are in its environment. If it
ends with 0 the item is done; if not, the item comes back after --again, twice that
the next time, 5 minutes at most, and becomes a dead letter in the end. While the
command runs the lease is extended; if it is lost all the same, the command gets
SIGTERM, because somebody else may have the item. Nodes may come and go meanwhile:
give several with --node.`,
		Example: `  anteroom queue work --queue images --concurrency 4 --node 10.0.0.1:7002 --node 10.0.0.2:7002 -- convert {} -resize 50% small/{}
  anteroom queue work --queue mail/outgoing -- sendmail -t`,
		Args: words("command"),
	}, func(ctx context.Context, from *client.Queue, command []string) error {
		if _, err := exec.LookPath(command[0]); err != nil {
			return wrongUsage(fmt.Errorf("%w; give a command as it would be typed, after --", err))
		}
		out := &shared{to: q.stdout}
		errs := &shared{to: q.stderr}
		return from.Work(ctx, client.Worker{
			Concurrency: concurrency, Lease: lease, Grace: grace,
			Again: func(attempts uint32) time.Duration {
				return min(5*time.Minute, again<<min(16, max(attempts, 1)-1))
			},
			Logger: slog.New(slog.NewTextHandler(errs, nil)),
		}, func(ctx context.Context, l *client.Lease) error { return runItem(ctx, l, command, out, errs) })
	})
	q.flags.whole(&concurrency, "concurrency", 1, 10_000, "commands at a time")
	q.flags.duration(&lease, "lease", time.Second, leaseLongest, "how soon somebody else gets the items if this machine dies")
	q.flags.duration(&again, "again", 0, 5*time.Minute, "how long an item waits whose command has failed; 0s is as the queue's backoff says")
	q.flags.duration(&grace, "grace", 0, leaseLongest, "how long commands may go on after Ctrl-C")
	return cmd
}

// shared is written to by several commands at a time.
type shared struct {
	mu sync.Mutex
	to io.Writer
}

func (s *shared) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.to.Write(b)
}

// runItem runs a command for an item.
func runItem(ctx context.Context, l *client.Lease, command []string, out, errs io.Writer) error {
	args := make([]string, len(command)-1)
	for i, a := range command[1:] {
		args[i] = strings.ReplaceAll(a, "{}", string(l.Payload))
		if strings.Contains(args[i], "\x00") {
			return errors.New("the payload has a zero byte, which no argument can have; leave out {} and read standard input")
		}
	}
	c := exec.CommandContext(ctx, command[0], args...)
	c.Stdin, c.Stdout, c.Stderr = bytes.NewReader(l.Payload), out, errs
	c.Env = append(os.Environ(), "ANTEROOM_ITEM_ID="+l.ID, fmt.Sprintf("ANTEROOM_ITEM_PRIORITY=%d", l.Priority), fmt.Sprintf("ANTEROOM_ITEM_ATTEMPTS=%d", l.Attempts))
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) }
	c.WaitDelay = obedience
	return c.Run()
}
