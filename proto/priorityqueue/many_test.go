package priorityqueue_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"

	anteroomv1 "github.com/anteroom/anteroom/proto/anteroom/v1"
)

// A quiet queue gives out the first of all nodes' items, as many as were asked
// for, in their order.
func TestManyAtOnceAreTheFirstOnesInTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
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
	})
}

// A Peek shows the first of all nodes' items without a hole, as many as were
// asked for, and says when there are more.
func TestPeekShowsAllThatThereIsOrSaysThatThereIsMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := cluster(t, 3, "large")
		fill := func(n, size int) (want []string) {
			for i := range n {
				at := 1 // most are at one node
				if i%10 == 0 {
					at = 2 + i/10%2
				}
				id := fmt.Sprintf("%d-%04d@n%d", size, i, at)
				r := &anteroomv1.InsertRequest{Queue: "large", Id: id, Payload: make([]byte, size)}
				if _, err := nodes[i%3].client.Insert(t.Context(), r); err != nil {
					t.Fatal(err)
				}
				later()
				want = append(want, id)
			}
			return want
		}
		pages := func(n uint32) (sizes []int, got []string) {
			for token := ""; ; {
				r, err := nodes[n%3].client.Peek(t.Context(), &anteroomv1.PeekRequest{Queue: "large", MaxItems: n, PageToken: token})
				if err != nil {
					t.Fatal(err)
				}
				sizes = append(sizes, len(r.GetItems()))
				for _, i := range r.GetItems() {
					got = append(got, i.GetId())
				}
				token = r.GetNextPageToken()
				if token == "" {
					return sizes, got
				}
			}
		}
		want := fill(1500, 100)
		sizes, got := pages(1000)
		if !slices.Equal(sizes, []int{1000, 500}) || !slices.Equal(got, want) {
			t.Errorf("1,000 at a time: %v; in order and complete: %v", sizes, slices.Equal(got, want))
		}
		if sizes, got = pages(150); len(sizes) != 10 || !slices.Equal(got, want) {
			t.Errorf("150 at a time: %v; in order and complete: %v", sizes, slices.Equal(got, want))
		}
		want = append(want, fill(100, 60_000)...)
		if sizes, got = pages(1000); len(sizes) < 3 || !slices.Equal(got, want) {
			t.Errorf("with 100 large ones: %v; in order and complete: %v", sizes, slices.Equal(got, want))
		}
		_, err := nodes[0].client.Peek(t.Context(), &anteroomv1.PeekRequest{Queue: "large", PageToken: "elsewhere"})
		refused(t, err, codes.InvalidArgument, "request_invalid")
	})
}
