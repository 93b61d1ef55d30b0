package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/anteroom/anteroom/gateway"
	"github.com/anteroom/anteroom/internal/config"
	"github.com/anteroom/anteroom/internal/term"
)

func (p *program) roomsMessageCommand() *cobra.Command {
	client, at, none := adminClient{url: adminDefault}, "", false
	cmd := &cobra.Command{
		Use:   "message NAME [TEXT]",
		Short: "Tell the people who wait something",
		Long: `Tell the people who wait for a room something, now or at a time. Pages that are
open show it within a second; the messages of before stay there, to be read again.
Without TEXT, list the messages. A room has 10 at most: one more takes the place of
the oldest that has been read.`,
		Example: `  anteroom rooms message shop "The harvest is in."
  anteroom rooms message shop "Half an hour to go." --at 2026-11-27T17:30:00Z
  anteroom rooms message shop "We go on now." --at 15m
  anteroom rooms message shop --clear`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 0, len(args) > 2:
				return wrongUsage(fmt.Errorf("give the name of a room, and the text as one word, as in: %s shop \"The harvest is in.\"", cmd.CommandPath()))
			case none && (len(args) == 2 || at != ""):
				return wrongUsage(errors.New("--clear takes all messages back; give it without a text and --at"))
			case at != "" && len(args) == 1:
				return wrongUsage(errors.New("--at is for a message; give its text"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			ask := asking{method: http.MethodGet, path: roomPath(args[0]), header: map[string]string{"Content-Type": "application/json"}}
			switch {
			case none:
				ask.method, ask.body = http.MethodPatch, []byte(`{"messages":[]}`)
			case len(args) == 2:
				m := gateway.Message{Text: args[1]}
				if at != "" {
					t, err := timeOf(at, time.Now())
					if err != nil {
						return wrongUsage(err)
					}
					m.At = &t
				}
				ask.method, ask.path = http.MethodPost, roomPath(args[0], "messages")
				ask.body, _ = json.Marshal(m) // a time and a string
			}
			var h had
			if err := client.edit(cmd.Context(), ask, &h); err != nil {
				return unlessStopped(cmd.Context(), aboutRoom(args[0], err))
			}
			return p.printMessages(h)
		},
	}
	cmd.Flags().StringVar(&at, "at", "", "show it from `TIME` on, such as 2026-11-27T18:00:00Z, or from now in 15m [now]")
	cmd.Flags().BoolVar(&none, "clear", false, "take all messages back")
	client.add(cmd)
	return cmd
}

// timeOf reads a point in time, or how far it is off.
func timeOf(text string, now time.Time) (time.Time, error) {
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return now.Add(d).UTC(), nil
	}
	var m config.Moment
	if err := m.UnmarshalText([]byte(text)); err != nil {
		return time.Time{}, fmt.Errorf("--at %q is %w; or how far it is off, such as 15m", text, err)
	}
	return time.Time(m), nil
}

func (p *program) printMessages(h had) error {
	if len(h.Messages) == 0 {
		fmt.Fprintf(p.stdout, "room %s: no messages%s\n", h.Name, notYet(h.Pending))
		return nil
	}
	if h.Pending {
		fmt.Fprintf(p.stdout, "room %s:%s\n", h.Name, notYet(true))
	}
	var rows [][]string
	for _, m := range h.Messages {
		rows = append(rows, []string{time.Time(m.At).UTC().Format(time.RFC3339), m.Text})
	}
	return term.WriteTable(p.stdout, []string{"from", "message"}, rows)
}
