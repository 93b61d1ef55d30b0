// Command anteroom is a fair distributed waiting room. `anteroom --help` lists
// what it does.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

func main() {
	log.SetOutput(io.Discard) // what net/http says beside its errors; all else goes through slog
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C does not wait
	os.Exit(exitCode(run(ctx, os.Args[1:], os.Stdout, os.Stderr)))
}

// run is the whole program. What it returns has been told on stderr.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	p := &program{stdout: stdout, stderr: stderr, now: time.Now}
	return p.run(ctx, args)
}

// program is what every command needs of the world.
type program struct {
	stdout, stderr io.Writer
	now            func() time.Time
	dialer         func(ctx context.Context, address string) (net.Conn, error) // of queue; nil: the network's
}

func (p *program) run(ctx context.Context, args []string) error {
	root := p.root()
	root.SetArgs(append([]string{}, args...)) // nil would mean those of the process
	cmd, err := root.ExecuteContextC(ctx)
	for line := range strings.Lines(message(err)) {
		fmt.Fprintf(p.stderr, "%s: %s\n", cmd.CommandPath(), strings.TrimSpace(line))
	}
	return err
}

func (p *program) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "anteroom",
		Short: "A fair distributed waiting room",
		Long: `A waiting room for websites: it lets in as many people as you allow, keeps everyone
else in line, first come, first served, and measures whether that was so.`,
		Args:          noCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		Version:       thisVersion(),
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetOut(p.stdout)
	root.SetErr(p.stderr)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return wrongUsage(fmt.Errorf("%w; %s --help lists the flags", err, cmd.CommandPath()))
	})
	root.AddCommand(
		p.demoCommand(), p.serveCommand(), p.statusCommand(), p.whyCommand(), p.notifyCommand(), p.roomsCommand(), p.queueCommand(), p.loadCommand(), p.reportCommand(), p.historyCommand(), p.simCommand(), p.configCommand(), p.keysCommand(),
		p.healthcheckCommand(), p.versionCommand(), p.manualCommand(),
	)
	return root
}

// noCommand refuses words that are no command of cmd's.
func noCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	cmd.SuggestionsMinimumDistance = 2
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		return wrongUsage(fmt.Errorf("unknown command %q; did you mean %q?", args[0], near[0]))
	}
	return wrongUsage(fmt.Errorf("unknown command %q; %s --help lists the commands", args[0], cmd.CommandPath()))
}

// usageError is a mistake in how a command was called.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func wrongUsage(err error) error { return usageError{err} }

func exitCode(err error) int {
	var usage usageError
	var none nothing
	switch {
	case err == nil:
		return 0
	case errors.As(err, &none):
		return 3
	case errors.As(err, &usage):
		return 2
	}
	return 1
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
