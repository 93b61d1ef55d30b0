package estimate_test

import "testing"

// BenchmarkForecast plays a room on in which 400 wait for 100 slots.
func BenchmarkForecast(b *testing.B) {
	length := int64(0)
	s := newSite(100, func() int64 { length++; return (60 + length*37%120) * second })
	for len(s.ends) < s.limit {
		s.enter()
		s.now += second
	}
	for range 400 {
		s.next()
		s.enter()
	}
	room := s.room(400)
	b.ReportAllocs()
	for b.Loop() {
		s.visits.Forecast(room, s.now)
	}
}
