package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"reflect"
	"slices"
	"strings"
)

// Options is what stands beside the file.
type Options struct {
	Host    string    // names the node when nothing else does
	Environ []string  // as os.Environ returns it
	Set     []Setting // wins over everything
}

// Setting is one value from a flag.
type Setting struct {
	Key   string // such as node.id
	Value string // as in the environment
	From  string // for messages, such as --id
}

// bytesMax bounds a file. The sample is 6 kB, a room about 1 kB.
const bytesMax = 4 << 20

// Load reads the file of that name, checks everything in it, and that the files
// that it names can be used.
func Load(name string, o Options) *File {
	text, err := readAll(name)
	if err != nil {
		f := newFile(name, o.Host)
		f.Errors = []Problem{{File: name, Text: err.Error()}}
		return f
	}
	return Text(name, text, o)
}

// Text is Load for the text of a file.
func Text(name string, text []byte, o Options) *File {
	f := Parse(name, text, o)
	f.checkFiles()
	f.sort()
	return f
}

func readAll(name string) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("%w; docs/anteroom.yaml is a file to start from", cause(err))
	}
	defer file.Close() //nolint:errcheck // nothing was written
	text, err := io.ReadAll(io.LimitReader(file, bytesMax+1))
	if err != nil {
		return nil, fmt.Errorf("%w; give a file that this user may read", cause(err))
	}
	if len(text) > bytesMax {
		return nil, fmt.Errorf("longer than %d MiB; give a configuration file", bytesMax>>20)
	}
	return text, nil
}

// cause is err without the name of the file, which stands before it already.
func cause(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

// Parse is Load for a text, and looks at no other file.
func Parse(name string, text []byte, o Options) *File {
	f := newFile(name, o.Host)
	if !f.decode(text) {
		return f
	}
	f.environment(o.Environ)
	for _, s := range o.Set {
		f.set(s)
	}
	f.check()
	f.sort()
	return f
}

// Flags is Load without a file: all there is stands in o.
func Flags(o Options) *File {
	return Text("flags", nil, o)
}

func newFile(name, host string) *File {
	return &File{Name: name, Config: Default(host), places: map[string]place{}, unread: map[string]bool{}}
}

// Variable is the name of the environment variable of a key.
func Variable(key string) string {
	return "ANTEROOM_" + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))
}

// Keys lists the keys that have a variable: all but those of rooms and queues.
func Keys() []string {
	var keys []string
	c := Default("")
	c.walk(func(key string, _ reflect.Value) {
		if !listed(key) {
			keys = append(keys, key)
		}
	})
	return keys
}

// environment sets what variables say. One that looks like a key but is none is
// probably a slip.
func (f *File) environment(environ []string) {
	byName := map[string]string{}
	var names []string
	for _, key := range Keys() {
		byName[Variable(key)] = key
		names = append(names, Variable(key))
	}
	environ = slices.Sorted(slices.Values(environ))
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		key, ok := byName[name]
		switch {
		case value == "":
		case ok:
			f.set(Setting{Key: key, Value: value, From: name})
		case resembles(name):
			f.Warnings = append(f.Warnings, Problem{File: f.Name, From: name, Text: "no key has this variable" + nearest(name, names)})
		}
	}
}

// resembles reports whether name looks like the variable of a key. Those that
// Kubernetes makes for a service do not.
func resembles(name string) bool {
	if strings.Contains(name, "_SERVICE_") || strings.Contains(name, "_PORT") {
		return false
	}
	for _, section := range []string{"NODE", "CLUSTER", "SECURITY", "PREFIX", "TRUSTED", "COUNTRY", "ADMIN", "ROOMS", "QUEUE"} {
		if strings.HasPrefix(name, "ANTEROOM_"+section) {
			return true
		}
	}
	return false
}

// set puts a value from outside the file over the one in it, and what was wrong
// with that one does not matter any more.
func (f *File) set(s Setting) {
	found := false
	f.Config.walk(func(key string, v reflect.Value) {
		if key != s.Key || listed(key) {
			return
		}
		found = true
		f.Errors = slices.DeleteFunc(f.Errors, func(p Problem) bool { return p.Key == key || strings.HasPrefix(p.Key, key+"[") })
		for at := range f.places {
			if strings.HasPrefix(at, key+"[") {
				delete(f.places, at)
			}
		}
		f.places[key] = place{from: s.From}
		if v.Type() == reflect.TypeFor[[]Secret]() {
			v.Set(reflect.ValueOf(secrets(words(s.Value)...)))
		} else if v.Kind() == reflect.Slice {
			v.Set(reflect.ValueOf(words(s.Value)))
		} else if err := setText(v, s.Value); err != nil {
			f.wrong(key, "%v", err)
		}
	})
	if !found {
		panic("config: a setting of no key: " + s.Key)
	}
}

// words splits a list with commas.
func words(text string) []string {
	var list []string
	for w := range strings.SplitSeq(text, ",") {
		if w = strings.TrimSpace(w); w != "" {
			list = append(list, w)
		}
	}
	return list
}
