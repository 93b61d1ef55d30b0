package main

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"
)

const clusterKeyHead = "# Whoever has this key is a member of the cluster. The first key in this file seals, all of them open.\n"

func (p *program) keysClusterCommand() *cobra.Command {
	out, force := "cluster.key", false
	cmd := &cobra.Command{
		Use:   "cluster",
		Short: "Make a file with the key by which the nodes of a cluster know each other",
		Long: `Make a file with the key by which the nodes of a cluster know each other. It
encrypts all that goes between them, and whoever has it is one of them. Give all
nodes the file: security.gossip_key_file in the configuration, or
--gossip-key-file. With --out - the key goes to standard output, so that
anteroom keys cluster --out - >> cluster.key adds one to a file.`,
		Args: noCommand,
		RunE: func(*cobra.Command, []string) error {
			line := newClusterKey() + "\n"
			if out == "-" {
				_, err := fmt.Fprint(p.stdout, line)
				return err
			}
			how := os.O_WRONLY | os.O_CREATE | os.O_EXCL
			if force {
				how = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
			}
			switch err := writePrivate(out, clusterKeyHead+line, how); {
			case errors.Is(err, fs.ErrExist):
				return fmt.Errorf("%s is there already, and nodes that have its key would not know those that have another; "+
					"add a key with: anteroom keys cluster --out - >> %s, or write over it with --force", out, out)
			case err != nil:
				return fmt.Errorf("%w; give an --out in a directory that this user may write to", err)
			}
			fmt.Fprintf(p.stdout, "wrote %s; give all nodes this file as security.gossip_key_file, or with --gossip-key-file\n", out)
			return nil
		},
	}
	cmd.Flags().StringVar(&out, "out", out, "the file, or - for standard output")
	cmd.Flags().BoolVar(&force, "force", false, "write over a file that is there")
	return cmd
}

// newClusterKey makes a key in base64.
func newClusterKey() string {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	return base64.StdEncoding.EncodeToString(key)
}

// writePrivate writes a file that only its owner may read.
func writePrivate(name, text string, how int) error {
	f, err := os.OpenFile(name, how, 0o600)
	if err != nil {
		return err
	}
	err = f.Chmod(0o600) // one that was there may have had another mode
	if err == nil {
		_, err = f.WriteString(text)
	}
	return errors.Join(err, f.Close())
}
