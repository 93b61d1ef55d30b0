// Package governor finds out how many people an origin bears, and bounds a room's
// limit by that.
//
// Every node counts what comes of its requests to the origin (Figures). Whoever runs
// the waves hears of all of them, sums them up over windows of two seconds or more
// (Watch), judges each window (Judge) and sets the bound (Config.Next): additive
// increase and multiplicative decrease, AIMD, of [Chiu], on whether the slowest answers
// and the failures are within a goal, as in [Welsh]. What is controlled is the number
// of people on the site, not the rate of calls: people are what makes requests, and
// their number is what the room bounds in any case.
//
// Deviations. The bound is lowered from the people who are inside, not from the bound
// itself: nobody is thrown out, so a bound that was lowered is felt as they leave, and
// until then to lower it again would punish the origin's recovery. It is raised only
// while it is used up, as in RFC 7661: a quiet night says nothing of what the origin
// bears at noon. Between good and bad there is a range in which it stays.
//
// The bound is never above the room's limit and never below the floor. So all that a
// wrong judgement can do is to let in fewer people than the origin would bear.
//
//   - [Chiu] D.-M. Chiu, R. Jain, Analysis of the Increase and Decrease Algorithms for
//     Congestion Avoidance in Computer Networks, Computer Networks and ISDN Systems 17,
//     1989.
//   - [Welsh] M. Welsh, D. Culler, Adaptive Overload Control for Busy Internet Servers,
//     USITS 2003.
package governor
