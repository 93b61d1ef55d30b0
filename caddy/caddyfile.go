package caddy

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"

	"github.com/anteroom/anteroom/internal/config"
)

// parseApp reads the global option: a file, or the keys that would be in it. A key
// with keys of its own is a block. In a list of such, each item is a line with the
// values of its first keys, and a block for the others:
//
//	anteroom {
//		node {
//			id   caddy-1
//			join 10.0.0.2:7946 10.0.0.3:7946
//		}
//		rooms shop {
//			routes             shop.example.com /
//			total_active_users 200
//		}
//	}
func parseApp(d *caddyfile.Dispenser, existing any) (any, error) {
	d.Next()
	if existing != nil {
		return nil, d.Err("anteroom is there twice; one Caddy is one node: put all into one block")
	}
	if d.NextArg() {
		return nil, d.Err("anteroom has no value of its own; give anteroom { config FILE }")
	}
	keys := map[string]any{}
	app := App{}
	if err := block(d, reflect.TypeFor[config.Config](), keys, &app.ConfigFile); err != nil {
		return nil, err
	}
	if app.ConfigFile != "" && len(keys) > 0 {
		return nil, d.Err("anteroom has config, and keys of its own; a file has all keys: move them into one place")
	}
	if len(keys) > 0 {
		app.Config, _ = json.Marshal(keys) // strings, numbers, lists and maps of them
	}
	value, err := json.Marshal(&app)
	return httpcaddyfile.App{Name: name, Value: value}, err
}

// block reads the keys of a struct. file, if any, gets the value of the key config.
func block(d *caddyfile.Dispenser, of reflect.Type, into map[string]any, file *string) error {
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		key := d.Val()
		if file != nil && key == "config" {
			if !d.AllArgs(file) {
				return d.Err("config: want one file, such as /etc/anteroom/anteroom.yaml")
			}
			continue
		}
		field, ok := fieldOf(of, key)
		if !ok {
			return d.Errf("%q is no key here; there are %s; docs/configuration.md says what they mean", key, strings.Join(keysOf(of), ", "))
		}
		_, again := into[key]
		value, err := read(d, key, field.Type, into[key])
		if err != nil {
			return err
		}
		if again && field.Type.Kind() != reflect.Slice {
			return d.Errf("%s is there twice", key)
		}
		into[key] = value
	}
	return nil
}

// read is the value of a key, added to the list that there is.
func read(d *caddyfile.Dispenser, key string, of reflect.Type, old any) (any, error) {
	if of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	list := of.Kind() == reflect.Slice && !textual(of)
	if list {
		of = of.Elem()
	}
	all, _ := old.([]any)
	if of.Kind() == reflect.Struct && !textual(of) {
		item := map[string]any{}
		args := d.RemainingArgs()
		if !list && len(args) > 0 {
			return nil, d.Errf("%s: want a block: %s { … }", key, key)
		}
		first := keysOf(of)
		for i, arg := range args {
			if i >= len(first) {
				return nil, d.ArgErr()
			}
			field, _ := fieldOf(of, first[i])
			item[first[i]] = scalar(arg, field.Type)
		}
		if err := block(d, of, item, nil); err != nil {
			return nil, err
		}
		if list {
			return append(all, item), nil
		}
		return item, nil
	}
	args := d.RemainingArgs()
	if len(args) == 0 || !list && len(args) > 1 {
		return nil, d.Errf("%s: want a value, with quotes if there are spaces in it", key)
	}
	if !list {
		return scalar(args[0], of), nil
	}
	for _, arg := range args {
		all = append(all, scalar(arg, of))
	}
	return all, nil
}

// scalar is a value as JSON has it. What is not as its key wants it stays a string,
// and the check of the configuration says what would be right.
func scalar(text string, of reflect.Type) any {
	if !textual(of) && of.Kind() == reflect.Bool {
		if b, err := strconv.ParseBool(text); err == nil {
			return b
		}
	}
	if of.Kind() != reflect.String {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return n
		}
	}
	return text
}

// textual reports whether values of a type are written as text, whatever they are.
func textual(t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

func fieldOf(t reflect.Type, key string) (reflect.StructField, bool) {
	for i := range t.NumField() {
		if f := t.Field(i); keyOf(f) == key && f.IsExported() {
			return f, true
		}
	}
	return reflect.StructField{}, false
}

func keysOf(t reflect.Type) (keys []string) {
	for i := range t.NumField() {
		if f := t.Field(i); f.IsExported() {
			keys = append(keys, keyOf(f))
		}
	}
	return keys
}

// keyOf is how a field is called in a configuration.
func keyOf(f reflect.StructField) string {
	key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return key
}
