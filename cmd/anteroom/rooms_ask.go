package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/anteroom/anteroom/gateway"
	"github.com/anteroom/anteroom/gateway/admin"
	"github.com/anteroom/anteroom/internal/config"
	"github.com/anteroom/anteroom/internal/term"
)

// editPatience is longer than a node takes to bring a change into force.
const editPatience = 15 * time.Second

// refusal is the answer of a node that does not do what it is asked for.
type refusal struct {
	gateway.Problem
	Errors []admin.FieldError `json:"errors"`
}

// Error has a line for each mistake.
func (r *refusal) Error() string {
	if len(r.Errors) == 0 {
		return fmt.Sprintf("%s (%s)", strings.TrimSuffix(r.Detail, "."), r.Code)
	}
	lines := make([]string, len(r.Errors))
	for i, e := range r.Errors {
		lines[i] = e.Detail
		if e.Key != "" {
			lines[i] = e.Key + ": " + e.Detail
		}
	}
	return strings.Join(lines, "\n")
}

// roomPath is the address of a room, or of something that can be done with it.
func roomPath(room string, more ...string) string {
	return strings.Join(append([]string{"/v1/rooms/" + url.PathEscape(room)}, more...), "/")
}

// edit asks for a change, or for a room. The answer is decoded into into, unless
// that is nil or there is none.
func (a *adminClient) edit(ctx context.Context, q asking, into any) error {
	answer, body, err := a.first(ctx, q, editPatience)
	if err != nil {
		return err
	}
	if answer.StatusCode >= 300 {
		no := &refusal{}
		if json.Unmarshal(body, no) != nil || no.Code == "" {
			return a.stranger(fmt.Sprintf("it answers %s with %s", q.path, answer.Status))
		}
		return no
	}
	if into == nil || len(body) == 0 {
		return nil
	}
	if err := json.Unmarshal(body, into); err != nil {
		return a.stranger("its answer to " + q.path + " is not JSON of a node")
	}
	return nil
}

// had is a room as a node has it.
type had struct {
	config.Room
	admin.Configuration
	all json.RawMessage
}

// UnmarshalJSON reads what there is of both.
func (h *had) UnmarshalJSON(b []byte) error {
	h.all = append(json.RawMessage{}, b...)
	return errors.Join(json.Unmarshal(b, &h.Room), json.Unmarshal(b, &h.Configuration))
}

// room asks for a room; false: there is none.
func (a *adminClient) room(ctx context.Context, name string) (h had, found bool, err error) {
	err = a.edit(ctx, asking{method: http.MethodGet, path: roomPath(name)}, &h)
	var no *refusal
	if errors.As(err, &no) && no.Code == "room_unknown" {
		return h, false, nil
	}
	if err == nil && h.ETag == "" {
		err = a.stranger("its answer to " + roomPath(name) + " is not a room")
	}
	return h, err == nil, err
}

func noRoom(name string) error {
	return fmt.Errorf("there is no room %q in the cluster; anteroom rooms list shows which there are", name)
}

// names takes the names of rooms.
func names(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return wrongUsage(fmt.Errorf("no room is named; give its name, as in: %s shop", cmd.CommandPath()))
	}
	return nil
}

// oneName takes the name of a room, or of a node.
func oneName(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 {
			return wrongUsage(fmt.Errorf("%d names are given; give that of one %s, as in: %s %s", len(args), what, cmd.CommandPath(), map[string]string{"room": "shop", "node": "node-3"}[what]))
		}
		return nil
	}
}

func (p *program) roomsListCommand() *cobra.Command {
	client, asJSON := adminClient{url: adminDefault}, false
	cmd := &cobra.Command{
		Use: "list", Short: "List the rooms of a cluster", Args: noCommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var all admin.RoomList
			if err := client.get(cmd.Context(), "/v1/rooms", &all); err != nil {
				return unlessStopped(cmd.Context(), err)
			}
			if asJSON {
				p.printJSON(all)
				return nil
			}
			var rows [][]string
			for _, r := range all.Rooms {
				mode := string(r.Mode)
				if r.Suspended {
					mode = "suspended"
				}
				rows = append(rows, []string{
					r.Name, mode, r.QueueingMethod, fmt.Sprint(r.TotalActiveUsers), fmt.Sprint(r.Active), fmt.Sprint(r.Called), fmt.Sprint(r.Queued),
				})
			}
			return term.WriteTable(p.stdout, []string{"room", "mode", "method", "limit", "on site", "called", "waiting"}, rows)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	client.add(cmd)
	return cmd
}

func (p *program) roomsGetCommand() *cobra.Command {
	client, asJSON := adminClient{url: adminDefault}, false
	cmd := &cobra.Command{
		Use:   "get NAME",
		Short: "Print the configuration of a room",
		Long:  "Print the configuration that the cluster runs a room with, as a file for rooms apply.",
		Args:  oneName("room"),
		RunE: func(cmd *cobra.Command, args []string) error {
			h, found, err := client.room(cmd.Context(), args[0])
			if err == nil && !found {
				err = noRoom(args[0])
			}
			if err != nil {
				return unlessStopped(cmd.Context(), err)
			}
			if asJSON {
				p.printJSON(h.all)
				return nil
			}
			if h.Mode != admin.Normal {
				fmt.Fprintf(p.stdout, "# This room is %s; anteroom rooms release %s ends that.\n", h.Mode, h.Name)
			}
			fmt.Fprint(p.stdout, h.YAML())
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object, with how the room is")
	client.add(cmd)
	return cmd
}

func (p *program) roomsModeCommand(verb, short, long string) *cobra.Command {
	client, asJSON := adminClient{url: adminDefault}, false
	cmd := &cobra.Command{
		Use: verb + " NAME…", Short: short, Long: long, Args: names,
		RunE: func(cmd *cobra.Command, args []string) error {
			var errs []error
			for _, name := range args {
				var h had
				if err := client.edit(cmd.Context(), asking{method: http.MethodPost, path: roomPath(name, verb)}, &h); err != nil {
					errs = append(errs, aboutRoom(name, err))
					continue
				}
				if asJSON {
					p.printJSON(h.all)
					continue
				}
				fmt.Fprintf(p.stdout, "room %s: %s%s\n", name, h.Mode, notYet(h.Pending))
			}
			return unlessStopped(cmd.Context(), errors.Join(errs...))
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object for each room")
	client.add(cmd)
	return cmd
}

// notYet is what to say of a change that no wave has brought into force.
func notYet(pending bool) string {
	if pending {
		return " (not in force yet: the node is in no wave just now; see anteroom status)"
	}
	return ""
}

func aboutRoom(name string, err error) error {
	var no *refusal
	switch {
	case !errors.As(err, &no):
		return err
	case no.Code == "room_unknown":
		return noRoom(name)
	case no.Code == "room_changed":
		return fmt.Errorf("room %s: somebody else has changed it meanwhile, and nothing was done; look at it and try again", name)
	}
	lines := strings.Split(err.Error(), "\n")
	return fmt.Errorf("room %s: %s", name, strings.Join(lines, "\nroom "+name+": "))
}

func (p *program) roomsDeleteCommand() *cobra.Command {
	client, asJSON := adminClient{url: adminDefault}, false
	cmd := &cobra.Command{
		Use:   "delete NAME…",
		Short: "Delete rooms",
		Long: `Delete rooms from the cluster. Who waits there loses the place, and the site is no
longer reached through the room's routes. A deleted room stays deleted when nodes
start again with a file that has it; rooms apply makes a new one.`,
		Args: names,
		RunE: func(cmd *cobra.Command, args []string) error {
			var errs []error
			for _, name := range args {
				var done struct {
					Pending bool `json:"pending"`
				}
				if err := client.edit(cmd.Context(), asking{method: http.MethodDelete, path: roomPath(name)}, &done); err != nil {
					errs = append(errs, aboutRoom(name, err))
					continue
				}
				if asJSON {
					p.printJSON(map[string]any{"room": name, "action": "deleted", "pending": done.Pending})
					continue
				}
				fmt.Fprintf(p.stdout, "room %s: deleted%s\n", name, notYet(done.Pending))
			}
			return unlessStopped(cmd.Context(), errors.Join(errs...))
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object for each room")
	client.add(cmd)
	return cmd
}

func (p *program) roomsReclaimCommand() *cobra.Command {
	client, asJSON := adminClient{url: adminDefault}, false
	cmd := &cobra.Command{
		Use:   "reclaim NODE",
		Short: "Say that a node will not return",
		Long: `Say that a node will not return. Rooms with on_partition share or stop wait for a
node that is gone, because it may be on the other side of a split, with slots of
its own. Be sure that it does not run any more: if it does, it may let people in
beyond the limit. Rooms with on_partition majority need no such word.`,
		Args: oneName("node"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var done admin.Reclaimed
			if err := client.edit(cmd.Context(), asking{method: http.MethodPost, path: "/v1/nodes/" + url.PathEscape(args[0]) + "/reclaim"}, &done); err != nil {
				return unlessStopped(cmd.Context(), fmt.Errorf("node %s: %w", args[0], err))
			}
			switch {
			case asJSON:
				p.printJSON(done)
			case len(done.Rooms) == 0:
				fmt.Fprintf(p.stdout, "node %s: no room waits for it\n", done.Node)
			default:
				fmt.Fprintf(p.stdout, "node %s: no longer waited for in %s\n", done.Node, strings.Join(done.Rooms, ", "))
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	client.add(cmd)
	return cmd
}
