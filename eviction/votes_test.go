package eviction

import "testing"

// A name votes in its latest life: in the one that was in a wave with anybody
// on the line last, unless this one has installed a primary wave, or was restored, since. Lives whose disk it has are over.
func TestANameVotesInItsLatestLife(t *testing.T) {
	early, late, line := Member{"a", 1}, Member{"a", 2}, Line{1, "a"}
	tests := []struct {
		name  string
		life  Member
		since uint64
		lives []uint64
		met   []Rival
		want  bool
	}{
		{"nobody else", early, 5, nil, nil, true},
		{"another name", early, 5, nil, []Rival{{Line: line, Member: memberB, Wave: 9}}, true},
		{"another life, before", late, 5, nil, []Rival{{Line: line, Member: early, Wave: 4}}, true},
		{"another life, since", early, 5, nil, []Rival{{Line: line, Member: late, Wave: 6}}, false},
		{"an earlier life, seen since", late, 5, nil, []Rival{{Line: line, Member: early, Wave: 6}}, false},
		{"both in one wave, the first", early, 5, nil, []Rival{{Line: line, Member: late, Wave: 5}}, false},
		{"both in one wave, the second", late, 5, nil, []Rival{{Line: line, Member: early, Wave: 5}}, true},
		{"an earlier life, seen since, whose disk it has", late, 5, []uint64{1}, []Rival{{Line: line, Member: early, Wave: 6}}, true},
		{"another life, seen since, whose disk it has not", early, 5, []uint64{0}, []Rival{{Line: line, Member: late, Wave: 6}}, false},
		{"another life, seen since on another line", early, 5, nil, []Rival{{Line: Line{2, "a"}, Member: late, Wave: 6}}, true},
		{"another life, seen since by who knows of no line", early, 5, nil, []Rival{{Member: late, Wave: 6}}, false},
		{"two others, the one before", late, 5, nil, []Rival{{Line: line, Member: early, Wave: 4}, {Line: line, Member: Member{"a", 3}, Wave: 6}}, false},
	}
	for _, test := range tests {
		w := &wave{list: []Member{test.life}, sum: Reply{Rivals: test.met}}
		if got := w.votes(&NodeReply{Since: test.since, Lives: test.lives}, line); got != test.want {
			t.Errorf("%s: votes %t, want %t", test.name, got, test.want)
		}
	}
}
