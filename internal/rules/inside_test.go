package rules

import "testing"

func TestARuleThatBreaksIsNotMetAndCounted(t *testing.T) {
	broken := &Expression{func(*Request) Truth { panic("a defect") }}
	good, err := Parse("ssl", nil)
	if err != nil {
		t.Fatal(err)
	}
	s := &Set{rules: []ready{{Rule{Description: "broken"}, broken}, {Rule{Description: "good"}, good}}}
	if met, n := s.Match(&Request{HTTPS: true}); met == nil || met.Description != "good" || n != 1 {
		t.Errorf("met %v, %d broken", met, n)
	}
	if met, n := s.Match(&Request{}); met != nil || n != 1 {
		t.Errorf("met %v, %d broken", met, n)
	}
	if v := s.Explain(&Request{}); v[0].Truth != Unknown {
		t.Errorf("the broken one says %v", v[0].Truth)
	}
}
