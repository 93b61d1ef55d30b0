package term

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// columnGap stands between two columns.
const columnGap = "  "

// WriteTable writes header and rows with aligned columns: numbers to the right,
// text to the left. A column is of numbers when each cell that says anything
// is one, with or without a unit ("12", "1,234", "3.1 ms", "98 %", "1m30s").
// A row may be shorter than the header, not longer. A nil header is left out.
//
// text/tabwriter aligns either all columns to the right or none, which is why
// this does its own padding.
func WriteTable(w io.Writer, header []string, rows [][]string) error {
	columns := len(header)
	for _, row := range rows {
		columns = max(columns, len(row))
	}
	if header != nil && columns > len(header) {
		panic("term: a row has more cells than the header")
	}
	widths := make([]int, columns)
	numeric := make([]bool, columns)
	for c := range columns {
		numeric[c] = isNumeric(rows, c)
		for _, row := range rows {
			widths[c] = max(widths[c], width(cell(row, c)))
		}
		widths[c] = max(widths[c], width(cell(header, c)))
	}
	b := bufio.NewWriter(w)
	if header != nil {
		writeRow(b, header, widths, numeric)
	}
	for _, row := range rows {
		writeRow(b, row, widths, numeric)
	}
	return b.Flush()
}

// writeRow leaves no spaces at the end. Flush of b reports what goes wrong.
func writeRow(b *bufio.Writer, row []string, widths []int, numeric []bool) {
	var line strings.Builder
	for c, w := range widths {
		if c > 0 {
			line.WriteString(columnGap)
		}
		text := cell(row, c)
		pad := strings.Repeat(" ", w-width(text))
		if numeric[c] {
			line.WriteString(pad + text)
		} else {
			line.WriteString(text + pad)
		}
	}
	fmt.Fprintln(b, strings.TrimRight(line.String(), " "))
}

func cell(row []string, c int) string {
	if c < len(row) {
		return row[c]
	}
	return ""
}

func width(s string) int { return utf8.RuneCountInString(s) }

// isNumeric reports whether column c has numbers and nothing else. Dashes and
// empty cells stand for a missing number and so say nothing.
func isNumeric(rows [][]string, c int) bool {
	found := false
	for _, row := range rows {
		switch text := strings.TrimSpace(cell(row, c)); {
		case text == "" || text == "-" || text == "–" || text == "—":
		case isNumber(text):
			found = true
		default:
			return false
		}
	}
	return found
}

func isNumber(text string) bool {
	if _, err := time.ParseDuration(text); err == nil {
		return true
	}
	number, unit, _ := strings.Cut(text, " ")
	if strings.ContainsFunc(unit, unicode.IsDigit) {
		return false
	}
	number = strings.ReplaceAll(strings.TrimSuffix(number, "%"), ",", "")
	_, err := strconv.ParseFloat(number, 64)
	return err == nil
}

// Count is n with a comma between each three digits.
func Count(n int64) string {
	digits := strconv.FormatInt(n, 10)
	sign := ""
	if n < 0 {
		sign, digits = "-", digits[1:]
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return sign + digits
}
