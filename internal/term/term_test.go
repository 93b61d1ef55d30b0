package term_test

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/anteroom/anteroom/internal/term"
)

func TestOnlyATerminalIsATerminal(t *testing.T) {
	t.Setenv("TERM", "xterm")
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = null.Close() })
	file, err := os.Create(t.TempDir() + "/out")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	if term.IsTerminal(null) || term.IsTerminal(file) || term.IsTerminal(&bytes.Buffer{}) {
		t.Errorf("IsTerminal(%s, a file, a buffer) = %v, %v, %v, want false", os.DevNull,
			term.IsTerminal(null), term.IsTerminal(file), term.IsTerminal(&bytes.Buffer{}))
	}
	tty, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("no terminal to be had: %v", err)
	}
	t.Cleanup(func() { _ = tty.Close() })
	for _, c := range []struct {
		term, noColor    string
		terminal, colour bool
	}{
		{"xterm", "", true, true},
		{"xterm", "1", true, false},
		{"dumb", "", false, false},
	} {
		t.Setenv("TERM", c.term)
		t.Setenv("NO_COLOR", c.noColor)
		if terminal, colour := term.IsTerminal(tty), term.HasColour(tty); terminal != c.terminal || colour != c.colour {
			t.Errorf("TERM=%s NO_COLOR=%s: terminal %v, colour %v, want %v, %v",
				c.term, c.noColor, terminal, colour, c.terminal, c.colour)
		}
	}
}

// clock is a time that tests move by hand.
type clock struct{ now time.Time }

func (c *clock) Now() time.Time { return c.now }

func TestProgressRewritesItsLine(t *testing.T) {
	var out bytes.Buffer
	c := &clock{now: time.Unix(0, 0)}
	p := term.NewProgress(term.ProgressConfig{Out: &out, Live: true, Label: "visitors", Total: 2000, Now: c.Now})
	for _, step := range []struct {
		after time.Duration
		n     int64
	}{
		{time.Second, 1},
		{50 * time.Millisecond, 9}, // too soon to redraw
		{9 * time.Second, 990},
		{10 * time.Second, 1000},
	} {
		c.now = c.now.Add(step.after)
		p.Add(step.n)
	}
	p.Finish()
	p.Finish()
	want := []string{
		"visitors [>                       ]   0 %  1/2,000  1.00/s  33m19s left",
		"visitors [============>           ]  50 %  1,000/2,000  99.5/s  10s left",
		"visitors [========================] 100 %  2,000/2,000  99.8/s  in 20s",
		"visitors [========================] 100 %  2,000/2,000  99.8/s  in 20s\n",
	}
	got := strings.Split(out.String(), "\r")[1:]
	if diff := cmp.Diff(want, trimRight(got)); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}

// What is said beside changes while nothing is done; at the end it is not said.
func TestProgressSaysWhatElseThereIs(t *testing.T) {
	var out bytes.Buffer
	c := &clock{now: time.Unix(0, 0)}
	waiting := 7
	p := term.NewProgress(term.ProgressConfig{
		Out: &out, Live: true, Label: "visitors", Total: 8, Now: c.Now, Note: func() string { return fmt.Sprintf("%d wait", waiting) },
	})
	p.Add(0)
	c.now, waiting = c.now.Add(time.Second), 3
	p.Add(4)
	p.Finish()
	want := []string{
		"visitors [>                       ]   0 %  0/8  7 wait",
		"visitors [============>           ]  50 %  4/8  4.00/s  1.0s left  3 wait",
		"visitors [============>           ]  50 %  4/8  4.00/s  in 1.0s",
	}
	var got []string
	for _, line := range strings.Split(out.String(), "\r")[1:] {
		got = append(got, strings.TrimSpace(line))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}

// trimRight removes the spaces that wipe a longer line.
func trimRight(lines []string) []string {
	trimmed := make([]string, len(lines))
	for i, l := range lines {
		trimmed[i] = strings.TrimRight(l, " ")
	}
	return trimmed
}

func TestProgressWipesALongerLine(t *testing.T) {
	var out bytes.Buffer
	c := &clock{now: time.Unix(0, 0)}
	p := term.NewProgress(term.ProgressConfig{Out: &out, Live: true, Label: "x", Total: 3000, Now: c.Now})
	c.now = c.now.Add(time.Second)
	p.Add(1)
	c.now = c.now.Add(30 * time.Second)
	p.Add(2999)
	lines := strings.Split(out.String(), "\r")[1:]
	if len(lines) != 2 || len(lines[1]) < len(lines[0]) {
		t.Errorf("lines = %q, want the second to cover the first", lines)
	}
}

func TestProgressWithoutATotalCountsOnly(t *testing.T) {
	var out bytes.Buffer
	c := &clock{now: time.Unix(0, 0)}
	p := term.NewProgress(term.ProgressConfig{Out: &out, Live: true, Label: "runs", Now: c.Now})
	c.now = c.now.Add(90 * time.Minute)
	p.Add(1_234_567)
	p.Finish()
	if got, want := out.String(), "\rruns  1,234,567  229/s\rruns  1,234,567  229/s  in 1h30m\n"; got != want {
		t.Errorf("drew %q, want %q", got, want)
	}
}

func TestProgressFitsALineWhateverHappens(t *testing.T) {
	var out bytes.Buffer
	c := &clock{now: time.Unix(0, 0)}
	p := term.NewProgress(term.ProgressConfig{
		Out: &out, Live: true, Label: strings.Repeat("é", 60), Total: math.MaxInt64, Now: c.Now,
	})
	c.now = c.now.Add(time.Hour)
	p.Add(1)
	if got := strings.TrimPrefix(out.String(), "\r"); len([]rune(got)) != 79 {
		t.Errorf("drew %d characters, want 79: %q", len([]rune(got)), got)
	}
}

func TestProgressIsSilentWhenNobodyLooks(t *testing.T) {
	var out bytes.Buffer
	c := &clock{}
	p := term.NewProgress(term.ProgressConfig{Out: &out, Label: "visitors", Total: 2, Now: c.Now})
	p.Add(2)
	p.Finish()
	if out.Len() != 0 {
		t.Errorf("drew %q, want nothing", out.String())
	}
}

func TestProgressCountsFromManyGoroutines(t *testing.T) {
	var out bytes.Buffer
	p := term.NewProgress(term.ProgressConfig{Out: &out, Live: true, Label: "n", Total: 800, Now: time.Now})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				p.Add(1)
			}
		})
	}
	wg.Wait()
	p.Finish()
	if !strings.Contains(out.String(), "100 %  800/800") {
		t.Errorf("drew %q, want it to end with 800/800", out.String())
	}
}

func TestTableAlignsNumbersToTheRight(t *testing.T) {
	for _, c := range []struct {
		name   string
		header []string
		rows   [][]string
		want   string
	}{
		{
			"text and numbers",
			[]string{"node", "queued", "share", "wait", "address"},
			[][]string{
				{"node-1", "1,234", "98 %", "1m30s", "10.0.0.1:7001"},
				{"ñ", "5", "2.5 %", "–", "[::1]:7001"},
			},
			"node    queued  share   wait  address\n" +
				"node-1   1,234   98 %  1m30s  10.0.0.1:7001\n" +
				"ñ            5  2.5 %      –  [::1]:7001\n",
		},
		{
			"short rows leave no spaces",
			[]string{"a", "long name", "c"},
			[][]string{{"x"}, {"y", "z"}},
			"a  long name  c\nx\ny  z\n",
		},
		{"one word among numbers makes text", []string{"limit"}, [][]string{{"12"}, {"none"}}, "limit\n12\nnone\n"},
		{"no header", nil, [][]string{{"tau", "0"}, {"max wait", "1.5e-4 s"}}, "tau              0\nmax wait  1.5e-4 s\n"},
		{"only dashes are text", []string{"wide"}, [][]string{{"-"}}, "wide\n-\n"},
		{"nothing", nil, nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out bytes.Buffer
			if err := term.WriteTable(&out, c.header, c.rows); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, out.String()); diff != "" {
				t.Errorf("table (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCountPutsCommas(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0", 999: "999", 1000: "1,000", -1000: "-1,000", -999: "-999", 1_234_567: "1,234,567",
		math.MinInt64: "-9,223,372,036,854,775,808",
	} {
		if got := term.Count(n); got != want {
			t.Errorf("Count(%d) = %q, want %q", n, got, want)
		}
	}
}

func ExampleWriteTable() {
	_ = term.WriteTable(os.Stdout, []string{"kills", "tau"}, [][]string{{"0", "0"}, {"5", "1.7e-05"}})
	fmt.Println("done")
	// Output:
	// kills      tau
	//     0        0
	//     5  1.7e-05
	// done
}
