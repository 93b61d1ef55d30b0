package config

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// fieldsOf returns the fields of a struct by their keys.
func fieldsOf(v reflect.Value) map[string]reflect.Value {
	fields := make(map[string]reflect.Value, v.NumField())
	for i, name := range tags(v.Type()) {
		fields[name] = v.Field(i)
	}
	return fields
}

// tags returns the keys of a struct in their order.
func tags(t reflect.Type) []string {
	names := make([]string, t.NumField())
	for i := range names {
		names[i] = t.Field(i).Tag.Get("json")
	}
	return names
}

func join(key, name string) string {
	if key == "" {
		return name
	}
	return key + "." + name
}

func index(i int) string { return "[" + strconv.Itoa(i) + "]" }

// walk visits every single value and every list of c, with its key.
func (c *Config) walk(visit func(key string, v reflect.Value)) {
	walk("", reflect.ValueOf(c).Elem(), visit)
}

func walk(key string, v reflect.Value, visit func(string, reflect.Value)) {
	if isLeaf(v) || v.Kind() == reflect.Slice {
		visit(key, v)
		return
	}
	for i, name := range tags(v.Type()) {
		walk(join(key, name), v.Field(i), visit)
	}
}

// listed reports whether a key has no variable, and is no single value.
func listed(key string) bool {
	return key == "rooms" || key == "queues" || key == "security.tokens" || key == "notifications"
}

// Differences lists the keys outside rooms in which a and b differ: those that
// take a restart. Of queues it knows only that they differ.
func Differences(a, b Config) []string {
	texts := map[string]any{}
	a.walk(func(key string, v reflect.Value) { texts[key] = v.Interface() })
	var keys []string
	b.walk(func(key string, v reflect.Value) {
		if key == "rooms" {
			return
		}
		if s, ok := v.Interface().(Secret); ok && s.Equal(texts[key].(Secret)) {
			return
		} else if !ok && reflect.DeepEqual(v.Interface(), texts[key]) {
			return
		}
		keys = append(keys, key)
	})
	return keys
}

// nearest is a hint at the word that name may have been meant to be, or at all
// of them.
func nearest(name string, words []string) string {
	best, least := "", 1+len(name)/3
	for _, w := range words {
		if d := distance(name, w); d <= least && (best == "" || d < least) {
			best, least = w, d
		}
	}
	if best == "" {
		return "; there are " + strings.Join(words, ", ")
	}
	return "; did you mean " + best + "?"
}

// distance is how many letters to insert, remove or replace between a and b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		last := slices.Clone(row)
		row[0] = i + 1
		for j := range len(b) {
			replace := last[j]
			if a[i] != b[j] {
				replace++
			}
			row[j+1] = min(replace, last[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}
