package config

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Problem is one thing that is wrong, or that an operator should know.
type Problem struct {
	File string `json:"file"`
	Line int    `json:"line"`           // 0: the file as a whole
	From string `json:"from,omitempty"` // the variable or flag that set the value, instead of the file
	Key  string `json:"key,omitempty"`  // such as rooms[0].origin; empty: the file as a whole
	Text string `json:"text"`           // what is wrong; what would be right
}

// Error is file:line: key: text.
func (p Problem) Error() string {
	var b strings.Builder
	switch {
	case p.From != "":
		b.WriteString(p.From)
	case p.Line > 0:
		fmt.Fprintf(&b, "%s:%d", p.File, p.Line)
	default:
		b.WriteString(p.File)
	}
	b.WriteString(": ")
	if p.Key != "" {
		b.WriteString(p.Key + ": ")
	}
	b.WriteString(p.Text)
	return b.String()
}

// File is a configuration as it was read, with all that is wrong with it.
type File struct {
	Name     string
	Config   Config
	Errors   []Problem // in the order of the file; those of variables and flags at the end
	Warnings []Problem

	places map[string]place
	unread map[string]bool // keys whose value is not even of the right kind
	others []Room          // of the cluster, that the file does not have; see ParseRoom
}

// place is where a value was set.
type place struct {
	line   int
	from   string // variable or flag; empty: the file
	shared bool   // through an alias: other keys have the value from there too
}

// Err is all errors, one per line, or nil.
func (f *File) Err() error {
	errs := make([]error, len(f.Errors))
	for i, p := range f.Errors {
		errs[i] = p
	}
	return errors.Join(errs...)
}

// Fault notes an error that somebody else found in the value of key, such as in
// what a file holds, unless there is one about that key already.
func (f *File) Fault(key, format string, args ...any) {
	f.fault(key, format, args...)
	f.sort()
}

// wrong notes an error in the value of key.
func (f *File) wrong(key, format string, args ...any) {
	f.note(f.problem(key, format, args...), f.place(key).shared)
}

// note adds an error. What several keys share through an alias is told once.
func (f *File) note(p Problem, shared bool) {
	told := func(o Problem) bool { return o.Line == p.Line && o.Text == p.Text }
	if !shared || !slices.ContainsFunc(f.Errors, told) {
		f.Errors = append(f.Errors, p)
	}
}

// warn notes what an operator should know about key, unless it is wrong anyway.
func (f *File) warn(key, format string, args ...any) {
	if !f.blamed(key) {
		f.Warnings = append(f.Warnings, f.problem(key, format, args...))
	}
}

func (f *File) problem(key, format string, args ...any) Problem {
	p := f.place(key)
	return Problem{File: f.Name, Line: p.line, From: p.from, Key: key, Text: fmt.Sprintf(format, args...)}
}

// place is where key was set or, if it was not, the nearest key around it.
func (f *File) place(key string) place {
	for key != "" {
		if p, ok := f.places[key]; ok {
			return p
		}
		key = key[:max(strings.LastIndexAny(key, ".["), 0)]
	}
	return place{}
}

// given reports whether somebody set key.
func (f *File) given(key string) bool {
	_, ok := f.places[key]
	return ok
}

// blamed reports whether there is an error about key or a part of it already.
func (f *File) blamed(key string) bool {
	return slices.ContainsFunc(f.Errors, func(p Problem) bool {
		rest, ok := strings.CutPrefix(p.Key, key)
		return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
	})
}

// sort puts the problems in the order of the file.
func (f *File) sort() {
	byPlace := func(a, b Problem) int {
		if c := cmp.Compare(a.From, b.From); c != 0 {
			return c
		}
		return cmp.Compare(a.Line, b.Line)
	}
	slices.SortStableFunc(f.Errors, byPlace)
	slices.SortStableFunc(f.Warnings, byPlace)
}
