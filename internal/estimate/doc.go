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
// [Room.Forecast] plays the room on, in steps, in expectation. Whoever is there
// leaves at the age that the life table gives to those who got as far; whoever is
// called begins a visit of their own, or does not come and holds the slot for the
// claim window. Nobody is called before Opens, nor faster than PerMinute; slots
// that are lost come back when they do; a limit that was lowered is first waited
// out; those ahead who give up make the line shorter. The time at which the sum of
// calls reaches n is when the n-th is called, if all goes as expected.
//
// # The quartiles
//
// Of n calls the number that come by a time is about gamma distributed, so that
// the n-th comes when the expected number is the quantile of a gamma distribution
// with mean n (Wilson and Hilferty). Its variance has two parts: that of the visits
// between now and then, n × cv² as in a renewal process, and that of the life
// table, which is made of so many visits: (n × cv)² / visits. Calls that come by
// the rate and not by slots have none.
//
// # When nothing is said
//
// Without the ends of enough visits, or where the n-th is called only after visits
// are older than any that was seen, there is no estimate.
package estimate
