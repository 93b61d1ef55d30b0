package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/anteroom/anteroom/gateway/admin"
)

func (p *program) notifyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "notify",
		Short: "See who is told what has happened, and whether that arrives",
		Args:  noCommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(p.notifyListCommand(), p.notifyTestCommand())
	return cmd
}

func (p *program) notifyListCommand() *cobra.Command {
	var asJSON bool
	client := adminClient{url: adminDefault}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List who is told, and how that goes at a node",
		Args:  noCommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			list, err := client.receivers(cmd.Context())
			if err != nil {
				return unlessStopped(cmd.Context(), err)
			}
			for _, r := range list.Receivers {
				p.showReceiver(&r, asJSON)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON, one object a line")
	client.add(cmd)
	return cmd
}

func (p *program) notifyTestCommand() *cobra.Command {
	var asJSON bool
	client := adminClient{url: adminDefault}
	cmd := &cobra.Command{
		Use:   "test [NAME...]",
		Short: "Send a test to who is told, and say what came of it",
		Long: `Send a test from a node to those of its notifications that are named, or to all
of them, and say what came of each. It is signed as all others are; its type is
test. Exit code 1 if one was not delivered.`,
		Example: `  anteroom notify test
  anteroom notify test pager --admin http://10.0.0.2:9090`,
		RunE: func(cmd *cobra.Command, names []string) error {
			return unlessStopped(cmd.Context(), p.testReceivers(cmd.Context(), &client, names, asJSON))
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON, one object a line")
	client.add(cmd)
	return cmd
}

func (c *adminClient) receivers(ctx context.Context) (list admin.ReceiverList, err error) {
	err = c.edit(ctx, asking{method: "GET", path: "/v1/notifications"}, &list)
	return list, err
}

func (p *program) showReceiver(r *admin.Receiver, asJSON bool) {
	if asJSON {
		line, _ := json.Marshal(r) // strings, times and numbers
		fmt.Fprintf(p.stdout, "%s\n", line)
		return
	}
	some := func(list []string) string {
		if len(list) == 0 {
			return "all"
		}
		return strings.Join(list, ", ")
	}
	last := "nothing sent by this node yet"
	if r.LastAt != nil {
		last = "the last try delivered it"
		if r.LastErr != "" {
			last = "the last try failed: " + r.LastErr
		}
	}
	fmt.Fprintf(p.stdout, "%s (%s): events %s; rooms %s; %d waiting; %s\n", r.Name, r.Kind, some(r.Events), some(r.Rooms), r.Waiting, last)
}

func (p *program) testReceivers(ctx context.Context, c *adminClient, names []string, asJSON bool) error {
	list, err := c.receivers(ctx)
	if err != nil {
		return err
	}
	var known, failed []string
	for _, r := range list.Receivers {
		known = append(known, r.Name)
	}
	for _, n := range names {
		if !slices.Contains(known, n) {
			return fmt.Errorf("%q: the node has no notifications of that name; there are %s", n, strings.Join(known, ", "))
		}
	}
	if len(known) == 0 {
		return fmt.Errorf("the node tells nobody; list somebody under notifications in its configuration")
	}
	if len(names) == 0 {
		names = known
	}
	for _, n := range names {
		var sent admin.TestSent
		if err := c.edit(ctx, asking{method: "POST", path: "/v1/notifications/" + url.PathEscape(n) + "/test"}, &sent); err != nil {
			return err
		}
		if !sent.Delivered {
			failed = append(failed, n)
		}
		p.showTest(&sent, asJSON)
	}
	if len(failed) > 0 {
		return fmt.Errorf("not delivered: %s", strings.Join(failed, ", "))
	}
	return nil
}

func (p *program) showTest(t *admin.TestSent, asJSON bool) {
	switch {
	case asJSON:
		line, _ := json.Marshal(t) // strings and a finite number
		fmt.Fprintf(p.stdout, "%s\n", line)
	case t.Delivered:
		fmt.Fprintf(p.stdout, "%s: delivered in %.3f s\n", t.Receiver, t.Seconds)
	default:
		fmt.Fprintf(p.stdout, "%s: %s\n", t.Receiver, t.Error)
	}
}
