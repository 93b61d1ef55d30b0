package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/anteroom/anteroom/internal/config"
	"github.com/anteroom/anteroom/internal/tokens"
)

// tokenJSON is what `keys token --json` prints.
type tokenJSON struct {
	Token  string   `json:"token,omitempty"` // not where it went to a file
	Name   string   `json:"name"`
	Hash   string   `json:"hash"`
	May    []string `json:"may"`
	Rooms  []string `json:"rooms"`
	Queues []string `json:"queues"`
}

func (p *program) keysTokenCommand() *cobra.Command {
	t := config.Token{}
	var out string
	var force, asJSON bool
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Make a token for a program that calls node.grpc, or for an operator",
		Long: `Make a token: what its bearer may do at node.grpc or the admin port of the nodes
that have it in their security.tokens. It is shown once. The nodes keep its hash,
so their files do not give it away.

--may takes
  put        bring people into rooms, items into queues
  take       take items, and say that they are done
  manage     change and remove items, pause and drain queues
  authorize  ask about visitors' requests, as Envoy does
  view       see, and change nothing; also on the admin port
  operate    view, manage, and all of the admin port`,
		Example: `  anteroom keys token --name resizer --may take --queues images
  anteroom keys token --name shop --may put,view --queues 'orders/*' --out shop.token
  anteroom keys token --name envoy --may authorize --rooms '*'`,
		Args: noCommand,
		RunE: func(*cobra.Command, []string) error {
			secret := tokens.New()
			h, _ := tokens.HashOf(secret)
			t.Hash = h.String()
			if err := checkToken(t); err != nil {
				return wrongUsage(err)
			}
			if out != "" {
				how := os.O_WRONLY | os.O_CREATE | os.O_EXCL
				if force {
					how = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
				}
				switch err := writePrivate(out, secret+"\n", how); {
				case errors.Is(err, fs.ErrExist):
					return fmt.Errorf("%s is there already; give another --out, or write over it with --force", out)
				case err != nil:
					return fmt.Errorf("%w; give an --out in a directory that this user may write to", err)
				}
			}
			p.printToken(secret, out, t, asJSON)
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&t.Name, "name", "", "`NAME` of the bearer, by which logs call the token")
	f.StringSliceVar(&t.May, "may", nil, "`RIGHTS`: some of "+strings.Join(tokens.Names(), ", "))
	f.StringSliceVar(&t.Rooms, "rooms", nil, "`NAMES` of rooms, or beginnings of names with a *")
	f.StringSliceVar(&t.Queues, "queues", nil, "`NAMES` of queues, or beginnings of names with a *")
	f.StringVar(&out, "out", "", "write the token to `FILE`, which only its owner may read, and not to the screen")
	f.BoolVar(&force, "force", false, "write over a file that is there")
	f.BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// checkToken has the configuration's own checks look at t.
func checkToken(t config.Token) error {
	f := config.Parse("token", []byte("security:\n  tokens:\n    - "+tokenYAML(t)+"\n"), config.Options{Host: "token"})
	var errs []error
	for _, problem := range f.Errors {
		if what, ours := strings.CutPrefix(problem.Key, "security.tokens[0]"); ours {
			name, _, _ := strings.Cut(strings.TrimPrefix(what, "."), "[")
			if name != "" {
				name = "--" + name + ": "
			}
			errs = append(errs, errors.New(name+problem.Text))
		}
	}
	return errors.Join(errs...)
}

// tokenYAML is t as it stands in a file.
func tokenYAML(t config.Token) string {
	quoted := func(all []string) string {
		q := make([]string, len(all))
		for i, s := range all {
			q[i] = fmt.Sprintf("%q", s)
		}
		return "[" + strings.Join(q, ", ") + "]"
	}
	line := fmt.Sprintf("{name: %q, hash: %q, may: %s", t.Name, t.Hash, quoted(t.May))
	if len(t.Rooms) > 0 {
		line += ", rooms: " + quoted(t.Rooms)
	}
	if len(t.Queues) > 0 {
		line += ", queues: " + quoted(t.Queues)
	}
	return line + "}"
}

func (p *program) printToken(secret, out string, t config.Token, asJSON bool) {
	if asJSON {
		j := tokenJSON{Token: secret, Name: t.Name, Hash: t.Hash, May: t.May, Rooms: t.Rooms, Queues: t.Queues}
		if out != "" {
			j.Token = ""
		}
		p.printJSON(j)
		return
	}
	if out == "" {
		fmt.Fprintf(p.stdout, "%s\n\nThis is the token; it is not shown again. Its bearer sends it by --token-file or in ANTEROOM_TOKEN.\n", secret)
	} else {
		fmt.Fprintf(p.stdout, "wrote %s; its bearer sends it by --token-file\n", out)
	}
	fmt.Fprintf(p.stdout, "Give all nodes this, and restart them one by one:\n\nsecurity:\n  tokens:\n    - %s\n", tokenYAML(t))
}
