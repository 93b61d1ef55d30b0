package config

import (
	"bytes"
	"encoding"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/anteroom/anteroom/internal/brand"
)

// decoder fills f.Config from the syntax tree of the file. The library's own
// decoder stops at the first mistake; this one notes it and goes on.
type decoder struct {
	f       *File
	anchors map[string]ast.Node
	aliases int // being followed just now
}

// aliasDepth bounds aliases within aliases, which may go in circles.
const aliasDepth = 4

// decode reads text into f.Config, over what is there. It reports whether the
// text is YAML at all.
func (f *File) decode(text []byte) bool {
	d, body, ok := f.document(text)
	if body != nil {
		d.value("", body, reflect.ValueOf(&f.Config).Elem())
	}
	return ok
}

// document parses text; the body of an empty one is nil.
func (f *File) document(text []byte) (d *decoder, body ast.Node, ok bool) {
	text = bytes.TrimPrefix(text, []byte("\ufeff")) // some editors begin a file with it
	tree, err := parser.ParseBytes(text, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		f.Errors = append(f.Errors, f.syntax(err))
		return nil, nil, false
	}
	for _, doc := range tree.Docs {
		switch {
		case doc.Body == nil:
		case body == nil:
			body = doc.Body
		default:
			f.Errors = append(f.Errors, Problem{File: f.Name, Line: line(doc.Body), Text: "a second document; give one, without --- between its parts"})
		}
	}
	d = &decoder{f: f, anchors: map[string]ast.Node{}}
	if body != nil {
		ast.Walk(anchorFinder(d.anchors), body)
	}
	return d, body, true
}

// syntax is err without the excerpt of the file, which may have a secret in it.
func (f *File) syntax(err error) Problem {
	p := Problem{File: f.Name, Text: "not YAML; the rest is checked once this is right"}
	var syntax *yaml.SyntaxError
	if errors.As(err, &syntax) {
		p.Line = syntax.Token.Position.Line
		p.Text = "not YAML: " + syntax.Message + "; the rest is checked once this is right"
	}
	return p
}

type anchorFinder map[string]ast.Node

func (a anchorFinder) Visit(n ast.Node) ast.Visitor {
	if anchor, ok := n.(*ast.AnchorNode); ok {
		a[anchor.Name.GetToken().Value] = anchor.Value
	}
	return a
}

func line(n ast.Node) int {
	if t := n.GetToken(); t != nil && t.Position != nil {
		return t.Position.Line
	}
	return 0
}

// value decodes n into to, which key names.
func (d *decoder) value(key string, n ast.Node, to reflect.Value) {
	before := d.aliases
	defer func() { d.aliases = before }()
	n, ok := d.resolve(key, n)
	if !ok {
		d.f.unread[key] = true
		return
	}
	if _, null := n.(*ast.NullNode); null {
		return // as if the key were not there
	}
	switch {
	case isLeaf(to):
		d.leaf(key, n, to)
	case to.Type() == reflect.TypeFor[[]Secret]() && !isSequence(n):
		d.single(key, n, to)
	case to.Kind() == reflect.Struct:
		d.mapping(key, n, to)
	case to.Kind() == reflect.Slice:
		d.list(key, n, to)
	default:
		panic(fmt.Sprintf("config: no way to decode a %v", to.Type()))
	}
}

// resolve looks through anchors, aliases and tags.
func (d *decoder) resolve(key string, n ast.Node) (ast.Node, bool) {
	for d.aliases <= aliasDepth {
		switch at := n.(type) {
		case *ast.AnchorNode:
			n = at.Value
		case *ast.TagNode:
			n = at.Value
		case *ast.AliasNode:
			d.aliases++
			name := at.Value.GetToken().Value
			if n = d.anchors[name]; n == nil {
				d.wrongAt(at, key, "*%s: there is no &%s in the file", name, name)
				return nil, false
			}
		default:
			return n, n != nil
		}
	}
	d.wrongAt(n, key, "aliases within aliases, or one that leads to itself; write the value out")
	return nil, false
}

// mapping decodes the keys of a struct.
func (d *decoder) mapping(key string, n ast.Node, to reflect.Value) {
	var pairs []*ast.MappingValueNode
	switch n := n.(type) {
	case *ast.MappingNode:
		pairs = n.Values
	case *ast.MappingValueNode:
		pairs = []*ast.MappingValueNode{n}
	default:
		d.f.unread[key] = true
		d.wrongAt(n, key, "%s; give keys with values: %s", describe(n), strings.Join(tags(to.Type()), ", "))
		return
	}
	fields := fieldsOf(to)
	for _, pair := range pairs {
		if _, merge := pair.Key.(*ast.MergeKeyNode); merge {
			d.merge(key, pair.Value, to)
		}
	}
	seen := map[string]int{}
	for _, pair := range pairs {
		if _, merge := pair.Key.(*ast.MergeKeyNode); merge {
			continue
		}
		name := pair.Key.GetToken().Value
		at := join(key, name)
		field, ok := fields[name]
		if !ok {
			d.wrongAt(pair.Key, at, "unknown key%s", nearest(name, tags(to.Type())))
			continue
		}
		if first := seen[name]; first > 0 {
			d.wrongAt(pair.Key, at, "given twice; line %d has it already", first)
			continue
		}
		seen[name] = line(pair.Key)
		if _, null := pair.Value.(*ast.NullNode); !null {
			d.f.places[at] = d.placeOf(pair.Key)
		}
		d.value(at, pair.Value, field)
	}
}

// merge decodes what << brings, which the keys beside it override.
func (d *decoder) merge(key string, n ast.Node, to reflect.Value) {
	before := d.aliases
	n, ok := d.resolve(key, n)
	if list, isList := n.(*ast.SequenceNode); ok && isList {
		for _, item := range slices.Backward(list.Values) { // the first one wins
			d.merge(key, item, to)
		}
	} else if ok {
		d.mapping(key, n, to)
	}
	d.aliases = before
}

func isSequence(n ast.Node) bool { _, ok := n.(*ast.SequenceNode); return ok }

// single decodes one secret where a list may stand.
func (d *decoder) single(key string, n ast.Node, to reflect.Value) {
	var one Secret
	d.leaf(key, n, reflect.ValueOf(&one).Elem())
	to.Set(reflect.ValueOf(secrets(one.Reveal())))
}

// list decodes the items of a slice.
func (d *decoder) list(key string, n ast.Node, to reflect.Value) {
	seq, ok := n.(*ast.SequenceNode)
	if !ok {
		d.wrongAt(n, key, "%s; give a list: [a, b], or a line with - for each", describe(n))
		return
	}
	to.Set(reflect.MakeSlice(to.Type(), len(seq.Values), len(seq.Values)))
	for i, item := range seq.Values {
		at := key + index(i)
		d.f.places[at] = d.placeOf(item)
		setDefaults(to.Index(i))
		if _, null := item.(*ast.NullNode); null {
			d.f.unread[at] = true
			d.wrongAt(item, at, "empty; give it a value or remove it")
			continue
		}
		d.value(at, item, to.Index(i))
	}
}

func setDefaults(to reflect.Value) {
	switch p := to.Addr().Interface().(type) {
	case *Room:
		*p = DefaultRoom()
	case *Route:
		*p = DefaultRoute()
	case *BypassRule:
		*p = DefaultBypassRule()
	case *Queue:
		*p = DefaultQueue()
	case *Notification:
		*p = DefaultNotification()
	case *HealthCheck:
		*p = DefaultHealthCheck()
	}
}

// leaf decodes a single value.
func (d *decoder) leaf(key string, n ast.Node, to reflect.Value) {
	text, ok := "", true
	quoted := false
	switch n := n.(type) {
	case *ast.StringNode:
		text = n.Value
		quoted = n.Token.Type == token.DoubleQuoteType || n.Token.Type == token.SingleQuoteType
	case *ast.LiteralNode:
		text, quoted = strings.TrimRight(n.Value.Value, "\n"), true
	case *ast.IntegerNode, *ast.BoolNode:
		text = n.GetToken().Value
	case *ast.MappingNode:
		text, ok = unsplit(n)
		quoted = ok
	default:
		ok = false
	}
	switch to.Addr().Interface().(type) {
	case *string, *Path, *Secret:
		if _, isText := n.(*ast.StringNode); ok && !isText && !quoted {
			d.wrongAt(n, key, "%s; put it in quotes if it is meant as text", describe(n))
			return
		}
	case *int, *bool:
		ok = ok && !quoted
	}
	if !ok {
		d.wrongAt(n, key, "%s; %s", describe(n), wanted(to))
		return
	}
	if err := setText(to, text); err != nil {
		d.wrongAt(n, key, "%v", err)
		return
	}
	if p, isPath := to.Addr().Interface().(*Path); isPath && *p != "" && !filepath.IsAbs(text) && !brand.IsDataURL(text) {
		*p = Path(filepath.Join(filepath.Dir(d.f.Name), text))
	}
}

func (d *decoder) placeOf(n ast.Node) place {
	return place{line: line(n), shared: d.aliases > 0}
}

// unsplit undoes a slip of the parser, which takes the host:port of
// {join: [host:port]} for a key with a value: there is no space after the colon.
func unsplit(n *ast.MappingNode) (string, bool) {
	if len(n.Values) != 1 || n.Start == nil || n.Start.Type == token.MappingStartType {
		return "", false
	}
	pair := n.Values[0]
	colon, value := pair.Start, pair.Value.GetToken()
	if colon == nil || value == nil || value.Position.Line != colon.Position.Line || value.Position.Column != colon.Position.Column+1 {
		return "", false
	}
	return pair.Key.GetToken().Value + ":" + value.Value, true
}

// wrongAt notes an error on the line of n.
func (d *decoder) wrongAt(n ast.Node, key, format string, args ...any) {
	d.f.note(Problem{File: d.f.Name, Line: line(n), Key: key, Text: fmt.Sprintf(format, args...)}, d.aliases > 0)
}

// describe says what n is, without its value: that may be a secret.
func describe(n ast.Node) string {
	switch n.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		return "has keys below it"
	case *ast.SequenceNode:
		return "is a list"
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		return "is a number"
	case *ast.BoolNode:
		return "is true or false"
	case *ast.NullNode:
		return "is empty"
	}
	return "is text"
}

// isLeaf reports whether to is a single value.
func isLeaf(to reflect.Value) bool {
	if _, ok := to.Addr().Interface().(*Secret); ok {
		return true
	}
	if _, ok := to.Addr().Interface().(encoding.TextUnmarshaler); ok {
		return true
	}
	switch to.Kind() {
	case reflect.String, reflect.Int, reflect.Bool:
		return true
	default:
		return false
	}
}

// wanted says what a value of this type looks like.
func wanted(to reflect.Value) string {
	switch to.Addr().Interface().(type) {
	case *int:
		return "give a whole number without quotes, such as 200"
	case *bool:
		return "give true or false, without quotes"
	case *Duration:
		return "give a time with its unit, such as 20s"
	case *Moment:
		return "give a point in time, such as 2026-11-27T18:00:00Z"
	case *Patience:
		return "give auto, 0 for never, or a time with its unit such as 10m"
	}
	return "give text"
}

// setText sets a leaf from its text. The error does not repeat it.
func setText(to reflect.Value, text string) error {
	switch p := to.Addr().Interface().(type) {
	case *string:
		*p = text
	case *Path:
		*p = Path(text)
	case *Secret:
		*p = NewSecret(text)
	case *int:
		n, err := strconv.ParseInt(text, 0, 64)
		if err != nil {
			return errors.New("not a whole number; give one such as 200")
		}
		*p = int(n)
	case *bool:
		if text != "true" && text != "false" {
			return errors.New("neither true nor false; give one of them")
		}
		*p = text == "true"
	case encoding.TextUnmarshaler:
		return p.UnmarshalText([]byte(text))
	default:
		panic(fmt.Sprintf("config: no way to set a %v", to.Type()))
	}
	return nil
}
