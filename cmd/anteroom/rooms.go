package main

import "github.com/spf13/cobra"

func (p *program) roomsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rooms",
		Short: "Look at rooms",
		Args:  noCommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(p.roomsCheckCommand())
	return cmd
}
