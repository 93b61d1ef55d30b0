package explore

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"slices"
)

// digest stands for a value: equal digests, equal values.
type digest [16]byte

func digestOf(b []byte) digest {
	sum := sha256.Sum256(b)
	return digest(sum[:16])
}

// ignored lists fields that have no part in what a node does from here on.
// TestStatesDecideTheFuture checks that. A name that is not found is a panic:
// whoever renames a field looks here.
func ignored() map[string][]string {
	return map[string][]string{
		"node.Node":        {"c", "dues"},                            // fixed at the start; what each room says of itself
		"node.room":        {"node", "waits"},                        // the way back up; only told
		"node.attention":   {"place"},                                // an index of dues
		"eviction.Node":    {"c", "start", "dues", "heirs"},          // fixed at the start; says only where there is nothing to do; worked out anew
		"eviction.company": {"metAt", "ranked"},                      // where it was found last; worked out anew
		"eviction.Gate":    {"revised"},                              // see dues
		"eviction.kept":    {"Prepare", "Copies", "Keep", "Earlier"}, // fixed at the start
		"eviction.inForce": {"c"},                                    // likewise
		"eviction.order":   {"cuts"},                                 // only told
		"qpid.answered":    {"at"},                                   // an index of ring
		"qpid.Queue":       {"tree", "slots", "sums", "count"},       // see writeQueue
	}
}

// shared lists the types that several pointers of one node lead to. They are
// written once and then referred to; whatever else a pointer leads to is
// written each time.
func shared() []string {
	return []string{"eviction.Gate", "node.visitor", "qpid.Queue", "qpid.Node"}
}

// printer writes values in a form in which equal means equal for all the
// future. It reads unexported fields of the packages that it is used on.
type printer struct {
	ignore map[string][]string
	skip   map[reflect.Type][]bool // by field
	shared map[reflect.Type]bool

	buf  []byte
	seen map[uintptr]int // shared values already written, by their place in the order
}

// newPrinter returns one that ignores the fields in more as well.
func newPrinter(more map[string][]string) *printer {
	p := &printer{ignore: ignored(), skip: map[reflect.Type][]bool{}, shared: map[reflect.Type]bool{}, seen: map[uintptr]int{}}
	for t, fields := range more {
		p.ignore[t] = append(p.ignore[t], fields...)
	}
	return p
}

// digest digests values, which must be pointers.
func (p *printer) digest(values ...any) digest {
	p.buf = p.buf[:0]
	clear(p.seen)
	for _, v := range values {
		p.write(reflect.ValueOf(v))
	}
	return digestOf(p.buf)
}

func (p *printer) number(x uint64) { p.buf = binary.AppendUvarint(p.buf, x) }

func (p *printer) write(v reflect.Value) {
	switch v.Kind() {
	case reflect.Bool:
		p.buf = append(p.buf, bit(v.Bool()))
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		p.buf = binary.AppendVarint(p.buf, v.Int())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		p.number(v.Uint())
	case reflect.Float32, reflect.Float64:
		p.number(math.Float64bits(v.Float()))
	case reflect.String:
		p.number(uint64(v.Len()))
		p.buf = append(p.buf, v.String()...)
	case reflect.Struct:
		p.writeStruct(v)
	case reflect.Array:
		p.writeList(v)
	case reflect.Slice:
		if v.IsNil() { // not the same as empty: some of the code tells them apart
			p.number(0)
			return
		}
		p.number(uint64(v.Len()) + 1)
		p.writeList(v)
	case reflect.Map:
		p.writeMap(v)
	case reflect.Pointer:
		p.writePointer(v)
	case reflect.Interface:
		p.buf = append(p.buf, bit(!v.IsNil()))
		if !v.IsNil() {
			p.buf = append(p.buf, v.Elem().Type().String()...)
			p.write(v.Elem())
		}
	default:
		panic(fmt.Sprintf("explore: cannot print a %v: name the field that holds it in ignored, or learn to print it", v.Type()))
	}
}

func (p *printer) writeList(v reflect.Value) {
	if v.Type().Elem().Kind() == reflect.Uint8 && (v.Kind() == reflect.Slice || v.CanAddr()) { // ids and seeds: most of what there is to write
		p.buf = append(p.buf, v.Bytes()...)
		return
	}
	for i := range v.Len() {
		p.write(v.Index(i))
	}
}

func (p *printer) writeStruct(v reflect.Value) {
	t := v.Type()
	skip, ok := p.skip[t]
	if !ok {
		skip = make([]bool, t.NumField())
		for _, name := range p.ignore[t.String()] {
			f, ok := t.FieldByName(name)
			if !ok || len(f.Index) > 1 { // of an embedded part it would leave out all
				panic(fmt.Sprintf("explore: %v has no field %q of its own any more: see ignored", t, name))
			}
			skip[f.Index[0]] = true
		}
		p.skip[t] = skip
	}
	if t.String() == "qpid.Queue" {
		p.writeQueue(v)
	}
	for i, skipped := range skip {
		if !skipped {
			p.write(v.Field(i))
		}
	}
}

// writeQueue writes the weights and not how they are spread over runs.
func (p *printer) writeQueue(v reflect.Value) {
	slots := v.FieldByName("slots")
	for i := range slots.Len() {
		if run := slots.Index(i); !run.IsNil() {
			items := run.Elem().FieldByName("items")
			for j := range items.Len() {
				p.buf = append(p.buf, 1)
				p.write(items.Index(j))
			}
		}
	}
	p.buf = append(p.buf, 0)
}

// writeMap sorts the entries by how their keys are written.
func (p *printer) writeMap(v reflect.Value) {
	type entry struct {
		key   []byte
		value reflect.Value
	}
	entries := make([]entry, 0, v.Len())
	at := len(p.buf)
	for it := v.MapRange(); it.Next(); {
		p.write(it.Key())
		entries = append(entries, entry{bytes.Clone(p.buf[at:]), it.Value()})
		p.buf = p.buf[:at]
	}
	slices.SortFunc(entries, func(a, b entry) int { return bytes.Compare(a.key, b.key) })
	p.number(uint64(len(entries)))
	for _, e := range entries {
		p.buf = append(p.buf, e.key...)
		p.write(e.value)
	}
}

func (p *printer) writePointer(v reflect.Value) {
	if v.IsNil() {
		p.buf = append(p.buf, 0)
		return
	}
	once, ok := p.shared[v.Type()]
	if !ok {
		once = slices.Contains(shared(), v.Type().Elem().String())
		p.shared[v.Type()] = once
	}
	if once {
		if i, ok := p.seen[v.Pointer()]; ok {
			p.buf = append(p.buf, 2)
			p.number(uint64(i))
			return
		}
		p.seen[v.Pointer()] = len(p.seen)
	}
	p.buf = append(p.buf, 1)
	p.write(v.Elem())
}

func bit(b bool) byte {
	if b {
		return 1
	}
	return 0
}
