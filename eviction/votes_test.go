package eviction

import "testing"

// A name votes in its latest life: in the one that was in a wave with anybody
// here last, unless this one has installed a primary wave, or was restored, since. Lives whose disk it has are over.
func TestANameVotesInItsLatestLife(t *testing.T) {
	early, late := Member{"a", 1}, Member{"a", 2}
	tests := []struct {
		name  string
		life  Member
		since uint64
		lives []uint64
		met   []Sighting
		want  bool
	}{
		{"nobody else", early, 5, nil, nil, true},
		{"another name", early, 5, nil, []Sighting{{Member: memberB, Wave: 9}}, true},
		{"another life, before", late, 5, nil, []Sighting{{Member: early, Wave: 4}}, true},
		{"another life, since", early, 5, nil, []Sighting{{Member: late, Wave: 6}}, false},
		{"an earlier life, seen since", late, 5, nil, []Sighting{{Member: early, Wave: 6}}, false},
		{"both in one wave, the first", early, 5, nil, []Sighting{{Member: late, Wave: 5}}, false},
		{"both in one wave, the second", late, 5, nil, []Sighting{{Member: early, Wave: 5}}, true},
		{"an earlier life, seen since, whose disk it has", late, 5, []uint64{1}, []Sighting{{Member: early, Wave: 6}}, true},
		{"another life, seen since, whose disk it has not", early, 5, []uint64{0}, []Sighting{{Member: late, Wave: 6}}, false},
		{"another life, of which only a guess is known", late, 5, nil, []Sighting{{Member: early, Epoch: 1 << 20}}, true},
	}
	for _, test := range tests {
		w := &wave{list: []Member{test.life}, sum: Reply{Met: test.met}}
		if got := w.votes(&NodeReply{Since: test.since, Lives: test.lives}); got != test.want {
			t.Errorf("%s: votes %t, want %t", test.name, got, test.want)
		}
	}
}
