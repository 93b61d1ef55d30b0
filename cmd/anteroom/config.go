package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/anteroom/anteroom/internal/config"
	"github.com/anteroom/anteroom/internal/seal"
	"github.com/anteroom/anteroom/internal/server"
)

func (p *program) configCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Check or print a node's configuration, or preview its pages",
		Args:  noCommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(p.configCheckCommand(), p.configPrintCommand(), p.configPreviewCommand())
	return cmd
}

func (p *program) configCheckCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "check FILE...",
		Short: "Tell everything that is wrong with configuration files",
		Long: `Tell everything that is wrong with a configuration file, each mistake with its
line and what would be right, and look at the files it names. The environment
counts as it does for serve. With several files, those of the nodes of one
cluster, compare them with each other too; then the environment does not count.`,
		Example: `  anteroom config check anteroom.yaml
  anteroom config check node-1.yaml node-2.yaml node-3.yaml`,
		Args: someFiles,
		RunE: func(cmd *cobra.Command, args []string) error {
			files, err := p.loadAll(args)
			if err != nil {
				return err
			}
			if asJSON {
				return p.printChecksJSON(files)
			}
			return p.printChecks(cmd, files)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

func (p *program) configPrintCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "print FILE",
		Short: "Print the configuration that a file and the environment make",
		Long: `Print the configuration that a file and the environment make: every key, defaults
included, without secrets.`,
		Args: oneFile,
		RunE: func(_ *cobra.Command, args []string) error {
			files, err := p.loadAll(args)
			if err != nil {
				return err
			}
			f := files[0]
			if err := f.Err(); err != nil {
				return err
			}
			if asJSON {
				p.printJSON(f.Config)
				return nil
			}
			_, err = fmt.Fprint(p.stdout, f.Config)
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// someFiles and oneFile say what is missing in the words of a person.
func someFiles(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return wrongUsage(fmt.Errorf("no file given; try: %s %s", cmd.CommandPath(), example(cmd)))
	}
	return nil
}

// example is a file that cmd may be about.
func example(cmd *cobra.Command) string {
	if cmd.Parent().Name() == "keys" {
		return "keys.json"
	}
	return "anteroom.yaml"
}

func oneFile(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return wrongUsage(fmt.Errorf("%d files given; give one", len(args)))
	}
	return someFiles(cmd, args)
}

// loadAll reads the files and what the signing keys in them are.
func (p *program) loadAll(names []string) ([]*config.File, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("%w; give the machine a host name", err)
	}
	o := config.Options{Host: host}
	if len(names) == 1 {
		o.Environ = os.Environ()
	}
	files := make([]*config.File, len(names))
	for i, name := range names {
		files[i] = server.CheckPages(config.Load(name, o))
		p.checkSigningKeys(files[i])
	}
	config.Together(files)
	return files, nil
}

// checkSigningKeys sees that the file of signing keys holds some.
func (p *program) checkSigningKeys(f *config.File) {
	const key = "security.signing_keys"
	name := f.Config.Security.SigningKeys
	if name == "" {
		return
	}
	ring := seal.New(seal.Config{Now: p.micros})
	switch err := ring.Load(string(name)); {
	case err != nil:
		f.Fault(key, "%v; make keys with: anteroom keys new", err)
	case ring.Empty():
		f.Fault(key, "%s has no key in it; make one with: anteroom keys rotate %s", name, name)
	}
}

func (p *program) micros() int64 { return p.now().UnixMicro() }

func (p *program) printChecks(cmd *cobra.Command, files []*config.File) error {
	var errs []error
	for _, f := range files {
		errs = append(errs, f.Err())
		for _, w := range f.Warnings {
			fmt.Fprintf(p.stderr, "%s: warning: %v\n", cmd.CommandPath(), w)
		}
		if len(f.Errors) == 0 {
			fmt.Fprintf(p.stdout, "%s: good: %s\n", f.Name, plan(f.Config))
		}
	}
	return errors.Join(errs...)
}

// plan says what a node of this configuration will do.
func plan(c config.Config) string {
	founds := "a cluster of its own"
	switch n := c.Node; {
	case n.Expect > 0:
		founds = "founds a cluster with " + count(n.Expect, "node") + " in all, or joins one"
	case len(n.Join) > 0:
		founds = "joins a cluster, founds none"
	}
	names := make([]string, len(c.Rooms))
	for i, r := range c.Rooms {
		names[i] = r.Name
	}
	rooms := count(len(names), "room")
	if len(names) > 0 {
		rooms += " (" + strings.Join(names[:min(3, len(names))], ", ")
		if len(names) > 3 {
			rooms += ", …"
		}
		rooms += ")"
	}
	return fmt.Sprintf("%s, %s; %s", c.Node.ID, founds, rooms)
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// checkJSON is what `config check --json` prints.
type checkJSON struct {
	OK    bool            `json:"ok"`
	Files []checkFileJSON `json:"files"`
}

type checkFileJSON struct {
	File     string           `json:"file"`
	Node     string           `json:"node"`
	Errors   []config.Problem `json:"errors"`
	Warnings []config.Problem `json:"warnings"`
}

func (p *program) printChecksJSON(files []*config.File) error {
	out := checkJSON{OK: true}
	bad := 0
	for _, f := range files {
		out.OK = out.OK && len(f.Errors) == 0
		bad += len(f.Errors)
		out.Files = append(out.Files, checkFileJSON{
			File: f.Name, Node: f.Config.Node.ID,
			Errors: append([]config.Problem{}, f.Errors...), Warnings: append([]config.Problem{}, f.Warnings...),
		})
	}
	p.printJSON(out)
	if bad > 0 {
		return fmt.Errorf("%s; the object on stdout lists them", count(bad, "error"))
	}
	return nil
}
