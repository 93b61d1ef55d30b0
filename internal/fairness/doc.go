// Package fairness measures how far the order in which people were let in
// strays from the order in which they joined. It is the one definition that
// load, sim, report, the gateway and the simulator share.
//
// # Model
//
// A ticket is entitled at the first epoch whose cut reaches it; entitlement is
// ordered by (epoch, key). In a first-in-first-out room the key is the weight,
// (stamp, ticket id). The normalised Kendall tau distance is the share of pairs
// of people who were entitled in the opposite order to the one they joined in:
//
//	tau = discordant pairs / (n(n-1)/2)
//
// 0 is perfect, 1 is back to front, 1/2 is what a lottery gives. Pairs that tie
// in either order are not discordant.
//
// People who found room and walked straight in never queued, so they have no
// place in that order. Whom they overtook is counted apart, as open inversions;
// so is the delay from entitlement to call, during which a slot is in transit.
//
// # The thesis's count
//
// [Koopmans] orders evictions by the millisecond and counts a pair that ties on
// one side only as a mistake, so two people let in during the same millisecond
// make one whichever came first. Report has that count too, computed over
// everybody, so that figures can be set beside those of the thesis; it is not a
// measure of disorder.
//
// # Cost
//
// Everything is O(n log n): Knight's merge sort counts the pairs of the thesis,
// a Fenwick tree counts who was overtaken by how many.
//
// # References
//
//   - [Kendall] M. G. Kendall. "A New Measure of Rank Correlation".
//     Biometrika 30, 1938.
//   - [Knight] W. R. Knight. "A Computer Method for Calculating Kendall's Tau
//     with Ungrouped Data". JASA 61, 1966.
//   - [Koopmans] J. Koopmans. "Distributed Virtual Waiting Room". BSc thesis,
//     Radboud University, 2024.
package fairness
