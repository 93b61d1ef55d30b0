package server

import (
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/gateway/admin"
	"github.com/anteroom/anteroom/internal/config"
)

// A room of any file is the same when an operator reads it, whatever keys it has:
// it goes by reflection, so that a key which is added is not forgotten.
func TestWhatAFileHasIsReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := config.DefaultRoom()
		drawRoom(t, reflect.ValueOf(&r).Elem(), "room")
		r.CustomPageHTML, r.CustomPageFile, r.Logo, r.Favicon = "", "", "", ""
		r = r.WithoutEventPages()
		r = r.WithoutEventPages()
		_, asked := r.Rules()
		r.IPLists = nil // but for those that a rule asks for
		for _, name := range slices.Sorted(maps.Keys(asked)) {
			r.IPLists = append(r.IPLists, config.IPList{Name: name, Items: asked[name]})
		}
		e := roomOf(r)
		got, err := configOf(e)
		if err != nil {
			t.Fatal(err)
		}
		if d := config.Changes(r, got); len(d) > 0 {
			t.Fatalf("%v", d)
		}
		if again := roomOf(got); again.Sum() != e.Sum() {
			t.Fatalf("carried as\n%+v\nand then as\n%+v", e, again)
		}
	})
}

// drawRoom fills v with what a file could have, and with what none could.
func drawRoom(t *rapid.T, v reflect.Value, name string) {
	switch p := v.Addr().Interface().(type) {
	case *config.Duration:
		*p = config.Duration(rapid.Int64Range(1, 1e12).Draw(t, name))
		return
	case *config.Patience:
		*p = config.Patience(rapid.SampledFrom([]time.Duration{eviction.SurvivorAuto, 0, time.Minute}).Draw(t, name))
		return
	}
	words := map[string][]string{
		"QueueingMethod": {"fifo", "random", "reject"}, "Algorithm": {"cut", "qpid"}, "OnPartition": {"majority", "share", "stop"},
		"DisableSessionRenewal": {"", "true", "false"}, "SameSite": {"auto", "lax", "none"}, "Secure": {"auto", "always"}, "Action": {"bypass"},
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); f.CanSet() {
				drawRoom(t, f, v.Type().Field(i).Name)
			}
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), rapid.IntRange(0, 2).Draw(t, name), 2))
		for i := range v.Len() {
			drawRoom(t, v.Index(i), name)
		}
	case reflect.String:
		if v.Type() == reflect.TypeFor[config.StatusCode]() {
			v.SetString(rapid.SampledFrom([]string{"200", "2xx"}).Draw(t, name))
		} else if of := words[name]; of != nil {
			v.SetString(rapid.SampledFrom(of).Draw(t, name))
		} else {
			v.SetString(rapid.SampledFrom([]string{"", "a", "shop", "$a"}).Draw(t, name))
		}
	case reflect.Int:
		v.SetInt(int64(rapid.IntRange(0, 1000).Draw(t, name)))
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, name))
	default: // of which a room has none yet that has to be drawn
	}
}

func TestSamplesAreBoundedAndForgotten(t *testing.T) {
	h, now := &samples{}, time.Unix(1000, 0)
	rooms := []admin.Room{{Name: "shop", Queued: 1}, {Name: "news"}}
	for i := range samplesMax + 5 {
		rooms[0].Queued = i
		h.take(now, func() []admin.Room { return rooms })
		h.take(now.Add(time.Second), func() []admin.Room { t.Error("taken too soon"); return nil })
		now = now.Add(sampleEvery)
	}
	if of := h.of("shop"); len(of) != samplesMax || of[0].Queued != 5 || of[samplesMax-1].Queued != samplesMax+4 {
		t.Errorf("%d samples", len(of))
	}
	h.take(now, func() []admin.Room { return rooms[:1] })
	if got := slices.Collect(maps.Keys(h.rooms)); len(got) != 1 {
		t.Errorf("samples of %v", got)
	}
}
