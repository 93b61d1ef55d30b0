package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/anteroom/anteroom/internal/config"
)

// addToRooms puts what other answers of Cloudflare's API say into the rooms that
// they are about. Those answers do not name the room.
func addToRooms(rooms []map[string]json.RawMessage, stdin io.Reader, key string, files []string) error {
	for _, given := range files {
		name, file, ok := strings.Cut(given, "=")
		if !ok || name == "" || file == "" {
			return wrongUsage(fmt.Errorf("--%s %s: give the room and a file, such as shop=%s.json", key, given, key))
		}
		at := slices.IndexFunc(rooms, func(r map[string]json.RawMessage) bool {
			var is string
			return json.Unmarshal(r["name"], &is) == nil && is == name
		})
		if at < 0 {
			return fmt.Errorf("--%s %s: there is no room %q among the others", key, given, name)
		}
		text, err := readJSON(stdin, file)
		if err != nil {
			return err
		}
		if rooms[at][key], err = listOf(text); err != nil {
			return fmt.Errorf("%s: %w; give what Cloudflare's API answers to GET /zones/…/waiting_rooms/ID/%s", file, err, key)
		}
	}
	return nil
}

// listOf finds the list in an answer of the API, or in what is one.
func listOf(text []byte) (json.RawMessage, error) {
	var answer struct {
		Result json.RawMessage `json:"result"`
	}
	if json.Unmarshal(text, &answer) == nil && len(answer.Result) > 0 {
		text = answer.Result
	}
	var all []map[string]json.RawMessage
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, errors.New("there is no list in it")
	}
	return text, nil
}

// cloudflareEvents takes over what it can of a list of events.
func cloudflareEvents(room string, list json.RawMessage) (events []yaml.MapSlice, left []leftOut) {
	var all []map[string]json.RawMessage
	_ = json.Unmarshal(list, &all) // a list, if there is one
	for i, theirs := range all {
		var event yaml.MapSlice
		for _, key := range []string{
			"name", "description", "prequeue_start_time", "event_start_time", "event_end_time", "shuffle_at_event_start", "suspended", "total_active_users",
			"new_users_per_minute", "session_duration", "disable_session_renewal", "queueing_method", "custom_page_html",
		} {
			var v any
			if json.Unmarshal(theirs[key], &v) != nil || v == nil || v == "" {
				continue
			}
			if key == "session_duration" {
				v = fmt.Sprintf("%vm", v)
			}
			v, why := mended(key, v)
			if why != "" {
				left = append(left, leftOut{room, fmt.Sprintf("events[%d].%s", i, key), why})
			}
			event = append(event, yaml.MapItem{Key: key, Value: unixLines(v)})
			delete(theirs, key)
		}
		events = append(events, event)
		left = append(left, whatIsLeft(room, fmt.Sprintf("events[%d]", i), theirs)...)
	}
	return events, left
}

// cloudflareRules takes over a list of rules.
func cloudflareRules(room string, list json.RawMessage) (rules []yaml.MapSlice, left []leftOut) {
	var all []map[string]json.RawMessage
	_ = json.Unmarshal(list, &all) // a list, if there is one
	for i, theirs := range all {
		var rule yaml.MapSlice
		for _, key := range []string{"description", "expression", "action", "enabled"} {
			var v any
			if json.Unmarshal(theirs[key], &v) == nil && v != nil && v != "" {
				rule = append(rule, yaml.MapItem{Key: key, Value: unixLines(v)})
				delete(theirs, key)
			}
		}
		rules = append(rules, rule)
		left = append(left, whatIsLeft(room, fmt.Sprintf("rules[%d]", i), theirs)...)
	}
	return rules, left
}

// unixLines is a value with the ends of its lines as YAML writes them: texts that
// were typed into a browser have others.
func unixLines(v any) any {
	if text, ok := v.(string); ok {
		return strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text)
	}
	return v
}

// mended is a value of JSON in the words that it has here, and why it is another; ""
// if it is as it was. Numbers are whole.
func mended(key string, v any) (here any, why string) {
	if n, ok := v.(float64); ok {
		return int(n), ""
	}
	text, _ := v.(string)
	switch low := strings.ToLower(text); {
	case key == "queueing_method" && low != text:
		return low, fmt.Sprintf("%s: taken over as %s", text, low)
	case key == "default_template_language" && !config.Speaks(text):
		return config.Languages()[0], fmt.Sprintf("the waiting page has no words in %s: taken over as %s; a page of your own may have them", text, config.Languages()[0])
	}
	return v, ""
}

// whatIsLeft tells of keys that say something and were not taken over.
func whatIsLeft(room, at string, theirs map[string]json.RawMessage) (left []leftOut) {
	var keys []string
	for key := range theirs {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		switch v := string(theirs[key]); {
		case v == "null" || v == `""` || v == `"off"` || slices.Contains([]string{"id", "version", "created_on", "modified_on", "last_updated"}, key):
		case strings.HasPrefix(key, "turnstile_"):
			left = append(left, leftOut{room, at + "." + key, "there is no such check here"})
		default:
			left = append(left, leftOut{room, at + "." + key, "not known here"})
		}
	}
	return left
}
