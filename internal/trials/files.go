package trials

import (
	"bufio"
	"encoding/csv"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"github.com/anteroom/anteroom/internal/fairness"
)

// Folder is where results are written.
type Folder struct {
	dir   string
	files []string
}

// OpenFolder makes dir if there is none.
func OpenFolder(dir string) (*Folder, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	return &Folder{dir: dir}, nil
}

// Files is the names of the files written so far.
func (f *Folder) Files() []string { return f.files }

// Write makes the file called name with what write gives, in place of an older
// one.
func (f *Folder) Write(name string, write func(io.Writer) error) error {
	t, err := f.Table(name)
	if err != nil {
		return err
	}
	t.fail(write(t.buffer))
	return t.Close()
}

// Table is a CSV file that grows row by row.
type Table struct {
	file   *os.File
	buffer *bufio.Writer
	rows   *csv.Writer
	err    error
}

// Table begins a CSV file called name with its header.
func (f *Folder) Table(name string, header ...string) (*Table, error) {
	file, err := os.Create(filepath.Join(f.dir, name))
	if err != nil {
		return nil, err
	}
	f.files = append(f.files, name)
	t := &Table{file: file, buffer: bufio.NewWriter(file)}
	t.rows = csv.NewWriter(t.buffer)
	if header != nil {
		t.Row(header...)
	}
	return t, nil
}

// Row adds a row. What goes wrong is told by Close.
func (t *Table) Row(cells ...string) { t.fail(t.rows.Write(cells)) }

// Close ends the file and returns the first error of all that was done to it.
func (t *Table) Close() error {
	t.rows.Flush()
	t.fail(t.rows.Error())
	t.fail(t.buffer.Flush())
	t.fail(t.file.Close())
	return t.err
}

func (t *Table) fail(err error) {
	if t.err == nil {
		t.err = err
	}
}

// RunHeader is the header of a table of runs: a column for each metric.
func RunHeader() []string {
	header := []string{"seed", "error"}
	for _, m := range Metrics() {
		header = append(header, column(m.Name))
	}
	return header
}

// RunRow is the row of one run. What is not known is left out: all figures of a
// run that failed.
func RunRow(o *Outcome) []string {
	row := []string{strconv.FormatUint(o.Seed, 10), o.Reason()}
	for _, m := range Metrics() {
		x := m.Of(o)
		if o.Err != nil || m.Unit == Ratio && x == 0 {
			row = append(row, "")
			continue
		}
		row = append(row, decimal(x))
	}
	return row
}

// column is a metric's name as it stands above a column.
func column(name string) string {
	b := []byte(name)
	for i := range b {
		if b[i] == ' ' {
			b[i] = '_'
		}
	}
	return string(b)
}

// decimal is the shortest decimal that is x.
func decimal(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

// AdmissionHeader is the header of a table of admissions. Times are
// microseconds: of simulated time, or, for stamp_us, Unix.
func AdmissionHeader() []string {
	return []string{"seed", "ticket", "stamp_us", "joined_us", "epoch", "entitled_us", "called_us", "open"}
}

// AdmissionRow is the row of one admission in the run of seed. Who walked
// straight in has no epoch.
func AdmissionRow(seed uint64, a *fairness.Admission) []string {
	return []string{
		strconv.FormatUint(seed, 10),
		hex.EncodeToString(a.Joined.ID[:]),
		strconv.FormatUint(a.Joined.Stamp, 10),
		strconv.FormatInt(a.JoinedAt, 10),
		strconv.FormatUint(a.Entitled.Epoch, 10),
		strconv.FormatInt(a.EntitledAt, 10),
		strconv.FormatInt(a.CalledAt, 10),
		strconv.FormatBool(a.Open),
	}
}
