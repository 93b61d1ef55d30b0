// Package dashboard is the page that operators look at: one document, its style
// and its scripts, all of them in the program, and a stream of what a node sees,
// once a second.
//
// Nothing is built and nothing is fetched from elsewhere. The page has its style in
// it, so that nothing else has to come before it is seen, and no script. Its
// Content-Security-Policy takes the style by its sum, and scripts from the port
// itself only. All that a browser loads is at most 150 kB before compression.
//
// # The stream
//
// However many look, the node is asked once a second, and what it says is put
// into JSON once; while nobody looks it is not asked at all. So a page is at most
// a second behind the node. There is a bound on how many may listen: each holds
// one of the port's few connections. A page that is not to be seen (another tab
// is in front) does not listen.
//
// # The page
//
// main.js goes by the address: the part after # is the room that is shown, or
// nothing for all of them. It draws with words.js (figures and times as people
// read them), overview.js (all rooms, nodes and changes), room.js (one room) and
// charts.js, which uses uPlot (assets/uplot, as it is published).
//
// Figures come every second, and nothing that somebody is about to press moves with
// them: what changes has as many lines as it may need.
package dashboard
