package server

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/node"
	"github.com/anteroom/anteroom/internal/ticket"
	"github.com/anteroom/anteroom/qpid"
)

const µs = 1_000_000 // in a second

func waiting(id uint64, p25, p50, p75 time.Duration) *ticket.Answer {
	a := &ticket.Answer{State: ticket.Waiting, Wait: ticket.Wait{P25: p25, P50: p50, P75: p75}}
	a.Ticket.Room, a.Ticket.ID = "shop", idOf(id)
	return a
}

func idOf(n uint64) (id qpid.ItemID) {
	binary.BigEndian.PutUint64(id[8:], n)
	return id
}

func happened(e node.Event, id uint64) *node.Admission {
	return &node.Admission{Event: e, Room: "shop", Weight: qpid.Weight{ID: idOf(id)}}
}

func TestTheTruthIsComparedWithWhatWasTold(t *testing.T) {
	for _, x := range []struct {
		what  string
		told  []*ticket.Answer
		event node.Event
		at    int64 // s, of the event
		under [3]bool
		ok    bool
	}{
		{"between p50 and p75", []*ticket.Answer{waiting(8, 10*time.Second, 20*time.Second, 30*time.Second)}, node.CalledIn, 25, [3]bool{false, false, true}, true},
		{"just p50", []*ticket.Answer{waiting(8, 10*time.Second, 20*time.Second, 30*time.Second)}, node.CalledIn, 20, [3]bool{false, true, true}, true},
		{"later than all", []*ticket.Answer{waiting(8, 1*time.Second, 2*time.Second, 3*time.Second)}, node.CalledIn, 4, [3]bool{}, true},
		{"nothing was told", []*ticket.Answer{waiting(8, 0, 0, 0)}, node.CalledIn, 4, [3]bool{}, false},
		{"somebody else was told", []*ticket.Answer{waiting(9, 1*time.Second, 2*time.Second, 3*time.Second)}, node.CalledIn, 4, [3]bool{}, false},
		{"gave up", []*ticket.Answer{waiting(8, 1*time.Second, 2*time.Second, 3*time.Second)}, node.Dropped, 1, [3]bool{}, false},
		{"the cut reached them", []*ticket.Answer{waiting(8, 1*time.Second, 2*time.Second, 3*time.Second)}, node.Entitled, 1, [3]bool{}, false},
	} {
		book := newTellings()
		for _, a := range x.told {
			book.told(0, a)
		}
		if under, ok := book.cameTrue(x.at*µs, happened(x.event, 8)); under != x.under || ok != x.ok {
			t.Errorf("%s: %v, %v; want %v, %v", x.what, under, ok, x.under, x.ok)
		}
		_, again := book.cameTrue(x.at*µs, happened(node.CalledIn, 8))
		if want := x.event == node.Entitled; again != want {
			t.Errorf("%s, and then called: %v, want %v", x.what, again, want)
		}
	}
}

// Of what somebody is told one estimate counts, and each of them as often as the
// others: here the i-th says i seconds, and all say so at the same time.
func TestEachEstimateOfAPersonCountsAsOften(t *testing.T) {
	book := newTellings()
	const people, tellingsOfEach = 8000, 4
	var counted [tellingsOfEach]int
	for person := range uint64(people) {
		for i := range tellingsOfEach {
			book.told(0, waiting(person, time.Hour, time.Duration(i+1)*time.Second, time.Hour))
		}
		for s := range tellingsOfEach {
			if book.of[told{"shop", idOf(person)}].quartiles[1] == time.Duration(s+1)*time.Second {
				counted[s]++
			}
		}
		if _, ok := book.cameTrue(2*µs, happened(node.CalledIn, person)); !ok {
			t.Fatal("nobody was told")
		}
	}
	for s, n := range counted {
		if n < people/tellingsOfEach*9/10 || n > people/tellingsOfEach*11/10 {
			t.Errorf("the estimate of number %d counts %d times of %d, want a quarter", s+1, n, people)
		}
	}
}

// A million people who wait take no more memory than tellingsMax, and those who are
// remembered are spread over all. When they have gone everybody counts again.
func TestTellingsAreBounded(t *testing.T) {
	book := newTellings()
	book.max = 256
	const people = 20_000
	for person := range uint64(people) {
		book.told(0, waiting(person*0x9e3779b97f4a7c15, time.Second, time.Second, time.Second)) // ids are random
		if len(book.of) > book.max {
			t.Fatalf("%d are remembered, the bound is %d", len(book.of), book.max)
		}
	}
	if len(book.of) < book.max/4 {
		t.Errorf("%d are remembered of %d who wait, the bound is %d", len(book.of), people, book.max)
	}
	late := 0
	for person := range uint64(people) {
		if _, ok := book.cameTrue(µs, happened(node.CalledIn, person*0x9e3779b97f4a7c15)); ok && person > people/2 {
			late++
		}
	}
	if late < book.max/10 {
		t.Errorf("%d of those who count came in the second half", late)
	}
	if book.sample != 0 {
		t.Errorf("one of 2^%d people counts, although few wait", book.sample)
	}
}

func BenchmarkTold(b *testing.B) {
	book := newTellings()
	a := waiting(8, time.Second, time.Second, time.Second)
	for b.Loop() {
		book.told(0, a)
	}
}
