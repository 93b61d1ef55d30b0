package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"github.com/anteroom/anteroom/eviction"
)

// RoomOptions is what stands around a room that is read by itself.
type RoomOptions struct {
	Name          string   // of a text that has none
	Prefix        string   // of the nodes; no route may be below it
	CountryHeader string   // of the nodes
	Others        []Room   // of the cluster; none may have the same route or cookie
	Ignore        []string // keys that may stand in the text and say nothing
}

// depthMax bounds objects within objects. A room has four.
const depthMax = 16

// ParseRoom reads one room from a JSON object, with the keys of an item of rooms
// in a file and checked like one. The problems have no file and no line, and keys
// as in bypass_rules[0].expression. What a room may not have that is sent to a
// running cluster are pages of its own: those are in the nodes' files.
func ParseRoom(text []byte, o RoomOptions) (Room, []Problem) {
	text, err := plainJSON(text)
	if err != nil {
		return Room{}, []Problem{{Text: err.Error()}}
	}
	f := newFile("", "node")
	f.Config.Prefix, f.Config.CountryHeader, f.others = o.Prefix, o.CountryHeader, o.Others
	const key = "rooms[0]"
	if d, body, ok := f.document(text); ok {
		f.Config.Rooms = []Room{DefaultRoom()}
		d.value(key, without(body, o.Ignore), reflect.ValueOf(&f.Config.Rooms[0]).Elem())
		if !f.given(key+".name") && o.Name != "" {
			f.Config.Rooms[0].Name, f.places[key+".name"] = o.Name, place{}
		}
		f.checkRooms()
		f.checkPageless(key)
	}
	for i := range f.Errors {
		p := &f.Errors[i]
		p.File, p.Line, p.Key = "", 0, strings.TrimPrefix(strings.TrimPrefix(p.Key, key), ".")
	}
	if len(f.Errors) > 0 {
		return Room{}, f.Errors
	}
	return f.Config.Rooms[0], nil
}

// plainJSON writes a JSON object in the way that is YAML too: JSON has escapes
// that YAML reads otherwise.
func plainJSON(text []byte) ([]byte, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	for depth := 0; ; {
		t, err := d.Token()
		switch {
		case errors.Is(err, io.EOF):
			return rewriteJSON(text)
		case err != nil:
			return nil, errors.New("not JSON: " + err.Error() + "; send one object with the keys of a room")
		}
		switch t {
		case json.Delim('{'), json.Delim('['):
			depth++
			if depth > depthMax {
				return nil, errors.New("too many objects within objects; send one with the keys of a room")
			}
		case json.Delim('}'), json.Delim(']'):
			depth--
		default:
		}
	}
}

func rewriteJSON(text []byte) ([]byte, error) {
	var object map[string]any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&object); err != nil || object == nil || d.More() {
		return nil, errors.New("not one JSON object; send one with the keys of a room")
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(object)
	return b.Bytes(), err
}

// without leaves out keys of an object.
func without(n ast.Node, keys []string) ast.Node {
	if m, ok := n.(*ast.MappingNode); ok {
		m.Values = slices.DeleteFunc(m.Values, func(v *ast.MappingValueNode) bool { return slices.Contains(keys, v.Key.GetToken().Value) })
	}
	return n
}

func (f *File) checkPageless(key string) {
	for _, name := range []string{"logo", "favicon"} {
		if r := f.Config.Rooms[0]; f.given(key+"."+name) && r.Logo+r.Favicon != "" {
			f.fault(key+"."+name, "a picture belongs in the files of the nodes, which read it at SIGHUP; leave it out: the room keeps the one that it has")
		}
	}
	for _, name := range []string{"custom_page_html", "custom_page_file"} {
		if r := f.Config.Rooms[0]; f.given(key+"."+name) && r.CustomPageHTML+string(r.CustomPageFile) != "" {
			f.fault(key+"."+name, "a page of your own belongs in the files of the nodes, which read it at SIGHUP; leave it out: the room keeps the page that it has")
		}
		for i, e := range f.Config.Rooms[0].Events {
			if at := key + ".events" + index(i) + "." + name; f.given(at) && e.CustomPageHTML+string(e.CustomPageFile) != "" {
				f.fault(at, "a page of your own belongs in the files of the nodes, which read it at SIGHUP; leave it out")
			}
		}
	}
}

// checkOthers compares a room with those of the cluster that are not in the file.
func (f *File) checkOthers(key string, r Room) {
	for _, o := range f.others {
		if o.suffix() == r.suffix() && r.Name != "" {
			f.fault(key+".cookie_suffix", "%q is that of the room %s too, so their cookies would replace each other; give each room its own", r.suffix(), o.Name)
		}
	}
}

// ParseRooms reads the rooms of a text: one room, a list of them, or a whole
// configuration file, of which only the rooms are checked. Names of files are
// kept as they are.
func ParseRooms(name string, text []byte) *File {
	f := newFile(name, "node")
	d, body, ok := f.document(text)
	if !ok {
		return f
	}
	switch n := body.(type) {
	case nil:
	case *ast.SequenceNode:
		d.value("rooms", n, reflect.ValueOf(&f.Config.Rooms).Elem())
	default:
		if !hasKey(n, "name") || hasKey(n, "rooms") {
			d.value("", n, reflect.ValueOf(&f.Config).Elem())
			break
		}
		f.Config.Rooms = []Room{DefaultRoom()}
		f.places["rooms[0]"] = d.placeOf(n)
		d.value("rooms[0]", n, reflect.ValueOf(&f.Config.Rooms[0]).Elem())
	}
	f.checkRooms()
	f.sort()
	return f
}

func hasKey(n ast.Node, key string) bool {
	is := func(v *ast.MappingValueNode) bool { return v.Key.GetToken().Value == key }
	switch n := n.(type) {
	case *ast.MappingNode:
		return slices.ContainsFunc(n.Values, is)
	case *ast.MappingValueNode:
		return is(n)
	default:
		return false
	}
}

// Change is a key of a room that is not what it was. The values are JSON; a long
// one is cut short.
type Change struct {
	Key  string `json:"key"`
	From string `json:"from"`
	To   string `json:"to"`
}

// Changes lists what differs between two rooms, in the order of the keys in
// docs/anteroom.yaml.
func Changes(from, to Room) []Change {
	changes := []Change{}
	a, b := reflect.ValueOf(from), reflect.ValueOf(to)
	for i, name := range tags(a.Type()) {
		if x, y := shown(a.Field(i)), shown(b.Field(i)); x != y {
			changes = append(changes, Change{name, cutShort(x), cutShort(y)})
		}
	}
	return changes
}

func shown(v reflect.Value) string {
	if v.Kind() == reflect.Slice && v.Len() == 0 {
		return "[]"
	}
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v.Interface()) // plain values only
	return strings.TrimSpace(b.String())
}

// shownMax is how much of a value a difference shows.
const shownMax = 300

func cutShort(text string) string {
	if len(text) > shownMax {
		return strings.ToValidUTF8(text[:shownMax], "") + "…"
	}
	return text
}

// staysHere reports whether a room's key does not travel: pages and pictures are
// too large for that, and each node has them in its file.
func staysHere(key string) bool {
	return slices.Contains([]string{"custom_page_html", "custom_page_file", "logo", "favicon"}, key)
}

// Rest returns the keys of r, as JSON, that differ from those of base: what a
// room that was put together from other sources lacks. Pages of its own are no
// part of it.
func Rest(base, r Room) map[string]json.RawMessage {
	var rest map[string]json.RawMessage
	a, b := reflect.ValueOf(base), reflect.ValueOf(r)
	for i, name := range tags(a.Type()) {
		x, y := shown(a.Field(i)), shown(b.Field(i))
		if x == y || staysHere(name) {
			continue
		}
		if rest == nil {
			rest = map[string]json.RawMessage{}
		}
		rest[name] = json.RawMessage(y)
	}
	return rest
}

// With returns r with the keys of a Rest.
func (r Room) With(rest map[string]json.RawMessage) (Room, error) {
	for name, v := range fieldsOf(reflect.ValueOf(&r).Elem()) {
		text, ok := rest[name]
		if !ok {
			continue
		}
		v.SetZero() // else a list would keep what lies beyond its new end
		if err := json.Unmarshal(text, v.Addr().Interface()); err != nil {
			return r, err
		}
	}
	return r, nil
}

// JSON is the room as an object with all its keys, but for pages of its own.
func (r Room) JSON() []byte {
	all := map[string]json.RawMessage{}
	v := reflect.ValueOf(r)
	for i, name := range tags(v.Type()) {
		if !staysHere(name) {
			all[name] = json.RawMessage(shown(v.Field(i)))
		}
	}
	b, _ := json.Marshal(all) // of JSON
	return b
}

// FromEviction returns the room of which the core knows as much as Eviction
// tells it. All else has its default.
func FromEviction(e eviction.Room) Room {
	r := DefaultRoom()
	r.Name, r.TotalActiveUsers, r.NewUsersPerMinute = e.Name, e.Target, e.NewPerMinute
	r.SessionDuration, r.SessionRenewal, r.SessionMax = Duration(e.Session), !e.NoRenewal, Duration(e.SessionMax)
	r.QueueingMethod, r.QueueAll, r.QueueMax = e.Method.String(), e.QueueAll, e.QueueMax
	r.RefreshInterval, r.TicketTTL, r.ClaimWindow = Duration(e.Refresh), Duration(e.TicketTTL), Duration(e.ClaimWindow)
	r.ClaimsMax = e.WithDefaults().ClaimsMax
	r.Algorithm, r.OnPartition, r.SurvivorAfter = e.Algorithm.String(), policies()[e.OnPartition], Patience(e.Survivor)
	return r
}

// YAML is the room as an item of a file has it, but for pages of its own.
func (r Room) YAML() string {
	r.CustomPageHTML, r.CustomPageFile, r.Logo, r.Favicon = "", "", "", ""
	text, err := yaml.MarshalWithOptions(r, yaml.IndentSequence(true))
	if err != nil {
		panic("config: " + err.Error()) // plain values only
	}
	var b strings.Builder
	for line := range strings.Lines(string(text)) {
		if name, _, _ := strings.Cut(line, ":"); !staysHere(name) {
			b.WriteString(line)
		}
	}
	return b.String()
}
