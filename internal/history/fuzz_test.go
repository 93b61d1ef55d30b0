package history_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/anteroom/anteroom/internal/history"
)

// FuzzRead: no file makes Read panic, what it hands out is read the same once
// it is written again, and a book takes all of it and measures it.
func FuzzRead(f *testing.F) {
	var log bytes.Buffer
	for _, e := range lines() {
		if err := json.NewEncoder(&log).Encode(e); err != nil {
			f.Fatal(err)
		}
	}
	f.Add(log.String())
	f.Add("{}\nnull\n")
	f.Add(`{"event":"open","ticket":"é","joined":18446744073709551615}` + "\n" + `{"event":"called","at":-9223372036854775808}` + "\n")
	f.Add(strings.Repeat(" ", 5000) + "\n{\"at\":1")
	f.Fuzz(func(t *testing.T, text string) {
		var first, second []history.Entry
		book := history.NewBook(3)
		_ = history.Read(strings.NewReader(text), func(e history.Entry) { // what came before the error counts
			first = append(first, e)
			book.Add(e)
		})
		var again bytes.Buffer
		for _, e := range first {
			if err := json.NewEncoder(&again).Encode(e); err != nil {
				t.Fatal(err)
			}
		}
		if again.Len() > 0 {
			if err := history.Read(&again, func(e history.Entry) { second = append(second, e) }); err != nil && !tooLong(first) {
				t.Fatal(err)
			}
		}
		for i := range second {
			if second[i] != first[i] {
				t.Fatalf("%+v became %+v", first[i], second[i])
			}
		}
		for _, room := range append(book.Rooms(), "") {
			if r := book.Report(room, 0); r.N+r.OpenAdmissions > 3 || r.KendallTau < 0 || r.KendallTau > 1 {
				t.Fatalf("%+v of a book of three", r)
			}
		}
	})
}

// tooLong reports whether an entry takes more than a line that Read takes:
// JSON writes some characters longer than they came.
func tooLong(all []history.Entry) bool {
	for _, e := range all {
		if b, err := json.Marshal(e); err != nil || len(b) >= 4096 {
			return true
		}
	}
	return false
}
