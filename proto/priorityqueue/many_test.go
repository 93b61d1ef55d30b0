package priorityqueue_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	anteroomv1 "github.com/anteroom/anteroom/proto/anteroom/v1"
)

// A quiet queue gives out the first of all nodes' items, as many as were asked
// for, in their order.
func TestManyAtOnceAreTheFirstOnesInTheirOrder(t *testing.T) {
	nodes := cluster(t, 3)
	var want []string
	for i := range 279 {
		id := fmt.Sprintf("item-%03d@n%d", i, i*7%3+1)
		put(t, nodes[i%3], "jobs", id, uint32(i/100))
		want = append(want, id)
	}
	time.Sleep(200 * time.Millisecond) // at rest
	for _, most := range []int{90, 150, 100} {
		var got []string
		for _, l := range take(t, nodes[most%3], &anteroomv1.DeleteMinRequest{Queue: "jobs", MaxItems: uint32(most), Wait: durationpb.New(5 * time.Second)}) {
			got = append(got, l.GetItem().GetId())
		}
		first := want[:min(most, len(want))]
		if len(got) != len(first) {
			t.Errorf("asked for %d of %d: got %d", most, len(want), len(got))
		}
		if !slices.Equal(got, first) {
			out := 0
			for i := range min(len(got), len(first)) {
				if got[i] != first[i] {
					out++
				}
			}
			t.Errorf("%d of %d are not where they should be", out, len(got))
		}
		want = slices.DeleteFunc(want, func(id string) bool { return slices.Contains(got, id) })
	}
}
