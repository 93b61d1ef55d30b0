// Package series keeps how the rooms of a cluster were over time: one row for each
// room and each second, ten seconds, minute and hour in which something was so.
//
//	live := series.New()                                  // counts, and samples once a second
//	kept, err := series.Open(dir, log)                    // the minutes, in memory or on disk
//	minute := live.Tick(now, samples)                     // once a second
//	kept.Add("node-1", minute)                            // when a minute is over
//	rows := series.Read(live, kept, "node-1", "shop", span)
//
// A node writes down its own part. What several nodes wrote of the same step is
// added up by Row.Merge, and so are the steps of a longer one: sums, maxima and
// histograms merge exactly, in any order.
//
// A room in which nobody is and nothing happens costs a row a day, and one for
// each change of its limit, rate or state.
package series
