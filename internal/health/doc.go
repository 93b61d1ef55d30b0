// Package health finds out whether the origins behind the rooms answer as they
// should.
//
// A few nodes look at each origin, by the checks that its room lists: Probe asks
// once, a Runner asks again and again and tells what it has come to think. Those
// nodes are the same at every node that sees the same members (Checkers). Whoever
// runs the waves hears of all of them and decides by majority (Decide): so neither
// one node whose network is broken holds a room, nor does the loss of one stop the
// checks.
//
// What may be reached is what the operator wrote down, and nothing else: a
// redirect is followed to the same host and port only, if at all.
package health
