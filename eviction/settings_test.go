package eviction

import (
	"bytes"
	"encoding/hex"
	"reflect"
	"strings"
	"testing"
	"time"
)

// fair is a room that has everything.
func fair() Room {
	e := Event{
		Name: "sale", Prequeue: 1_700_000_000_000_000, Start: 1_700_000_600_000_000, End: 1_700_003_600_000_000,
		Shuffle: true, Seed: [32]byte{1, 31: 2}, Set: SetTarget | SetMethod, Target: 500, NewPerMinute: 60,
		Session: time.Minute, NoRenewal: true, Method: Random,
	}
	return Room{
		Name: "fair", Target: 100, NewPerMinute: 30, Session: 5 * time.Minute, SessionMax: time.Hour, NoRenewal: true,
		Method: Passthrough, QueueAll: true, Refresh: 20 * time.Second, TicketTTL: 5 * time.Minute, ClaimWindow: 2 * time.Minute,
		ClaimsMax: 3, Algorithm: ByQPID, OnPartition: Share, Survivor: SurvivorAuto, QueueMax: 5000, Events: []Event{e, {}},
		Event: Event{Name: "now", Start: 7}, Mode: Held, Reclaimed: []Member{{"a", 3}, {"b", 1 << 63}}, Settings: "{\"path\":\"/\"}",
		Version: Version{99, "a"},
	}
}

// Nodes of other releases reckon with these bytes. If this test fails, what this
// release says of a room is not what those before say of the same: a field may be
// added, with a number of its own, and changes nothing here while it is zero.
func TestBytesOfSettingsAreThoseOfOtherReleases(t *testing.T) {
	room := fair()
	tests := []struct {
		name string
		room Room
		want string
		sum  uint64
	}{
		{"empty", Room{}, "01", 0x84527c8410a695e4},
		{"everything", room, "" +
			"0101046661697202c801033c0480e0a596bb11058080c58bc6d1010602070408020980a0be8195010a80e0a596bb110b" +
			"80c0f588fe060c060d020e020f0110904e1157010473616c65028080f281838985060380988cbe878985060480908feb" +
			"9d898506050206200100000000000000000000000000000000000000000000000000000000000002072208e80709780a" +
			"80e0ba84bf030b020c021100120701036e6f77030e130214050101610206140e01016202ffffffffffffffffff01150c" +
			"7b2270617468223a222f227d", 0x969bebd3d951cc2},
	}
	for _, test := range tests {
		if got := hex.EncodeToString(test.room.settings()); got != test.want {
			t.Errorf("%s: the bytes are\n%s\nwant\n%s", test.name, got, test.want)
		}
		if got := test.room.Sum(); got != test.sum {
			t.Errorf("%s: the sum is %#x, want %#x", test.name, got, test.sum)
		}
	}
}

// Whatever is changed of a room changes its bytes, but for the version. A new field
// fails here until it has a place in them.
func TestEverySettingCounts(t *testing.T) {
	seen := map[string]string{string((&Room{}).settings()): "nothing"}
	each(reflect.ValueOf(&Room{}).Elem(), func(path string, set func(reflect.Value)) {
		if strings.HasPrefix(path, "Version.") {
			return
		}
		var r Room
		set(reflect.ValueOf(&r).Elem())
		b := string(r.settings())
		if as, known := seen[b]; known {
			t.Errorf("%s: the same bytes as of %s; give it a number in Room.settings", path, as)
		}
		seen[b] = path
	})
	if len(seen) < 60 {
		t.Errorf("%d rooms, and there are more settings than that", len(seen))
	}
	a, b := fair(), fair()
	b.Version = Version{}
	if !bytes.Equal(a.settings(), b.settings()) {
		t.Error("the version is among the settings")
	}
	b.Events[0], b.Events[1] = b.Events[1], b.Events[0]
	if bytes.Equal(a.settings(), b.settings()) {
		t.Error("the order of events does not count")
	}
}

// each calls fn for every field under v, by its path, with what sets that field,
// and whatever is on the way to it, in another value of v's type; with two values
// for each.
func each(v reflect.Value, fn func(path string, set func(reflect.Value))) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			name := v.Type().Field(i).Name
			each(v.Field(i), func(path string, set func(reflect.Value)) {
				fn(joined(name, path), func(o reflect.Value) { set(o.Field(i)) })
			})
		}
	case reflect.Slice:
		fn("one", func(o reflect.Value) { o.Set(reflect.MakeSlice(o.Type(), 1, 1)) })
		fn("two", func(o reflect.Value) { o.Set(reflect.MakeSlice(o.Type(), 2, 2)) })
		each(reflect.New(v.Type().Elem()).Elem(), func(path string, set func(reflect.Value)) {
			fn(joined("of one", path), func(o reflect.Value) {
				o.Set(reflect.MakeSlice(o.Type(), 1, 1))
				set(o.Index(0))
			})
		})
	case reflect.Array:
		fn("first", func(o reflect.Value) { o.Index(0).SetUint(1) })
		fn("last", func(o reflect.Value) { o.Index(o.Len() - 1).SetUint(1) })
	case reflect.String:
		fn("", func(o reflect.Value) { o.SetString("x") })
		fn("long", func(o reflect.Value) { o.SetString(string(make([]byte, 300))) })
	case reflect.Bool:
		fn("", func(o reflect.Value) { o.SetBool(true) })
	case reflect.Int, reflect.Int64:
		fn("", func(o reflect.Value) { o.SetInt(1) })
		fn("negative", func(o reflect.Value) { o.SetInt(-1) })
	case reflect.Uint8, reflect.Uint64:
		fn("", func(o reflect.Value) { o.SetUint(1) })
		fn("two", func(o reflect.Value) { o.SetUint(2) })
	default:
		panic("no value of a " + v.Kind().String() + " is known: a setting of a new kind")
	}
}

func joined(name, path string) string {
	if path == "" {
		return name
	}
	return name + "." + path
}
