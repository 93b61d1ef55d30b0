package rules

import (
	"iter"
	"maps"
	"slices"
)

type table map[string]int

func mapOrder(m map[string]int, t table) (sum int, keys []string) {
	for range m { // want maprange
	}
	for k := range t { // want maprange
		keys = append(keys, k)
	}
	for k := range maps.Keys(m) { // want maprange
		keys = append(keys, k)
	}
	keys = slices.Collect(maps.Keys(m)) // want maprange
	byValue := func(a, b string) int { return m[a] - m[b] }
	keys = slices.SortedFunc(maps.Keys(m), byValue)             // want maprange
	maps.DeleteFunc(m, func(string, int) bool { return false }) // want maprange

	for _, v := range m { //puretest:sorted addition commutes
		sum += v
	}
	for _, v := range m { /* want directive */ //puretest:sorted
		sum += v
	}
	for range keys { /* want directive */ //puretest:sorted but this is a slice
	}
	for _, k := range slices.Sorted(maps.Keys(maps.Clone(m))) {
		sum += m[k]
	}
	return sum, keys
}

func generic[M ~map[K]V, K comparable, V any](m M) {
	for range m { // want maprange
	}
}

func genericSlice[S ~[]E, E any](s S) {
	for range s {
	}
}

func fine(m map[string]int, each iter.Seq[int]) int {
	for range each {
	}
	for range len(m) {
	}
	clear(m)
	delete(m, "x")
	return m["x"]
}
