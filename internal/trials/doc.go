// Package trials runs many simulations and sums up what they show: batches
// spread over processors whose results do not depend on how many there are,
// the 27 cells of the thesis, and the tables and pictures made of both.
//
// Every number here is a function of the options and seeds. How long a run
// took by a real clock is the one exception; it is in no file.
package trials
