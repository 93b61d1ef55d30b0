package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"

	"github.com/anteroom/anteroom/client"
)

// grpcDefault is where a node's port for programs is unless it is told otherwise.
const grpcDefault = "127.0.0.1:7002"

func (p *program) queueCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "queue",
		Short: "Put items into priority queues, take them, look at them",
		Long: `Use the priority queues of a running cluster, at the port for programs
(node.grpc) of any of its nodes. Items go out lowest priority number first, and in the order in which they
came among equals; they are delivered at least once.

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 there was nothing to take.`,
		Example: `  anteroom queue put --queue jobs --priority 5 'resize 42'
  anteroom queue work --queue jobs --concurrency 4 -- ./resize {}
  anteroom queue stats`,
		Args: noCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		p.queuePutCommand(), p.queueTakeCommand(), p.queueAckCommand(), p.queueNackCommand(), p.queueExtendCommand(),
		p.queuePeekCommand(), p.queueLenCommand(), p.queuePositionCommand(), p.queueUpdateCommand(), p.queueCancelCommand(),
		p.queueModeCommand("pause", "Hold a queue: nothing is taken until resume", (*client.Queue).Pause),
		p.queueModeCommand("resume", "End a pause or a drain", (*client.Queue).Resume),
		p.queueModeCommand("drain", "Let a queue run empty: nothing is put until resume", (*client.Queue).Drain),
		p.queuePurgeCommand(), p.queueSetCommand(), p.queueStatsCommand(), p.queueWatchCommand(), p.queueDeadCommand(), p.queueWorkCommand(), p.queueVerifyCommand(), p.queueRecoverCommand(),
	)
	return cmd
}

// queueing is what the commands of `anteroom queue` have in common.
type queueing struct {
	*program
	name     string
	nodes    []string
	ca       string
	tls      bool
	token    string
	file     string // of the token
	patience time.Duration
	asJSON   bool
	flags    *flagSet
	optional bool // --queue may be left out
}

// of defines the common flags. do gets the queue, and words that were given.
func (q *queueing) of(cmd *cobra.Command, do func(context.Context, *client.Queue, []string) error) *cobra.Command {
	q.flags = &flagSet{FlagSet: cmd.Flags()}
	q.patience = 5 * time.Second
	f := q.flags
	f.StringVar(&q.name, "queue", "", "`NAME` of the queue, or namespace/name")
	f.StringSliceVar(&q.nodes, "node", []string{grpcDefault}, "`ADDRESS` of a node's port for programs (node.grpc); give several, for when one is down")
	f.StringVar(&q.token, "token", "", "the `TOKEN` that the node asks for; better in ANTEROOM_TOKEN or a file, where other users do not see it")
	f.StringVar(&q.file, "token-file", "", "`FILE` with the token")
	f.StringVar(&q.ca, "ca", "", "speak TLS: `FILE` with the authority that signed the nodes' security.tls.grpc")
	f.BoolVar(&q.tls, "tls", false, "speak TLS with nodes whose certificate this machine trusts")
	f.duration(&q.patience, "patience", 10*time.Millisecond, 24*time.Hour, "how long to go on trying")
	f.BoolVar(&q.asJSON, "json", false, "print JSON, one object a line")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if q.name == "" && !q.optional {
			f.wrong("--queue is missing; name one, as in --queue jobs (anteroom queue stats lists them)")
		}
		if err := f.err(); err != nil {
			return err
		}
		c, err := q.dial()
		if err != nil {
			return err
		}
		err = q.explain(do(cmd.Context(), c.Queue(q.name), args))
		_ = c.Close() // all answers are there
		return unlessStopped(cmd.Context(), err)
	}
	return cmd
}

func (q *queueing) dial() (*client.Client, error) {
	o := []client.Option{client.WithPatience(q.patience), client.WithTry(min(q.patience, 5*time.Second))}
	switch {
	case q.ca != "":
		pem, err := os.ReadFile(q.ca)
		if err != nil {
			return nil, fmt.Errorf("--ca: %w; name a PEM file of the authority that signed the nodes' security.tls.grpc", err)
		}
		o = append(o, client.WithCA(pem))
	case q.tls:
		o = append(o, client.WithTLS(&tls.Config{MinVersion: tls.VersionTLS12}))
	}
	token, err := q.bearer()
	if err != nil {
		return nil, err
	}
	if token != "" {
		o = append(o, client.WithToken(token))
	}
	if q.dialer != nil {
		o = append(o, client.WithGRPC(grpc.WithContextDialer(q.dialer)))
	}
	c, err := client.Dial(q.nodes, o...)
	if err != nil {
		text := strings.TrimPrefix(err.Error(), "client: ")
		text = strings.Replace(text, "give WithCA or WithTLS", "give --ca or --tls", 1)
		return nil, wrongUsage(errors.New("--node: " + strings.Replace(text, "WithToken: ", "the token: ", 1)))
	}
	return c, nil
}

// tokenVariable is where a token is, unless a flag says otherwise.
const tokenVariable = "ANTEROOM_TOKEN"

// bearer is the token to send, if there is one.
func (q *queueing) bearer() (string, error) {
	switch {
	case q.token != "" && q.file != "":
		return "", wrongUsage(errors.New("--token and --token-file: give one of them"))
	case q.token != "":
		return q.token, nil
	case q.file != "":
		text, err := os.ReadFile(q.file)
		if err != nil {
			return "", fmt.Errorf("--token-file: %w; name the file that anteroom keys token --out has written", err)
		}
		if token := strings.TrimSpace(string(text)); token != "" {
			return token, nil
		}
		return "", fmt.Errorf("--token-file: %s is empty; name the file that anteroom keys token --out has written", q.file)
	}
	return os.Getenv(tokenVariable), nil
}

// words wants at least one, of what it says.
func words(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return wrongUsage(fmt.Errorf("no %s is given; give it as in: %s --queue jobs %s", what, cmd.CommandPath(), strings.ToUpper(what)))
		}
		return nil
	}
}

// explain says what to do about an error of the cluster's.
func (q *queueing) explain(err error) error {
	var e *client.Error
	if !errors.As(err, &e) {
		return err
	}
	at, has := strings.Join(q.nodes, ", "), func(s string) bool { return strings.Contains(e.Text, s) }
	queue, text := cmp.Or(q.name, "the cluster"), cmp.Or(strings.TrimSuffix(e.Text, "."), e.Code.String())
	switch {
	case has("connection refused"):
		return fmt.Errorf("no node answers at %s: nothing listens there; is the node running, and is that its node.grpc?", at)
	case has("produced zero addresses"), has("no such host"), has("name resolver"):
		return fmt.Errorf("no machine is found by the name in %s; give --node the address in a node's node.grpc, as in %s", at, grpcDefault)
	case has("first record does not look like a TLS handshake"):
		return fmt.Errorf("%s speaks no TLS: the node has no security.tls.grpc; leave out --ca and --tls", at)
	case has("certificate"):
		return fmt.Errorf("%s: %s; give --ca the authority that signed the nodes' security.tls.grpc, and --node a name that is in it", at, text)
	case has("HTTP/1.1 header"):
		return fmt.Errorf("%s is no port for programs: it speaks HTTP/1, as node.gateway and node.admin do; give --node the address in node.grpc", at)
	case has("error reading server preface"):
		return fmt.Errorf("%s does not speak gRPC without TLS: if the node has security.tls.grpc, give --ca or --tls; else give --node the address in node.grpc (%s)", at, text)
	case has("unknown service"):
		return fmt.Errorf("%s has no priority queues: its program is older than this one; update the nodes", at)
	case e.Reason == client.ErrUnavailable && errors.Is(err, context.DeadlineExceeded) && e.RetryAfter == 0 && has("deadline exceeded"):
		return fmt.Errorf("no node answered at %s within %s; whether it was done is not known: is the machine up, and a firewall in between? --node takes several addresses, --patience a longer time", at, short(q.patience))
	}
	return fmt.Errorf("%s: %s%s", queue, text, q.advice(e.Reason))
}

// advice is what to do, where the node could not know it.
func (q *queueing) advice(r client.Reason) string {
	switch r {
	case client.ErrQueueUnknown:
		return " (queue_unknown); anteroom queue stats lists those there are"
	case client.ErrLeaseLost:
		return " (lease_lost); the item may be somebody else's: take again, and extend in time"
	case client.ErrDraining:
		return " (queue_draining); anteroom queue resume --queue " + q.name + " ends that"
	case client.ErrFull:
		return " (queue_full); try again later, or raise max_items or memory_max in the configuration"
	case client.ErrStorageFull:
		return " (storage_full); make room on that disk, and it goes on by itself: anteroom status says which one"
	case client.ErrTokenRequired, client.ErrTokenInvalid, client.ErrNotAllowed:
		return " (" + string(r) + "); give --token-file or " + tokenVariable + " a token whose line in security.tokens allows it"
	case client.ErrUnavailable:
		return " (unavailable); see anteroom status, and try again"
	case "":
		return ""
	default:
		return " (" + string(r) + ")"
	}
}

// line prints one object of JSON.
func (q *queueing) line(v any) {
	b, _ := json.Marshal(v) // strings, numbers and times
	fmt.Fprintf(q.stdout, "%s\n", b)
}

// lacking tells people about nodes that did not answer. JSON has them in it.
func (q *queueing) lacking(missing []string, what string) {
	if len(missing) > 0 && !q.asJSON {
		fmt.Fprintf(q.stderr, "anteroom queue: no answer of %s: %s\n", strings.Join(missing, ", "), what)
	}
}

// itemLine is an item in JSON. A payload that is text is shown as text.
type itemLine struct {
	Queue string `json:"queue"`
	client.Item
	Receipt string    `json:"receipt,omitempty"`
	Until   time.Time `json:"until,omitzero"`    // of the lease, when it was given
	Missing []string  `json:"missing,omitempty"` // of the answer that brought it
	Text    *string   `json:"payload,omitempty"`
	Bytes   []byte    `json:"payload_base64,omitempty"`
}

func (q *queueing) itemLine(i client.Item) itemLine {
	l := itemLine{Queue: q.name, Item: i}
	if text := string(i.Payload); utf8.ValidString(text) {
		l.Text = &text
	} else {
		l.Bytes = i.Payload
	}
	return l
}

// payloadWidth is how much of a payload a table shows, in characters.
const payloadWidth = 60

// payloadText is a payload in a table, or anything else that was sent.
func payloadText(payload []byte) string {
	text := string(payload)
	if !utf8.ValidString(text) {
		return fmt.Sprintf("(%d bytes)", len(payload))
	}
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.TrimRight(text, "\n"))
	if utf8.RuneCountInString(text) > payloadWidth {
		text = string([]rune(text)[:payloadWidth-1]) + "…"
	}
	return text
}

// when is a time of a node's, in tables.
func when(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format(time.RFC3339)
}
