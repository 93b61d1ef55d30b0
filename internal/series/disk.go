package series

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// On disk are frames. A file has the packed hours of a UTC day, and is removed as a
// whole when it is too old; another, the tail, has the minutes of the hours that are
// not packed yet. docs/history.md has the format.
const (
	frameMagic = "ArH1"
	frameHead  = len(frameMagic) + 4 + 4 // the length of the body, and its CRC-32C
	frameMax   = 64 << 20

	hourFrame   = 1
	minuteFrame = 2

	tailName  = "tail.rows"
	dayFormat = "2006-01-02"
	daySuffix = ".rows"
)

func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// disk is the files of a directory.
type disk struct {
	dir   string
	log   *slog.Logger
	tail  *os.File
	files map[int64]*os.File // by day, open for reading and appending
}

func (d *disk) dayName(day int64) string {
	return filepath.Join(d.dir, time.Unix(day, 0).UTC().Format(dayFormat)+daySuffix)
}

// frame wraps a body.
func frame(to, body []byte) []byte {
	to = append(to, frameMagic...)
	to = binary.LittleEndian.AppendUint32(to, uint32(len(body)))
	to = binary.LittleEndian.AppendUint32(to, crc32.Checksum(body, castagnoli()))
	return append(to, body...)
}

// frames hands out the bodies in b with their offsets, and returns how many bytes
// were none: what is damaged ends where the next good frame begins.
func frames(b []byte, visit func(at int64, body []byte)) (lost int) {
	for at := 0; at < len(b); {
		body, ok := frameAt(b[at:])
		if !ok {
			at, lost = at+1, lost+1
			continue
		}
		visit(int64(at+frameHead), body)
		at += frameHead + len(body)
	}
	return lost
}

func frameAt(b []byte) ([]byte, bool) {
	if len(b) < frameHead || string(b[:len(frameMagic)]) != frameMagic {
		return nil, false
	}
	n := int(binary.LittleEndian.Uint32(b[len(frameMagic):]))
	if n > frameMax || n > len(b)-frameHead {
		return nil, false
	}
	body := b[frameHead : frameHead+n]
	return body, crc32.Checksum(body, castagnoli()) == binary.LittleEndian.Uint32(b[len(frameMagic)+4:])
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// textMax is longer than the name of any room or node.
const textMax = 4096

func (r *reader) text() string {
	n := r.uvarint(textMax)
	if n > uint64(len(r.b)) {
		r.bad, r.b = true, nil
		return ""
	}
	s := string(r.b[:n])
	r.b = r.b[n:]
	return s
}

// load reads all there is into k.
func (d *disk) load(k *Kept) error {
	if err := os.MkdirAll(d.dir, 0o700); err != nil {
		return err
	}
	d.files = make(map[int64]*os.File)
	names, err := filepath.Glob(filepath.Join(d.dir, "????-??-??"+daySuffix))
	if err != nil {
		return err
	}
	for _, name := range names {
		at, err := time.Parse(dayFormat+daySuffix, filepath.Base(name))
		if err != nil {
			continue // not ours
		}
		if err := d.loadDay(at.Unix(), name, k); err != nil {
			return err
		}
	}
	k.onlyWhole()
	if err := d.loadTail(k); err != nil {
		return err
	}
	d.tail, err = os.OpenFile(filepath.Join(d.dir, tailName), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	return err
}

func (d *disk) damaged(name string, bytes int) {
	if bytes > 0 {
		d.log.Warn("history: a part of a file is damaged, or was cut short by a crash, and is left out", "file", name, "bytes", bytes)
	}
}

func (d *disk) loadDay(day int64, name string, k *Kept) error {
	b, err := os.ReadFile(name)
	if err == nil {
		_, err = d.file(day, 0)
	}
	if err != nil {
		return err
	}
	lost := frames(b, func(at int64, body []byte) {
		r := reader{b: body}
		if r.uvarint(minuteFrame) != hourFrame {
			return // of a later version
		}
		node, room, start, sum := r.text(), r.text(), int64(r.uvarint(stepsMax))*hour, int(r.uvarint(frameMax))
		if r.bad || sum > len(r.b) {
			return
		}
		m := k.of(node, room)
		m.hours = append(m.hours, block{start: start, place: place{day: day, at: at + int64(len(body)-len(r.b)), sum: sum, len: len(r.b)}})
	})
	d.damaged(name, lost)
	return nil
}

func (d *disk) loadTail(k *Kept) error {
	name := filepath.Join(d.dir, tailName)
	b, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	type named struct {
		node string
		Minute
	}
	var all []named
	lost := frames(b, func(_ int64, body []byte) {
		if node, m, ok := readMinute(body); ok {
			all = append(all, named{node, m})
		}
	})
	slices.SortStableFunc(all, func(a, b named) int { return cmp.Compare(a.At, b.At) })
	for _, m := range all {
		if !k.has(m.node, m.At, m.mark()) {
			k.put(m.node, m.Minute)
		}
	}
	d.damaged(name, lost)
	return nil
}

// onlyWhole puts the hours in order, and leaves out those in which nothing says that
// the node ran: its own block is the last that is written of an hour, so it ended
// before, and the minutes are in the tail.
func (k *Kept) onlyWhole() {
	for _, rooms := range k.nodes {
		ran := map[int64]bool{}
		if own := rooms[self]; own != nil {
			for _, b := range own.hours {
				ran[b.start] = true
			}
		}
		for _, m := range rooms {
			m.hours = slices.DeleteFunc(m.hours, func(b block) bool { return !ran[b.start] })
			m.sort()
		}
	}
}

func minuteBody(node string, m Minute) []byte {
	b := binary.AppendUvarint(nil, minuteFrame)
	b = appendText(b, node)
	b = binary.AppendUvarint(b, uint64(m.At/minute))
	for i := range m.Rows {
		b = appendText(b, m.Rows[i].Room)
		b = m.Rows[i].Row.append(b, m.At, minute)
	}
	return b
}

func readMinute(body []byte) (node string, m Minute, ok bool) {
	r := reader{b: body}
	if r.uvarint(minuteFrame) != minuteFrame {
		return "", m, false
	}
	node, m.At = r.text(), int64(r.uvarint(stepsMax))*minute
	for len(r.b) > 0 && !r.bad {
		room := r.text()
		row := r.row(m.At, minute)
		if row.At == m.At {
			m.Rows = append(m.Rows, NamedRow{room, row})
		}
	}
	return node, m, !r.bad
}

// appendMinute writes a minute to the tail.
func (d *disk) appendMinute(node string, m Minute) error {
	_, err := d.tail.Write(frame(nil, minuteBody(node, m)))
	if err == nil {
		err = d.tail.Sync()
	}
	if err != nil {
		return fmt.Errorf("history: %w", err)
	}
	return nil
}

// appendHours writes blocks to the files of their days, and takes their minutes out
// of the tail. A block that cannot be written stays in memory.
func (d *disk) appendHours(all []packed, k *Kept) error {
	written := map[int64]*os.File{}
	for i := range all {
		p := &all[i]
		of := p.start / day * day
		f, err := d.file(of, os.O_CREATE)
		if err != nil {
			return fmt.Errorf("history: %w", err)
		}
		head := appendText(appendText(binary.AppendUvarint(nil, hourFrame), p.node), p.room)
		head = binary.AppendUvarint(binary.AppendUvarint(head, uint64(p.start/hour)), uint64(p.sum))
		end, err := f.Seek(0, 2)
		if err == nil {
			_, err = f.Write(frame(nil, append(head, p.packed...)))
		}
		if err != nil {
			return fmt.Errorf("history: %w", err)
		}
		p.day, p.at, p.packed = of, end+int64(frameHead+len(head)), nil
		written[of] = f
	}
	for _, f := range written {
		if err := f.Sync(); err != nil {
			return fmt.Errorf("history: %w", err)
		}
	}
	return d.rewriteTail(k)
}

// rewriteTail leaves in the tail what is in no block.
func (d *disk) rewriteTail(k *Kept) error {
	name := filepath.Join(d.dir, tailName)
	var b []byte
	for node, rooms := range k.nodes {
		byMinute := map[int64]*Minute{}
		for room, m := range rooms {
			for _, c := range m.open {
				_ = Decode(c.rows, c.start, minute, func(r *Row) bool { // written here
					if byMinute[r.At] == nil {
						byMinute[r.At] = &Minute{At: r.At}
					}
					byMinute[r.At].Rows = append(byMinute[r.At].Rows, NamedRow{room, *r})
					return true
				})
			}
		}
		for _, m := range byMinute {
			b = frame(b, minuteBody(node, *m))
		}
	}
	next, err := os.OpenFile(name+".new", os.O_RDWR|os.O_CREATE|os.O_TRUNC|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("history: %w", err)
	}
	_, err = next.Write(b)
	err = errors.Join(err, next.Sync())
	if err == nil {
		err = os.Rename(name+".new", name)
	}
	if err != nil {
		return fmt.Errorf("history: %w", errors.Join(err, next.Close()))
	}
	old := d.tail
	d.tail = next
	if err := old.Close(); err != nil {
		return fmt.Errorf("history: %w", err)
	}
	return nil
}

// file is that of a day.
func (d *disk) file(day int64, how int) (*os.File, error) {
	if f := d.files[day]; f != nil {
		return f, nil
	}
	f, err := os.OpenFile(d.dayName(day), os.O_RDWR|os.O_APPEND|how, 0o600)
	if err == nil {
		d.files[day] = f
	}
	return f, err
}

// read reads a part of a block.
func (d *disk) read(p place, from, to int) ([]byte, error) {
	f := d.files[p.day]
	if f == nil {
		return nil, fs.ErrNotExist
	}
	b := make([]byte, to-from)
	_, err := f.ReadAt(b, p.at+int64(from))
	return b, err
}

// forget removes the files of days that are over by then.
func (d *disk) forget(before int64) {
	for of, f := range d.files {
		if of+day > before {
			continue
		}
		if err := errors.Join(f.Close(), os.Remove(d.dayName(of))); err != nil {
			d.log.Warn("history: a file that is too old cannot be removed", "err", err)
		}
		delete(d.files, of)
	}
}

// Close closes the files.
func (k *Kept) Close() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.disk == nil {
		return nil
	}
	err := k.disk.tail.Close()
	for _, f := range k.disk.files {
		err = errors.Join(err, f.Close())
	}
	k.disk.files = nil
	return err
}

// EncodeMinute writes a minute for another node.
func EncodeMinute(m Minute) []byte { return minuteBody("", m) }

// DecodeMinute reads what EncodeMinute wrote.
func DecodeMinute(b []byte) (Minute, error) {
	_, m, ok := readMinute(b)
	if !ok {
		return Minute{}, errRow
	}
	return m, nil
}
