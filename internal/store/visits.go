package store

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"maps"
	"os"
	"slices"

	"github.com/anteroom/anteroom/eviction"
)

// Visits are kept in a file of lines, each with its checksum: what the file begins with, and
// then a batch a line, of what has changed. A batch that a crash has cut off was never durable,
// and is dropped. Anything else that is damaged may have been: then nothing of the file counts.
//
// The file is written anew when a life begins, when much of it is out of date, and after
// anything went wrong: nobody knows then what its end is.
const (
	visitsName   = "visits.log"
	visitsFormat = 1
	visitsSpare  = 1 << 20 // bytes that may be out of date beside as many that are not
	visitsMax    = 4 << 30 // bytes that are read
)

// Visits is the file of one life of a node.
type Visits struct {
	s     *Store
	f     *os.File // nil: it is to be written anew
	head  visitsHead
	rooms map[string]*roomVisits // what it says
	size  int64
	base  int64 // its size when it was written anew
}

type roomVisits struct {
	lines map[visitID]eviction.VisitLine
	held  int64
}

// visitsHead is the first line.
type visitsHead struct {
	Format  int               `json:"format"`
	Lives   []eviction.Member `json:"lives"`   // whose visits these are; the last is the one that has written it
	Leaving []eviction.Member `json:"leaving"` // those of them that were giving visits away
}

// visitsLine is another one.
type visitsLine struct {
	Leaving bool        `json:"leaving,omitempty"`
	Rooms   []visitRoom `json:"rooms,omitempty"`
}

type visitRoom struct {
	Room   string    `json:"room"`
	Put    []visit   `json:"put,omitempty"`
	Struck []visitID `json:"struck,omitempty"`
	Held   int64     `json:"held,omitempty"`
}

type visit struct {
	ID      visitID            `json:"id"`
	Stamp   uint64             `json:"stamp"`
	Gen     uint32             `json:"gen,omitempty"`
	Until   int64              `json:"until"`
	Started int64              `json:"started"`
	Homes   []eviction.Account `json:"homes"`
	Hand    uint8              `json:"hand,omitempty"`
}

// visitID is an id as 32 digits.
type visitID [16]byte

func (id visitID) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, id[:]), nil }

func (id *visitID) UnmarshalText(text []byte) error {
	if len(text) != 2*len(id) {
		return fmt.Errorf("%q is no id of a visit", text)
	}
	_, err := hex.Decode(id[:], text)
	return err
}

func visitOf(l *eviction.VisitLine) visit {
	return visit{visitID(l.ID), l.Stamp, l.Gen, l.Until, l.Started, l.Homes, l.Hand}
}

func (v *visit) line() eviction.VisitLine {
	return eviction.VisitLine{ID: [16]byte(v.ID), Stamp: v.Stamp, Gen: v.Gen, Until: v.Until, Started: v.Started, Homes: v.Homes, Hand: v.Hand}
}

// ErrVisits is a file of visits that is damaged.
var ErrVisits = errors.New("is damaged")

// OpenVisits returns what the file has of earlier lives, and begins that of life self: if the disk
// takes nothing now, with the first batch. An error that is ErrVisits says that what was there is
// of no use; all is well but for that.
func (s *Store) OpenVisits(self eviction.Member) (*Visits, *eviction.VisitsKept, error) {
	v := &Visits{s: s, rooms: make(map[string]*roomVisits)}
	b, err := readVisits(s.Path(visitsName))
	damaged := error(nil)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, nil, fmt.Errorf("node.data: %w; make it readable, or move it away: then slots of before are waited for", err)
	default:
		if damaged = v.read(b); damaged != nil {
			damaged = fmt.Errorf("%s %w: %w", s.Path(visitsName), ErrVisits, damaged)
			v.head, v.rooms = visitsHead{}, make(map[string]*roomVisits)
		}
	}
	v.head.Format = visitsFormat
	v.head.Lives = append(v.head.Lives, self)
	v.head.Lives = v.head.Lives[max(0, len(v.head.Lives)-eviction.LivesMax):]
	v.forget()
	earlier := v.head.Lives[:len(v.head.Lives)-1]
	kept := &eviction.VisitsKept{Lives: slices.Clone(earlier), Leaving: slices.Clone(v.head.Leaving), Rooms: v.kept()}
	_ = v.rewrite() // else Append does: until then the file has nothing of this life
	return v, kept, damaged
}

func readVisits(name string) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if info.Size() > visitsMax {
		return nil, fmt.Errorf("%s has %d bytes, more than the %d that are read", name, info.Size(), int64(visitsMax))
	}
	return os.ReadFile(name)
}

// read takes in the bytes of a file.
func (v *Visits) read(b []byte) error {
	bad := error(nil) // of a line that is at the end, if none follows that is good
	for number := 1; len(b) > 0; number++ {
		line, rest, whole := bytes.Cut(b, []byte("\n"))
		body, err := checked(line)
		switch {
		case err == nil && !whole:
			err = errors.New("it has no end")
		case err == nil && bad != nil:
			return fmt.Errorf("%w, and others follow", bad)
		case err == nil && number == 1:
			if err := v.readHead(body); err != nil {
				return err
			}
		case err == nil:
			err = v.readLine(body)
			if err != nil {
				return fmt.Errorf("line %d: %w", number, err)
			}
		}
		if err != nil && number == 1 {
			return fmt.Errorf("line 1: %w", err)
		}
		if err != nil && bad == nil {
			bad = fmt.Errorf("line %d: %w", number, err)
		}
		b = rest
	}
	return v.inOrder()
}

func (v *Visits) readHead(body []byte) error {
	if err := json.Unmarshal(body, &v.head); err != nil {
		return err
	}
	if v.head.Format != visitsFormat {
		return fmt.Errorf("it has format %d and this version knows %d", v.head.Format, visitsFormat)
	}
	if n := len(v.head.Lives); n == 0 || n > eviction.LivesMax {
		return fmt.Errorf("it is of %d lives", n)
	}
	return nil
}

func (v *Visits) readLine(body []byte) error {
	var l visitsLine
	if err := json.Unmarshal(body, &l); err != nil {
		return err
	}
	v.take(&l)
	return nil
}

// inOrder reports whether each visit is of a life that the file is of.
func (v *Visits) inOrder() error {
	for name, r := range v.rooms {
		for id := range r.lines {
			if l := r.lines[id]; len(l.Homes) == 0 || !slices.Contains(v.head.Lives, l.Homes[0].Member) {
				return fmt.Errorf("room %q: a visit of %v, of which it does not know", name, l.Homes)
			}
		}
	}
	return nil
}

// forget drops what the file has of lives that were too many for it: they are waited for.
func (v *Visits) forget() {
	unknown := func(m eviction.Member) bool { return !slices.Contains(v.head.Lives, m) }
	v.head.Leaving = slices.DeleteFunc(v.head.Leaving, unknown)
	for name, r := range v.rooms {
		maps.DeleteFunc(r.lines, func(_ visitID, l eviction.VisitLine) bool { return unknown(l.Homes[0].Member) })
		if len(r.lines) == 0 && r.held == 0 {
			delete(v.rooms, name)
		}
	}
}

// take has the file say what a line says.
func (v *Visits) take(l *visitsLine) {
	if self := v.head.Lives[len(v.head.Lives)-1:]; l.Leaving && !slices.Contains(v.head.Leaving, self[0]) {
		v.head.Leaving = append(v.head.Leaving, self[0])
	}
	for i := range l.Rooms {
		in := &l.Rooms[i]
		r := v.rooms[in.Room]
		if r == nil {
			r = &roomVisits{lines: make(map[visitID]eviction.VisitLine)}
			v.rooms[in.Room] = r
		}
		for j := range in.Put {
			r.lines[in.Put[j].ID] = in.Put[j].line()
		}
		for _, id := range in.Struck {
			delete(r.lines, id)
		}
		if in.Held != 0 {
			r.held = max(0, in.Held)
		}
		if len(r.lines) == 0 && r.held == 0 {
			delete(v.rooms, in.Room)
		}
	}
}

// kept is what the file says, by room and visit.
func (v *Visits) kept() (rooms []eviction.RoomLines) {
	for name, r := range v.rooms {
		out := eviction.RoomLines{Room: name, Held: r.held}
		for _, l := range r.lines {
			out.Put = append(out.Put, l)
		}
		slices.SortFunc(out.Put, func(a, b eviction.VisitLine) int { return bytes.Compare(a.ID[:], b.ID[:]) })
		rooms = append(rooms, out)
	}
	slices.SortFunc(rooms, func(a, b eviction.RoomLines) int { return cmp.Compare(a.Room, b.Room) })
	return rooms
}

// rewriteLines is how many visits a line has that is written anew.
const rewriteLines = 4096

// rewrite writes the file anew, beside the old one.
func (v *Visits) rewrite() error {
	if v.f != nil {
		_ = v.f.Close()
		v.f = nil
	}
	head, err := summed(v.head)
	if err != nil {
		return err
	}
	text := head
	for _, r := range v.kept() {
		if r.Held > 0 {
			if text, err = appendLine(text, visitRoom{Room: r.Room, Held: r.Held}); err != nil {
				return err
			}
		}
		for part := range slices.Chunk(r.Put, rewriteLines) {
			if text, err = appendLine(text, visitRoom{Room: r.Room, Put: visitsOf(part)}); err != nil {
				return err
			}
		}
	}
	if err := v.s.Write(visitsName, text); err != nil {
		return err
	}
	v.f, err = os.OpenFile(v.s.Path(visitsName), os.O_WRONLY|os.O_APPEND, 0o600)
	v.size, v.base = int64(len(text)), int64(len(text))
	return err
}

func visitsOf(lines []eviction.VisitLine) []visit {
	out := make([]visit, len(lines))
	for i := range lines {
		out[i] = visitOf(&lines[i])
	}
	return out
}

func appendLine(text []byte, r visitRoom) ([]byte, error) {
	line, err := summed(visitsLine{Rooms: []visitRoom{r}})
	return append(text, line...), err
}

// Append makes a batch durable. After an error it is not known whether it is, and it is to be
// tried again.
func (v *Visits) Append(b *eviction.VisitsBatch) error {
	l := visitsLine{Leaving: b.Leaving}
	for i := range b.Rooms {
		r := &b.Rooms[i]
		out := visitRoom{Room: r.Room, Put: visitsOf(r.Put), Held: r.Held}
		for _, id := range r.Struck {
			out.Struck = append(out.Struck, visitID(id))
		}
		l.Rooms = append(l.Rooms, out)
	}
	v.take(&l)
	if v.f == nil || v.size > 2*v.base+visitsSpare {
		return v.rewrite()
	}
	text, err := summed(l)
	if err == nil {
		_, err = v.f.Write(text)
	}
	if err == nil {
		err = v.s.disk.sync(v.f)
	}
	if err != nil {
		_ = v.f.Close()
		v.f = nil // what a sync that failed has left is not known
		return fmt.Errorf("node.data: %w", err)
	}
	v.size += int64(len(text))
	return nil
}

// Close closes the file.
func (v *Visits) Close() error {
	if v.f == nil {
		return nil
	}
	return v.f.Close()
}

// summed is a line of the file: the sum of what follows, and that.
func summed(what any) ([]byte, error) {
	body, err := json.Marshal(what)
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, "%08x %s\n", crc32.ChecksumIEEE(body), body), nil
}

// checked returns what a line says.
func checked(line []byte) ([]byte, error) {
	sum, body, ok := bytes.Cut(line, []byte(" "))
	if !ok || len(sum) != 8 {
		return nil, errors.New("it has no checksum")
	}
	want, err := hex.DecodeString(string(sum))
	if err != nil {
		return nil, errors.New("it has no checksum")
	}
	got := crc32.ChecksumIEEE(body)
	if uint32(want[0])<<24|uint32(want[1])<<16|uint32(want[2])<<8|uint32(want[3]) != got {
		return nil, errors.New("its checksum is wrong")
	}
	return body, nil
}
