package server

import (
	"slices"
	"sync"

	"github.com/anteroom/anteroom/internal/fairness"
	"github.com/anteroom/anteroom/internal/history"
)

const (
	bookMax  = 100_000 // people whose fairness a node measures as it goes
	freshMax = 16_384  // entries that wait to be written into the book; older ones are forgotten
	batchMin = 1024    // so many are written at once
)

// book is of whom this node has called. The loop writes it and cannot wait while
// somebody has a long one measured, which takes as long as a wave may: what is
// new lies apart until the book is free.
type book struct {
	mu    sync.Mutex // of fresh
	fresh []history.Entry
	whole sync.Mutex // of pages; taken before mu, or tried
	pages *history.Book
}

func newBook() *book { return &book{pages: history.NewBook(bookMax)} }

func (b *book) add(e history.Entry) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fresh = append(b.fresh, e)
	switch n := len(b.fresh); {
	case n >= batchMin && b.whole.TryLock():
		b.write()
		b.whole.Unlock()
	case n > freshMax:
		b.fresh = slices.Delete(b.fresh, 0, n/2)
	}
}

// write takes in what is new. The caller holds both locks.
func (b *book) write() {
	for _, e := range b.fresh {
		b.pages.Add(e)
	}
	b.fresh = b.fresh[:0]
}

func (b *book) report(room string) fairness.Report {
	b.whole.Lock()
	defer b.whole.Unlock()
	b.mu.Lock()
	b.write()
	b.mu.Unlock()
	return b.pages.Report(room, 0)
}
