package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"

	"github.com/anteroom/anteroom/internal/config"
)

// leftOut is a key that is not taken over.
type leftOut struct {
	Room string `json:"room"`
	Key  string `json:"key"`
	Why  string `json:"why"`
}

// importing is what `rooms import` reads.
type importing struct {
	rooms         string
	events, rules []string // room=file
	asJSON        bool
}

func (p *program) roomsImportCommand() *cobra.Command {
	var i importing
	cmd := &cobra.Command{
		Use:   "import FILE",
		Short: "Turn Cloudflare's waiting rooms into a file",
		Long: `Turn waiting rooms as Cloudflare's API has them into a file for rooms apply. FILE
is the answer to GET /zones/…/waiting_rooms, or one room of it; - is standard
input. The events and the rules of a room are answers of their own,
…/waiting_rooms/ID/events and …/rules. What could not be taken over is told on
stderr. Nothing is sent.`,
		Example: `  anteroom rooms import rooms.json > rooms.yaml
  anteroom rooms import rooms.json --events shop=events.json --rules shop=rules.json > rooms.yaml`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return wrongUsage(errors.New("name one FILE with rooms of Cloudflare's, or - for standard input"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			i.rooms = args[0]
			return p.roomsImport(cmd.InOrStdin(), i)
		},
	}
	cmd.Flags().StringArrayVar(&i.events, "events", nil, "the events of a room, as `ROOM=FILE`; may be repeated")
	cmd.Flags().StringArrayVar(&i.rules, "rules", nil, "the bypass rules of a room, as `ROOM=FILE`; may be repeated")
	cmd.Flags().BoolVar(&i.asJSON, "json", false, "print one JSON object")
	return cmd
}

// readJSON reads a file, or standard input for -.
func readJSON(stdin io.Reader, name string) ([]byte, error) {
	from := stdin
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer func() { _ = file.Close() }() // it was only read
		from = file
	}
	text, err := io.ReadAll(io.LimitReader(from, roomsFileMax))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return text, nil
}

func (p *program) roomsImport(stdin io.Reader, i importing) error {
	text, err := readJSON(stdin, i.rooms)
	if err != nil {
		return err
	}
	theirs, err := cloudflareRooms(text)
	if err != nil {
		return fmt.Errorf("%s: %w", i.rooms, err)
	}
	for key, files := range map[string][]string{"events": i.events, "rules": i.rules} {
		if err := addToRooms(theirs, stdin, key, files); err != nil {
			return err
		}
	}
	var rooms []yaml.MapSlice
	var left []leftOut
	for _, one := range theirs {
		room, without := fromCloudflare(one)
		rooms, left = append(rooms, room), append(left, without...)
	}
	out, err := yaml.MarshalWithOptions(yaml.MapSlice{{Key: "rooms", Value: rooms}}, yaml.IndentSequence(true), yaml.UseLiteralStyleIfMultiline(true))
	if err != nil {
		return err
	}
	f := config.ParseRooms(i.rooms, out)
	for _, e := range f.Errors {
		left = append(left, leftOut{Key: e.Key, Why: "taken over, but wrong here: " + e.Text})
	}
	if i.asJSON {
		p.printJSON(struct {
			Rooms   []config.Room `json:"rooms"`
			LeftOut []leftOut     `json:"left_out"`
		}{f.Config.Rooms, left})
		return nil
	}
	fmt.Fprint(p.stdout, string(out))
	for _, l := range left {
		fmt.Fprintln(p.stderr, strings.TrimPrefix(l.Room+": "+l.Key+": "+l.Why, ": "))
	}
	return nil
}

// cloudflareRooms finds the rooms in an answer of the API, in a list, or in what
// is one.
func cloudflareRooms(text []byte) ([]map[string]json.RawMessage, error) {
	var answer struct {
		Result json.RawMessage `json:"result"`
	}
	if json.Unmarshal(text, &answer) == nil && len(answer.Result) > 0 {
		text = answer.Result
	}
	var all []map[string]json.RawMessage
	if json.Unmarshal(text, &all) != nil {
		var one map[string]json.RawMessage
		if json.Unmarshal(text, &one) != nil {
			return nil, errors.New("no JSON of a waiting room; give what Cloudflare's API answers to GET /zones/…/waiting_rooms")
		}
		all = []map[string]json.RawMessage{one}
	}
	for _, one := range all {
		if one["name"] == nil || one["host"] == nil {
			return nil, errors.New("no waiting room of Cloudflare's: it has no name or no host")
		}
	}
	if len(all) == 0 {
		return nil, errors.New("there is no room in it")
	}
	return all, nil
}

// fromCloudflare takes over what it can of a room.
func fromCloudflare(theirs map[string]json.RawMessage) (room yaml.MapSlice, left []leftOut) {
	var name string
	_ = json.Unmarshal(theirs["name"], &name) // what is wrong with it is told below
	lack := func(key, why string) { left = append(left, leftOut{name, key, why}) }
	set := func(key string, v any) { room = append(room, yaml.MapItem{Key: key, Value: unixLines(v)}) }
	set("name", name)
	set("routes", cloudflareRoutes(theirs))
	for _, key := range []string{
		"total_active_users", "new_users_per_minute", "queueing_method", "queueing_status_code", "cookie_suffix", "default_template_language",
		"suspended", "cookie_attributes", "enabled_origin_commands", "custom_page_html",
	} {
		var v any
		if err := json.Unmarshal(theirs[key], &v); err == nil && v != nil && v != "" {
			here, why := mended(key, v)
			if set(key, here); why != "" {
				lack(key, why)
			}
		}
	}
	var minutes int
	if json.Unmarshal(theirs["session_duration"], &minutes) == nil && minutes > 0 {
		set("session_duration", fmt.Sprintf("%dm", minutes))
	}
	if string(theirs["disable_session_renewal"]) == "true" {
		set("session_renewal", false)
	}
	events, without := cloudflareEvents(name, theirs["events"])
	if left = append(left, without...); len(events) > 0 {
		set("events", events)
	}
	rules, without := cloudflareRules(name, theirs["rules"])
	if left = append(left, without...); len(rules) > 0 {
		set("bypass_rules", rules)
	}
	lack("origin", "Cloudflare knows the site by its DNS; add the site's address if anteroom is to pass visitors on, or leave it out behind another proxy")
	if string(theirs["queue_all"]) == "true" {
		lack("queue_all", "there it lets nobody in; here that is: anteroom rooms hold "+name)
	}
	told := []string{
		"name", "host", "path", "additional_routes", "total_active_users", "new_users_per_minute", "queueing_method", "queueing_status_code", "cookie_suffix",
		"default_template_language", "suspended", "cookie_attributes", "enabled_origin_commands", "custom_page_html", "session_duration",
		"disable_session_renewal", "queue_all", "events", "rules",
		"id", "created_on", "modified_on", // which say nothing of how people wait
	}
	var keys []string
	for key := range theirs {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		switch v := string(theirs[key]); {
		case slices.Contains(told, key) || v == "null" || v == `""`:
		case key == "json_response_enabled":
			if v == "true" {
				lack(key, "not needed: who asks for JSON gets it, with 429 where queueing_status_code is below")
			}
		case key == "description":
			lack(key, "rooms have none here; keep it as a comment: "+v)
		case strings.HasPrefix(key, "turnstile_"):
			if v != `"off"` {
				lack(key, "there is no such check here")
			}
		case strings.HasPrefix(key, "next_event_"):
			if theirs["events"] == nil && key == "next_event_start_time" {
				lack(key, "events are another answer of the API, …/waiting_rooms/ID/events; add them with --events "+name+"=FILE")
			}
		default:
			lack(key, "not known here")
		}
	}
	return room, left
}

func cloudflareRoutes(theirs map[string]json.RawMessage) []yaml.MapSlice {
	type route struct{ Host, Path string }
	var first route
	var all []route
	_ = json.Unmarshal(theirs["host"], &first.Host) // a wrong one is told by the check of what comes out
	_ = json.Unmarshal(theirs["path"], &first.Path)
	_ = json.Unmarshal(theirs["additional_routes"], &all)
	var routes []yaml.MapSlice
	for _, r := range append([]route{first}, all...) {
		if r.Path == "" {
			r.Path = "/"
		}
		routes = append(routes, yaml.MapSlice{{Key: "host", Value: r.Host}, {Key: "path", Value: r.Path}})
	}
	return routes
}
