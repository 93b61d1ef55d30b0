package main

import "github.com/spf13/cobra"

func (p *program) roomsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rooms",
		Short: "Look at rooms, and change them",
		Long: `Look at the rooms of a running cluster and change them, at the admin port of any
of its nodes. A change takes force on all nodes with a coming wave, and nobody
loses a place.`,
		Args: noCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		p.roomsListCommand(), p.roomsGetCommand(), p.roomsApplyCommand(), p.roomsDeleteCommand(),
		p.roomsModeCommand("hold", "Let nobody new in, for now", `Let nobody new in: nobody is called, and nobody walks in. Those on the site stay,
those called already may come, and those in line keep their places.`),
		p.roomsModeCommand("release", "End a hold or a drain", "End a hold or a drain: the room is as its configuration says."),
		p.roomsModeCommand("drain", "Let nobody join any more", `Let nobody join any more. Those in line are called as ever. Who comes is told that
the room is closed.`),
		p.roomsMessageCommand(), p.roomsReclaimCommand(), p.roomsCheckCommand(), p.roomsImportCommand(),
	)
	return cmd
}
