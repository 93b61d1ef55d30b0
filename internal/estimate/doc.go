// Package estimate tells how long somebody waits: when the n-th of a line is
// called, with quartiles.
//
// # The model
//
// People are called when slots come free, and slots come free when visits end. So
// all there is to know is how long visits last. [Visits] keeps that as a life
// table: of those who were still there at some age, what share left before the
// next. Who is there now counts as far as their age goes (censoring, as in the
// estimator of Kaplan and Meier), so a room in which nobody has left yet is no
// proof that people leave soon, and people who walked in while there was room are
// no turnover.
//
// What the room's history tells of visits of before ([Visits.Before]) is the prior of the
// life table: beside those that reached an age and those that ended there, four visits
// count that lasted as those of before did. That is the mean of the posterior of a beta
// process whose prior has the hazards of the history (Hjort, Nonparametric Bayes
// estimators based on beta processes in models for life history data, Annals of
// Statistics 18, 1990), with the weight of four visits at birth, and at each age that of
// those that get so far. It does not fade, and weighs less with each visit that is seen.
//
// [Visits.Forecast] plays the room on, in steps, in expectation. Whoever is there
// leaves at the age that the life table gives to those who got as far; whoever is
// called begins a visit of their own, or does not come and holds the slot for the
// claim window; between two visits a slot lies idle for as long as it did lately.
// Nobody is called before Opens, nor faster than PerMinute; slots that are lost come
// back when they do; a limit that was lowered is first waited out. The time at which
// the calls reach the n-th place is when the n-th is called, if all goes as expected.
//
// Those ahead who give up make the line shorter. A second life table says when they
// do: most go soon after they came, so that it matters for how long those ahead have
// waited. A call reaches as many places further as people there are gone by then.
//
// # The quartiles
//
// The n-th is called when the number of calls comes to n. That number has a spread:
//
//   - Of those who are there now each has left by a time or has not. So near the
//     front calls come one by one like buses, at any moment: variance Σ p(1-p).
//   - Later on it is that of a renewal process. While those who came last are about to go
//     at about the same time, each slot has had its k-th end or not: (cv² k/π)^½ for each
//     slot; from there on cv² for each visit.
//   - Nobody knows which of those ahead give up.
//   - Calls that come by the rate and not by slots have none of this. How far the
//     next one has come nobody knows: any share of it, as likely as another.
//
// And all of them may be early or late together, which is a spread of the time and not
// of the number: people who came at once go at once, so that many are called in a moment
// of which nobody knows when exactly it is.
//
//   - The life table is made of so many visits: cv² / visits, of the time. And the
//     model is no more than that: 3 %.
//   - A slot lies idle for about as long as others did, or not at all, or for twice that.
//
// The n-th is called when the expected number of calls is the quantile of a gamma
// distribution (Wilson and Hilferty) with that variance and a mean of n, where calls
// come whenever they like, to n - 1/2, where they come evenly.
//
// # When nothing is said
//
// Without the ends of enough visits, here or in the history, or where the n-th is called only after a tenth of
// the visits are older than any that was seen, there is no estimate.
package estimate
