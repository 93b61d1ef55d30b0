package gateway

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// fill draws all that is in v.
func fill(t *rapid.T, v reflect.Value, name string) {
	switch p := v.Addr().Interface().(type) {
	case *time.Time:
		*p = time.UnixMicro(rapid.Int64Range(0, 4e15).Draw(t, name)).UTC()
		return
	case *string:
		*p = rapid.OneOf(rapid.Just(""), rapid.String(), rapid.StringMatching(`[a-zA-Z0-9_<>&"\\\x00-\x1f\x7f -]*`)).Draw(t, name)
		return
	case *int:
		*p = rapid.OneOf(rapid.IntRange(-2, 2), rapid.Int()).Draw(t, name)
		return
	case *uint64:
		*p = rapid.OneOf(rapid.Just(uint64(0)), rapid.Uint64()).Draw(t, name)
		return
	case *bool:
		*p = rapid.Bool().Draw(t, name)
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(t, v.Field(i), v.Type().Field(i).Name)
		}
	case reflect.Pointer:
		if rapid.Bool().Draw(t, name+" is there") {
			v.Set(reflect.New(v.Type().Elem()))
			fill(t, v.Elem(), name)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), rapid.IntRange(0, 2).Draw(t, name), 2))
		for i := range v.Len() {
			fill(t, v.Index(i), name)
		}
	default:
		t.Fatalf("%s: a %v, which nobody draws yet", name, v.Type())
	}
}

func TestPlaceIsWrittenAsEncodingJSONWritesIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var p Place
		fill(t, reflect.ValueOf(&p).Elem(), "place")
		want, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.appendJSON(nil); !bytes.Equal(got, want) {
			t.Fatalf("by hand:\n%s\nencoding/json:\n%s", got, want)
		}
	})
}

// What is read by hand is what encoding/json reads, and it refuses none of it.
func FuzzPlainBody(f *testing.F) {
	for _, b := range []string{
		` {"ticket" : "a_-9"}`, `{"pass":""}`, "{\n\"ticket\":\"a\"}\n", `{"ticket":"\u0041"}`, `{"ticket":"é"}`, "{\"ticket\":\"\x7f\"}", `{"Ticket":"a"}`,
		`{"ticket":"a","pass":"b"}`, `{"ticket":null}`, `{"ticket":"a"}}`, `{"ticket":"a"`, `{"x":"a"}`, `{}`, `null`, ``, "\x00",
	} {
		f.Add([]byte(b))
	}
	if got, ok := plainBody([]byte(` {"ticket" : "a_-9"}`)); !ok || got.Ticket != "a_-9" {
		f.Errorf("an ordinary body is read as %+v, %v", got, ok)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		got, ok := plainBody(b)
		if !ok {
			return
		}
		if want, err := decodeBody(b, ""); err != nil || got != want {
			t.Fatalf("%q: by hand %+v, encoding/json %+v, %v", b, got, want, err)
		}
	})
}
