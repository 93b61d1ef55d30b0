package pqueue

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/anteroom/anteroom/qpid"
)

// errTorn is bytes that end too early, or say more than they have.
var errTorn = errors.New("pqueue: the encoding is torn")

// Encoder appends values to B, in an encoding that a Decoder reads.
type Encoder struct{ B []byte }

// Uint, Int, Bool, Bytes and String append one value each.
func (e *Encoder) Uint(v uint64) { e.B = binary.AppendUvarint(e.B, v) }

// Int appends a signed number.
func (e *Encoder) Int(v int64) { e.B = binary.AppendVarint(e.B, v) }

// Bool appends one byte.
func (e *Encoder) Bool(v bool) {
	b := byte(0)
	if v {
		b = 1
	}
	e.B = append(e.B, b)
}

// Bytes appends a length and the bytes.
func (e *Encoder) Bytes(v []byte) {
	e.Uint(uint64(len(v)))
	e.B = append(e.B, v...)
}

// String is Bytes of a string.
func (e *Encoder) String(v string) {
	e.Uint(uint64(len(v)))
	e.B = append(e.B, v...)
}

// Weight appends 24 bytes.
func (e *Encoder) Weight(w qpid.Weight) {
	e.B = binary.BigEndian.AppendUint64(e.B, w.Stamp)
	e.B = append(e.B, w.ID[:]...)
}

// Decoder reads what an Encoder wrote. After the first value that is not there
// all others are zero, and Err says so.
type Decoder struct {
	b   []byte
	err error
}

// NewDecoder reads b, of which Bytes returns parts.
func NewDecoder(b []byte) *Decoder { return &Decoder{b: b} }

// Err says whether all values were there, and nothing else.
func (d *Decoder) Err() error {
	if d.err == nil && len(d.b) > 0 {
		return fmt.Errorf("pqueue: %d bytes too many", len(d.b))
	}
	return d.err
}

func (d *Decoder) fail() { d.err, d.b = errTorn, nil }

// Left is how many bytes are left.
func (d *Decoder) Left() int { return len(d.b) }

// Uint reads an unsigned number.
func (d *Decoder) Uint() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.fail()
		return 0
	}
	d.b = d.b[n:]
	return v
}

// Int reads a signed number.
func (d *Decoder) Int() int64 {
	v, n := binary.Varint(d.b)
	if n <= 0 {
		d.fail()
		return 0
	}
	d.b = d.b[n:]
	return v
}

// Count reads a number of things of at least size bytes each, which must be
// there.
func (d *Decoder) Count(size int) int {
	n := d.Uint()
	if n > uint64(len(d.b)/size) {
		d.fail()
		return 0
	}
	return int(n)
}

// Bool reads one byte.
func (d *Decoder) Bool() bool {
	if len(d.b) == 0 || d.b[0] > 1 {
		d.fail()
		return false
	}
	v := d.b[0] == 1
	d.b = d.b[1:]
	return v
}

// Bytes reads bytes; they are part of what is decoded. None are nil.
func (d *Decoder) Bytes() []byte {
	n := d.Count(1)
	if n == 0 {
		return nil
	}
	v := d.b[:n:n]
	d.b = d.b[n:]
	return v
}

// String reads a string.
func (d *Decoder) String() string { return string(d.Bytes()) }

// Weight reads a weight.
func (d *Decoder) Weight() qpid.Weight {
	var w qpid.Weight
	if len(d.b) < 24 {
		d.fail()
		return w
	}
	w.Stamp = binary.BigEndian.Uint64(d.b)
	copy(w.ID[:], d.b[8:24])
	d.b = d.b[24:]
	return w
}

// Rest takes all bytes that are left.
func (d *Decoder) Rest() []byte {
	b := d.b
	d.b = nil
	return b
}
