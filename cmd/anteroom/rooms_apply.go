package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/spf13/cobra"

	"github.com/anteroom/anteroom/internal/brand"
	"github.com/anteroom/anteroom/internal/config"
)

// roomsFileMax bounds a file of rooms, as one of a node is bounded.
const roomsFileMax = 4 << 20

func (p *program) roomsApplyCommand() *cobra.Command {
	client := adminClient{url: adminDefault}
	var a applying
	cmd := &cobra.Command{
		Use:   "apply",
		Short: "Make rooms what a file says",
		Long: `Make rooms of the cluster what a file says, and print what that changes. The file
has one room, a list of rooms, or is a whole configuration file. Rooms that are
not in it stay as they are. What is not said of a room has its default, as in the
file of a node. Pages of a room's own do not travel: they stay with the nodes'
files. For a room that has one in FILE itself, say so with --without-pages.`,
		Example: `  anteroom rooms apply -f anteroom.yaml --dry-run
  anteroom rooms get shop | sed 's/^total_active_users:.*/total_active_users: 300/' | anteroom rooms apply -f -`,
		Args: noCommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			rooms, err := a.read(cmd.InOrStdin())
			if err == nil && !a.withoutPages {
				err = pageless(rooms)
			}
			if err != nil {
				return err
			}
			var errs []error
			for _, r := range rooms {
				done, err := a.apply(cmd.Context(), &client, r)
				if err != nil {
					errs = append(errs, err)
					continue
				}
				p.printApplied(done, a.asJSON, a.dryRun)
			}
			return unlessStopped(cmd.Context(), errors.Join(errs...))
		},
	}
	cmd.Flags().StringVarP(&a.file, "file", "f", "", "the `FILE`; - for standard input")
	cmd.Flags().BoolVar(&a.dryRun, "dry-run", false, "print what would change, and change nothing")
	cmd.Flags().BoolVar(&a.asJSON, "json", false, "print one JSON object for each room")
	cmd.Flags().BoolVar(&a.withoutPages, "without-pages", false, "leave out the pages that are in the file itself: the nodes have them")
	client.add(cmd)
	return cmd
}

type applying struct {
	file                         string
	dryRun, asJSON, withoutPages bool
}

// pageless reports the pages that are in the text of rooms: they would be lost.
// One that is named by custom_page_file is a file of a node's in any case.
func pageless(rooms []config.Room) error {
	var errs []error
	lost := func(room, key string) {
		errs = append(errs, fmt.Errorf("room %s: %s: a page does not travel through the cluster; put it into the file of every node, as custom_page_html or custom_page_file, and say --without-pages here", room, key))
	}
	for _, r := range rooms {
		if r.CustomPageHTML != "" {
			lost(r.Name, "custom_page_html")
		}
		for _, p := range []struct{ key, picture string }{{"logo", string(r.Logo)}, {"favicon", string(r.Favicon)}} {
			if brand.IsDataURL(p.picture) {
				errs = append(errs, fmt.Errorf("room %s: %s: a picture does not travel through the cluster; put it into the file of every node, and say --without-pages here", r.Name, p.key))
			}
		}
		for i, e := range r.Events {
			if e.CustomPageHTML != "" {
				lost(r.Name, fmt.Sprintf("events[%d].custom_page_html", i))
			}
		}
	}
	return errors.Join(errs...)
}

// applied is what became of one room.
type applied struct {
	Room    string          `json:"room"`
	Action  string          `json:"action"` // created, changed or unchanged
	DryRun  bool            `json:"dry_run,omitempty"`
	Pending bool            `json:"pending,omitempty"`
	ETag    string          `json:"etag,omitempty"`
	Changes []config.Change `json:"changes"`
}

// read returns the rooms of the file, if there is nothing wrong with any.
func (a *applying) read(stdin io.Reader) ([]config.Room, error) {
	if a.file == "" {
		return nil, wrongUsage(errors.New("-f is missing; name a file with rooms, or - for standard input"))
	}
	name, from := a.file, stdin
	if a.file == "-" {
		name = "standard input"
	} else {
		file, err := os.Open(a.file)
		if err != nil {
			return nil, err
		}
		defer func() { _ = file.Close() }() // it was only read
		from = file
	}
	text, err := io.ReadAll(io.LimitReader(from, roomsFileMax+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", name, err)
	case len(text) > roomsFileMax:
		return nil, fmt.Errorf("%s: longer than %d MiB; give a file with rooms", name, roomsFileMax>>20)
	}
	f := config.ParseRooms(name, text)
	if err := f.Err(); err != nil {
		return nil, err
	}
	if len(f.Config.Rooms) == 0 {
		return nil, fmt.Errorf("%s: there is no room in it; give one with its name, a list, or a configuration file", name)
	}
	return f.Config.Rooms, nil
}

// apply makes one room what it should be. It is put on the condition that nobody
// else has changed it since it was compared.
func (a *applying) apply(ctx context.Context, client *adminClient, want config.Room) (applied, error) {
	want.CustomPageHTML, want.CustomPageFile, want.Logo, want.Favicon = "", "", "", ""
	want = want.WithoutEventPages()
	now, found, err := client.room(ctx, want.Name)
	if err != nil {
		return applied{}, aboutRoom(want.Name, err)
	}
	done := applied{Room: want.Name, Action: "changed", DryRun: a.dryRun, ETag: now.ETag}
	header := map[string]string{"Content-Type": "application/json", "If-Match": now.ETag}
	if !found {
		now.Room, done.Action = config.DefaultRoom(), "created"
		delete(header, "If-Match")
		header["If-None-Match"] = "*"
	}
	done.Changes = config.Changes(now.Room, want)
	if found && len(done.Changes) == 0 {
		done.Action = "unchanged"
	}
	if a.dryRun || done.Action == "unchanged" {
		return done, nil
	}
	var h had
	err = client.edit(ctx, asking{method: http.MethodPut, path: roomPath(want.Name), header: header, body: want.JSON()}, &h)
	if err != nil {
		return applied{}, aboutRoom(want.Name, err)
	}
	done.Pending, done.ETag = h.Pending, h.ETag
	return done, nil
}

func (p *program) printApplied(a applied, asJSON, dryRun bool) {
	if asJSON {
		p.printJSON(a)
		return
	}
	would := ""
	if dryRun && a.Action != "unchanged" {
		would = "would be "
	}
	fmt.Fprintf(p.stdout, "room %s: %s%s%s\n", a.Room, would, a.Action, notYet(a.Pending))
	for _, c := range a.Changes {
		if a.Action == "created" {
			fmt.Fprintf(p.stdout, "  %s: %s\n", c.Key, c.To)
			continue
		}
		fmt.Fprintf(p.stdout, "  %s: %s -> %s\n", c.Key, c.From, c.To)
	}
}
