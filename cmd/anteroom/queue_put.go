package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/anteroom/anteroom/client"
	"github.com/anteroom/anteroom/internal/term"
)

// stdinMax is more than any queue takes as a payload.
const stdinMax = 1 << 20

// starting is from when on an item can be taken.
type starting struct {
	notBefore time.Time
	delay     time.Duration
}

func (s *starting) define(f *flagSet) {
	f.duration(&s.delay, "delay", 0, 10*365*24*time.Hour, "not to be taken for so long")
	f.add("not-before", "time", "", "not to be taken before, as in 2026-12-24T18:00:00Z", func(text string) (err error) {
		if s.notBefore, err = time.Parse(time.RFC3339, text); err != nil {
			return errors.New("give a time such as 2026-12-24T18:00:00Z")
		}
		return nil
	})
}

// at is the time that the flags say; zero: none is given.
func (s *starting) at(now func() time.Time, delayed bool) (time.Time, error) {
	switch {
	case delayed && !s.notBefore.IsZero():
		return time.Time{}, wrongUsage(errors.New("--delay and --not-before are both given; give one"))
	case delayed:
		return now().Add(s.delay), nil
	default:
		return s.notBefore, nil
	}
}

// queuePut is `anteroom queue put`.
type queuePut struct {
	queueing
	starting
	id       string
	key      string
	priority int
	ttl      time.Duration
	lines    bool
	batch    int
}

func (p *program) queuePutCommand() *cobra.Command {
	q := &queuePut{queueing: queueing{program: p}, batch: 1}
	cmd := &cobra.Command{
		Use:   "put --queue NAME [PAYLOAD]",
		Short: "Put an item into a queue",
		Long: `Put an item into a queue, with the payload given, or with what is on standard
input. The item's id is printed when the item is where the queue's configuration
wants it: in memory, on a disk, on several. An item of an --id that was put before
is not put again, so a command that failed can simply be repeated with the same
--id.`,
		Example: `  anteroom queue put --queue mail/outgoing --priority 1 --id password-7 < letter.txt
  anteroom queue put --queue jobs --delay 10m 'check 42'
  find . -name '*.png' | anteroom queue put --queue images --lines`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return wrongUsage(fmt.Errorf("%d payloads are given; give one, in quotes if it has spaces, or --lines for one a line of standard input", len(args)))
			}
			return nil
		},
	}
	cmd = q.of(cmd, func(ctx context.Context, to *client.Queue, args []string) error {
		return q.put(ctx, to, cmd.InOrStdin(), args)
	})
	q.flags.StringVar(&q.id, "id", "", "`ID` of the item [random]")
	q.flags.StringVar(&q.key, "key", "", "`KEY`: keys take turns, or of the items of one key one is taken at a time; the queue needs fair_keys or exclusive_keys [none]")
	q.flags.whole(&q.priority, "priority", 0, math.MaxUint32, "the lowest goes first")
	q.define(q.flags)
	q.flags.duration(&q.ttl, "ttl", 0, 10*365*24*time.Hour, "dropped after so long, unless somebody works on it; 0s is never")
	q.flags.BoolVar(&q.lines, "lines", false, "put one item for each line of standard input")
	q.flags.whole(&q.batch, "batch", 1, 1000, "with --lines: put so many lines in one call, once they are there")
	return cmd
}

func (q *queuePut) put(ctx context.Context, to *client.Queue, stdin io.Reader, args []string) error {
	notBefore, err := q.at(q.now, q.delay > 0)
	if err != nil {
		return err
	}
	n := client.New{ID: q.id, Priority: uint32(q.priority), NotBefore: notBefore, TTL: q.ttl, Key: q.key}
	switch {
	case q.lines && (len(args) > 0 || q.id != ""):
		return wrongUsage(errors.New("--lines: the items are the lines of standard input; leave out PAYLOAD and --id"))
	case q.lines:
		return q.putLines(ctx, to, n, stdin)
	case len(args) == 1:
		n.Payload = []byte(args[0])
	default:
		if f, is := stdin.(*os.File); is && term.IsTerminal(f) {
			return wrongUsage(errors.New("there is no payload; give it as an argument, or on standard input"))
		}
		payload, err := io.ReadAll(io.LimitReader(stdin, stdinMax+1))
		if err != nil {
			return fmt.Errorf("standard input: %w", err)
		}
		if len(payload) > stdinMax {
			return fmt.Errorf("standard input: a payload of more than %d bytes; put it somewhere else, and where it is into the queue", stdinMax)
		}
		n.Payload = payload
	}
	return q.one(ctx, to, n)
}

func (q *queuePut) one(ctx context.Context, to *client.Queue, n client.New) error {
	placed, err := to.Put(ctx, n)
	if err == nil {
		q.placed(placed)
	}
	return err
}

// placed tells of an item that was put.
func (q *queuePut) placed(placed client.Placed) {
	if q.asJSON {
		q.line(struct {
			Queue string `json:"queue"`
			client.Placed
		}{q.name, placed})
		return
	}
	fmt.Fprintln(q.stdout, placed.ID)
	if placed.Existed {
		fmt.Fprintf(q.stderr, "anteroom queue put: item %s was put before, and is %s; nothing was changed\n", placed.ID, placed.State)
	}
}

// putLines puts batches one after the other, so that they are in line as they are
// in the file. It ends with the first batch of which some could not be put, after
// all of that was tried.
func (q *queuePut) putLines(ctx context.Context, to *client.Queue, n client.New, stdin io.Reader) error {
	lines := bufio.NewScanner(stdin)
	lines.Buffer(nil, stdinMax)
	done, read := 0, 0
	var batch []client.New
	flush := func() error {
		results, _ := to.PutAll(ctx, batch) // which have the error
		batch = batch[:0]
		var failed error
		for i, r := range results {
			if r.Err == nil {
				q.placed(r.Placed)
				done++
			} else if failed == nil {
				failed = fmt.Errorf("line %d: %w", read-len(results)+i+1, q.explain(r.Err))
			}
		}
		if failed != nil {
			return fmt.Errorf("after %d items: %w", done, failed)
		}
		return nil
	}
	for lines.Scan() {
		n.Payload = bytes.Clone(lines.Bytes())
		batch = append(batch, n)
		read++
		if len(batch) < q.batch {
			continue
		}
		if err := flush(); err != nil {
			return err
		}
	}
	if err := flush(); err != nil {
		return err
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("line %d of standard input: %w; %d items were put", read+1, err, done)
	}
	return nil
}
