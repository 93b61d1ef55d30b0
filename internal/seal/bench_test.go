package seal_test

import "testing"

func BenchmarkTicket(b *testing.B) {
	r := newRing(b, newClock())
	t := aTicket("shop")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Ticket(t); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkOpenTicket(b *testing.B) {
	r := newRing(b, newClock())
	s := mustTicket(b, r, aTicket("shop"))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.OpenTicket("shop", s); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkOpenPass(b *testing.B) {
	r := newRing(b, newClock())
	s := mustPass(b, r, aPass("shop"))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.OpenPass("shop", s); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkJWT(b *testing.B) {
	r := newRing(b, newClock())
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.JWT(aPass("shop"), "anteroom"); err != nil {
			b.Fatal(err)
		}
	}
}
