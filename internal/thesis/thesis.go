// Package thesis holds the figures published in the thesis that anteroom builds
// on, so that `sim thesis` and the README can set theirs beside ours:
//
//	J. Koopmans. Distributed Virtual Waiting Room. BSc thesis, Radboud
//	University, 2024. Table A.1 (simulation) and Table 6.2 (throughput).
//
// The thesis counts two people evicted in the same millisecond as a mistake
// (package fairness explains the count). Recounts tells how little of the
// published distances is disorder.
package thesis

import (
	_ "embed"
	"encoding/csv"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// RunsPerCell is how many simulations each published cell is the mean of.
const RunsPerCell = 1000

// Unlimited is the target that the thesis calls INF: everybody is let in.
const Unlimited = 99999999

// LiveUsers is how many simulated users each live test let through.
const LiveUsers = 5000

var (
	//go:embed thesis-simulation.csv
	simulationCSV string
	//go:embed thesis-throughput.csv
	throughputCSV string
)

// Cell is a row of Table A.1: one combination of parameters.
type Cell struct {
	Target          int     // people wanted on the site at a time, or Unlimited
	Users           int     // people who join, in 100 s
	Kills           int     // nodes removed, and as many added, of 8
	KendallTau      float64 // mean, ties on one side counted as mistakes
	SimulatedMillis int     // mean time until everybody was let in, ms
}

// TargetName is the target as the thesis prints it: INF when unlimited.
func (c Cell) TargetName() string {
	if c.Target == Unlimited {
		return "INF"
	}
	return strconv.Itoa(c.Target)
}

// Cells is Table A.1 in the order of its figures: by users, then target, then
// kills. The caller owns the slice.
func Cells() []Cell {
	var cells []Cell
	for _, r := range rows(simulationCSV, 5) {
		cells = append(cells, Cell{
			Target:          whole(r[0]),
			Users:           whole(r[1]),
			Kills:           whole(r[2]),
			KendallTau:      decimal(r[3]),
			SimulatedMillis: whole(r[4]),
		})
	}
	slices.SortFunc(cells, func(a, b Cell) int {
		return slices.Compare([]int{a.Users, a.Target, a.Kills}, []int{b.Users, b.Target, b.Kills})
	})
	return cells
}

// LiveTest is a column of Table 6.2: LiveUsers people let through by nodes that
// ran as processes of one 2-core machine.
type LiveTest struct {
	Nodes          int
	Seconds        [3]float64 // until everybody was let in, one for each run
	MeanSeconds    float64    // as published
	UsersPerSecond float64    // as published
}

// Throughput is Table 6.2, by the number of nodes. The caller owns the slice.
func Throughput() []LiveTest {
	var tests []LiveTest
	for _, r := range rows(throughputCSV, 6) {
		tests = append(tests, LiveTest{
			Nodes:          whole(r[0]),
			Seconds:        [3]float64{decimal(r[1]), decimal(r[2]), decimal(r[3])},
			MeanSeconds:    decimal(r[4]),
			UsersPerSecond: decimal(r[5]),
		})
	}
	return tests
}

// rows is the records of an embedded table without its header. The tables are
// part of the program: one that does not parse is a programmer's error.
func rows(table string, columns int) [][]string {
	r := csv.NewReader(strings.NewReader(table))
	r.FieldsPerRecord = columns
	records, err := r.ReadAll()
	if err != nil {
		panic(fmt.Sprintf("thesis: embedded table: %v", err))
	}
	return records[1:]
}

func whole(field string) int {
	n, err := strconv.Atoi(field)
	if err != nil {
		panic(fmt.Sprintf("thesis: embedded table: %v", err))
	}
	return n
}

func decimal(field string) float64 {
	x, err := strconv.ParseFloat(field, 64)
	if err != nil {
		panic(fmt.Sprintf("thesis: embedded table: %v", err))
	}
	return x
}
