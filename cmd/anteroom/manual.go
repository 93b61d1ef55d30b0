package main

import (
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// manualCommand is for those who package the program; nobody else needs to see it.
func (p *program) manualCommand() *cobra.Command {
	var date string
	cmd := &cobra.Command{
		Use:     "manual DIRECTORY",
		Short:   "Write the manual, a page in roff of each command",
		Long:    "Writes a page in roff of each command into DIRECTORY, which it makes.\nA package has them already: man anteroom.",
		Example: "  anteroom manual pages && man -l pages/anteroom.1",
		Hidden:  true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return wrongUsage(fmt.Errorf("%d directories given; give one", len(args)))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			on, err := time.Parse(time.DateOnly, date)
			if err != nil {
				return wrongUsage(err)
			}
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			root := cmd.Root()
			root.DisableAutoGenTag = true // it would name today's date
			return doc.GenManTree(root, &doc.GenManHeader{Section: "1", Date: &on, Source: "anteroom " + thisProgram().Version, Manual: "anteroom"}, args[0])
		},
	}
	cmd.Flags().StringVar(&date, "date", p.now().UTC().Format(time.DateOnly), "`date` on the pages")
	return cmd
}
