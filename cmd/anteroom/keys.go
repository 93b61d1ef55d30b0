package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/anteroom/anteroom/internal/seal"
	"github.com/anteroom/anteroom/internal/term"
)

func (p *program) keysCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "keys",
		Short: "Make, rotate or list the keys of a cluster",
		Long: `Make, rotate or list the signing keys of a cluster. They seal tickets and passes:
whoever has the file can let themselves in, so keep it as you would a password.
security.signing_keys in the configuration names it, the same on all nodes. Apart
from these, keys cluster makes the key by which the nodes know each other, and
keys token a token for programs.`,
		Args: noCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(p.keysNewCommand(), p.keysRotateCommand(), p.keysShowCommand(), p.keysClusterCommand(), p.keysTokenCommand())
	return cmd
}

func (p *program) keysNewCommand() *cobra.Command {
	out, force := "keys.json", false
	cmd := &cobra.Command{
		Use:   "new",
		Short: "Make a file with a new key",
		Args:  noCommand,
		RunE: func(*cobra.Command, []string) error {
			_, err := os.Lstat(out)
			switch {
			case err == nil && !force:
				return fmt.Errorf("%s is there already, and places that its keys sealed would be lost; add a key with: anteroom keys rotate %s, or write over it with --force", out, out)
			case err != nil && !errors.Is(err, fs.ErrNotExist):
				return fmt.Errorf("%w; give another --out", err)
			}
			ring := seal.New(seal.Config{Now: p.micros})
			if err := ring.Rotate(); err != nil {
				return err
			}
			if err := ring.Save(out); err != nil {
				return fmt.Errorf("%w; give an --out in a directory that this user may write to", err)
			}
			fmt.Fprintf(p.stdout, "wrote %s with key %s; give all nodes this file as security.signing_keys\n", out, newest(ring))
			return nil
		},
	}
	cmd.Flags().StringVar(&out, "out", out, "the file")
	cmd.Flags().BoolVar(&force, "force", false, "write over a file that is there")
	return cmd
}

// keepDefault is how long replaced keys are kept: a place lives a day, and a
// session an hour at most unless somebody says otherwise.
const keepDefault = 25 * time.Hour

func (p *program) keysRotateCommand() *cobra.Command {
	keep := keepDefault
	cmd := &cobra.Command{
		Use:   "rotate FILE",
		Short: "Add a new key to a file",
		Long: `Add a new key to a file. The keys that are there go on opening what they sealed,
and are dropped once nothing of that can be alive any more.`,
		Args: oneFile,
	}
	f := &flagSet{FlagSet: cmd.Flags()}
	f.duration(&keep, "keep", time.Hour, 10_000*time.Hour, "replaced keys stay this long: a day and the longest session_duration")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		if err := f.err(); err != nil {
			return err
		}
		all, err := p.loadKeys(args[0], 0)
		if err != nil {
			return err
		}
		ring, err := p.loadKeys(args[0], keep)
		if err != nil {
			return err
		}
		if err := ring.Rotate(); err != nil {
			return err
		}
		if err := ring.Save(args[0]); err != nil {
			return err
		}
		after := len(ring.Keys())
		fmt.Fprintf(p.stdout, "wrote %s with the new key %s and %s from before", args[0], newest(ring), count(after-1, "key"))
		if dropped := len(all.Keys()) + 1 - after; dropped > 0 {
			fmt.Fprintf(p.stdout, ", without %d too old to matter", dropped)
		}
		fmt.Fprintln(p.stdout, "; give all nodes this file")
		return nil
	}
	return cmd
}

func (p *program) keysShowCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show FILE",
		Short: "List the keys of a file by id and age, without their secrets",
		Args:  oneFile,
		RunE: func(_ *cobra.Command, args []string) error {
			ring, err := p.loadKeys(args[0], 0)
			if err != nil {
				return err
			}
			if asJSON {
				p.printJSON(keysJSON(ring))
				return nil
			}
			var rows [][]string
			for _, k := range keysJSON(ring).Keys {
				use := "seals and signs"
				if k.Replaced {
					use = "opens what it sealed"
				}
				rows = append(rows, []string{k.ID, k.Created.Format(time.DateTime) + " UTC", p.age(k.Created), use})
			}
			return term.WriteTable(p.stdout, []string{"key", "made", "age", "use"}, rows)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// loadKeys reads a key file; with keep 0 it lists replaced keys of any age.
func (p *program) loadKeys(name string, keep time.Duration) (*seal.Ring, error) {
	if keep == 0 {
		keep = 100 * 365 * 24 * time.Hour
	}
	ring := seal.New(seal.Config{Now: p.micros, Keep: keep})
	if err := ring.Load(name); err != nil {
		return nil, fmt.Errorf("%w; make keys with: anteroom keys new", err)
	}
	return ring, nil
}

// ringJSON is what `keys show --json` prints.
type ringJSON struct {
	Keys []keyJSON `json:"keys"` // the oldest first
}

type keyJSON struct {
	ID       string    `json:"id"`
	Created  time.Time `json:"created"`
	Replaced bool      `json:"replaced"` // a newer one seals
}

func keysJSON(ring *seal.Ring) ringJSON {
	keys := ring.Keys()
	out := ringJSON{Keys: []keyJSON{}}
	for i, k := range keys {
		out.Keys = append(out.Keys, keyJSON{ID: k.ID, Created: k.Created, Replaced: i < len(keys)-1})
	}
	return out
}

// newest is the id of the key that was made last.
func newest(ring *seal.Ring) string {
	keys := ring.Keys()
	return keys[len(keys)-1].ID
}

// age is how long ago t was, as people say it.
func (p *program) age(t time.Time) string {
	switch d := p.now().Sub(t); {
	case d < 0:
		return "in the future"
	case d < time.Hour:
		return short(d.Truncate(time.Second))
	case d < 48*time.Hour:
		return short(d.Truncate(time.Minute))
	default:
		return count(int(d.Hours()/24), "day")
	}
}
