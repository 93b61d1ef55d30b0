package main

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/anteroom/anteroom/gateway/admin"
)

func (p *program) whyCommand() *cobra.Command {
	var room string
	var asJSON bool
	client := adminClient{url: adminDefault}
	cmd := &cobra.Command{
		Use:   "why",
		Short: "Say what limits the flow into a room now, or into each room",
		Long: `Say what limits the flow into a room now, or into each room: the limit, the rate,
slots of a lost node, a hold, a side without a majority, or that nobody waits.
The figures behind it are in the sentence, and all of them in the JSON. Of one
room, advice follows where its last hour speaks for another setting.`,
		Example: `  anteroom why --room shop
  anteroom why --json --admin http://10.0.0.2:9090`,
		Args: noCommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			names := []string{room}
			if room == "" {
				s, err := client.status(cmd.Context())
				if err != nil {
					return unlessStopped(cmd.Context(), err)
				}
				names = names[:0]
				for i := range s.Rooms {
					names = append(names, s.Rooms[i].Name)
				}
			}
			for _, name := range names {
				var why admin.Reason
				path := roomPath(name, "why")
				if room != "" {
					path += "?advice=true"
				}
				if err := client.edit(cmd.Context(), asking{method: "GET", path: path}, &why); err != nil {
					return unlessStopped(cmd.Context(), err)
				}
				p.showWhy(name, &why, asJSON)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&room, "room", "", "the room; without it, all of them")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON, one object a line")
	client.add(cmd)
	return cmd
}

func (p *program) showWhy(room string, why *admin.Reason, asJSON bool) {
	if !asJSON {
		fmt.Fprintf(p.stdout, "%s: %s\n", room, why.Say(func(t time.Time) string { return t.Local().Format(time.TimeOnly) }))
		for _, a := range why.Advice {
			fmt.Fprintf(p.stdout, "  %s: %s\n", a.Key, a.Text)
		}
		return
	}
	line, _ := json.Marshal(struct {
		Room string `json:"room"`
		*admin.Reason
	}{room, why}) // strings and finite numbers
	fmt.Fprintf(p.stdout, "%s\n", line)
}
