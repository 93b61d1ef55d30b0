// Package eviction decides, without a leader to elect or a database to ask, who
// of the people waiting at many nodes is called next, and how many may be on
// the site. It is a pure state machine: messages, clock readings and the failure
// detector's views go in, messages and decisions come out.
//
// # Use
//
// A Node is one node's part; it has a Gate for every room. The owner keeps the
// visitors, and their weights in the gate's Queue. Package internal/node is
// that owner:
//
//	err := n.Step(now, message) // or n.Tick(now), n.SetView(now, view)
//	messages, installed := n.Take()
//	for _, in := range installed { // before anything else is done
//		if in.Reset { … }    // the account is another one: nothing is in use
//	}
//	for n.Calls(gate, now) && next visitor ≤ gate.Cut() && gate.Spend(now.Boot) {
//		call the next visitor
//	}
//
// Messages between two nodes must arrive at most once and in order, or not at
// all. They are immutable once sent. What came over the network is checked
// before it is used: a peer has proved who it is, not that it makes sense.
//
// # The wave
//
// Several times a second the coordinator, the node that has been up longest,
// runs a wave over a tree of all members that answer ([TAG]): a Gather goes
// down, a Reply with the sums of a subtree comes up, a Commit goes down, three
// messages per edge. The tree is the heap layout of the gather's list, so equal
// lists are equal trees. A wave is named by its epoch. A node answers only the
// highest epoch that it has seen, and installs a commit only if it answered
// that wave and none since: a wave that dies leaves nothing to undo, a repeated
// message changes nothing, and what a reply promised holds until the commit.
//
// The coordinator decides only if every listed node has replied within the
// deadline. Who fails waves for exclude_after is left out for a while, longer
// each time; and who fails one and is slow, its last two round trips longer than the
// deadline, is so at once, until three in a row have fitted. Nobody is void for having been
// left out before exclude_after, nor does whoever left them out list them sooner: whoever is
// left out early is in no other state than one that is lost. Members enter the list
// by answering a Probe within the deadline, which also measures their clock: it must
// be within max_skew of the median. A node that has followed nobody for exclude_after times
// its own place in the order begins: a coordinator is silent when it is gone, or when all others are slow to it.
// Where links are cut so that a coordinator reaches a few and these reach the rest, whoever lists a quorum
// goes before who is senior, and who follows one without a quorum for long finds out whether it lists one itself: see bid,
// which says why that ends.
//
// # The way through the code
//
// A wave begins in lead.go, which asks bid.go whether to, candidate.go whom to list and budget.go of which
// rooms. It goes down and up in wave.go; reply.go has what a node says of a room. What
// is decided follows from the replies alone: by what right in authority.go, with whose
// votes in voters.go, and for each room in decide.go, with leaving.go for its line, settle.go for the slots, by
// the rule of supply.go, and next.go for who is called. It goes down in commit.go, which
// has each room's gate.go install its part: for those on their way back in comeback.go, for the
// visits of earlier lives in resume.go,
// of the settings in inforce.go, of the slots in escrow.go, by the book of ledger.go,
// and of the queue in cut.go. What nobody renews ends in lapse.go. After that lease.go
// says whether somebody may be called. What a gate is made of begins in its file with
// its fields and what is true of them at any time; assert.go looks at that.
//
// # Names
//
// What a wave has carried to a node goes by the name of that wave, its epoch, from then
// on. A gather leaves out its list if it is that of the wave that the coordinator
// installed last (Gather.As); a reply leaves out its voters if they are those that the
// gather names, by the wave that carried them (Gather.Voters, NodeReply.Named); and a
// commit those that it only carries on, towards nodes whose reply has named them
// (Commit.Carried). What is left out is put back at once by whoever receives it, so
// that all decisions are made from what was said in full. It is the same, because
//
//   - an epoch names one wave in one life of one coordinator (see nextEpoch), and
//     that wave has one list and at most one commit;
//   - a node takes a list by name only if it has installed the wave named, and no other
//     since. Else it has not joined the new wave, has promised nothing, and asks
//     whoever sent the gather (Ask) for the list. An answer that is lost costs this
//     wave, as a gather that is lost does;
//   - a node says that its voters are those named only if it holds voters carried by
//     just that wave. One that missed it, or knows of a later one, says what it holds;
//   - the coordinator puts in its own voters, which it has named: only the install of
//     another wave changes them, and that ends its own;
//   - a commit carries voters on only if nothing of them differs but the wave that
//     carried them. A change, also a mere proposal, goes out in full.
//
// So a stale name mints, voids and votes nothing: who cannot resolve one is as one that
// the message did not reach. A coordinator that changes begins another list, in full.
//
// # The cut
//
// A visitor's weight is the join stamp, a hybrid logical clock, and a random
// id. The gather carries a time T; with its reply a node promises to stamp
// nothing at or before T any more. So the tickets up to T are all counted, and
// the largest weight with at most K of them at or below it, K being the free
// slots, is a certified prefix of the order: nobody can turn up before it. That
// weight is the cut, a permission that only grows. A ticket is entitled by the
// first epoch whose cut reaches it. While the view stands, two tickets are never
// entitled in the wrong order: if a < b and b is within the cut of e, then a was
// stamped before its node's reply to e, and so was counted in e. A node sends up to 512
// of its lightest tickets, a quarter and 64 more than the last wave needed, and the cut is exact:
// up to some 350 free slots. Above, each node sends 64 samples with
// their ranks, and the cut is the largest sample whose upper bound is within K.
//
// In a random room the weights of one wave are a keyed hash of the ids, new each
// time, and the commit marks those drawn. A room with a shuffled event re-keys
// its queue once, at the start.
//
// # Slots
//
// A room's limit is that many slots. Each is owned by one account, a member's
// Ledger, and spent by whoever owns it: calling takes a free slot, the end of
// the session gives it back. Slots move in direct messages that carry running
// totals, so a repeated one is harmless. They are made and destroyed only by
// waves. This is escrow ([Escrow], [Bounded]): the limit is a local check, and
// holds under any loss, delay, crash or partition, because
//
//	owned = minted + Σ received − Σ sent,  used ≤ owned
//
// is true of each ledger, and a slot under way is owned by nobody.
//
// A node that leaves also gives away slots that are in use, each together with the
// visit that uses it. Neither its sender nor, until the message has come, anybody else
// has that use on its books, so nobody can extend the pass meanwhile or spend the slot:
// the receiver books slot and use in one step, and takes no later transfer for more
// slots before it has. What is lost on the way is an account's slot like any other,
// made again when D is over, and with it the pass. The node stays in the waves until
// others have all that it gave, a wave has counted nobody there, and it is no voter.
//
// # Leases and voids
//
// When a node is lost, its slots must be made again, the one dangerous act. So
// an account acts only under a lease, which a commit grants from the moment of
// the gather, room by room, for as long as L; and a pass lasts TTL from the
// check of the lease. A coordinator that misses a member voids its accounts
// (Void), waits until every listed node has heard of it (safe), and until D
//
//	D = (Lc + L + TTL) × 1.0004 + 2ε + margin
//
// has passed since anyone was last in a wave with it; then the account is
// settled, and slots are minted up to the limit, but for those that others who
// are lost may still use: how many these are was fixed when all knew of their loss,
// so that every loss has a D of its own (see [Supply], which has the proof). Where
// nobody can tell how many there are, as a quorum was started again, the slots of everybody else
// are counted as soon as all know of those who are lost ([Census]), and D later that is all there is. The
// argument for D: the member's last
// lease came from a wave with a quorum of nodes that know. Some node of it is in
// the quorum of now and knows of that wave at the latest from its own gather, so
// the lease was over Lc + L after that sighting, the last pass TTL later, and no
// two clocks differ by more than 2ε when they are measured, nor come apart faster
// than by 400 in a million, 200 each, while one of them waits (driftMax). What the member still has under way is
// refused, since nodes take slots only from accounts that their last commit
// listed. If it comes back, it has closed the account itself by then, or is told
// to, and opens another one.
//
// An account is (member, boot id, Born): Born is the number of the epoch that
// opened it, and a Void covers all accounts of a member up to an epoch. A pass
// of a voided account is good until it expires. Its session goes on at one node,
// the Heir, once its old node can no longer extend it and as soon as the heir has
// a free slot for it, before anybody from the queue.
//
// # Voters and lines
//
// A wave is primary if those of its nodes that know are a majority of the
// voters, or half of them with the lowest name. To know is to have been in a
// primary wave in this life, to have been there when the line began, or to have
// kept a Record on disk. A node that forgot, and one that never knew, does not
// count and mints nothing, until primary waves have spoken to it of each room there is (see Node.remember). A name votes in its latest life only: somebody who
// starts another node under the name of one that is cut off gives it no second
// vote (see wave.votes, which has the proof). The latest is the one that a primary wave
// of the line has listed last, as far as those know who are on it: who comes back with its disk votes as of the wave that
// the disk has, and who went over to another line does so on rooms that stayed as it left
// them, by what was known of its name then. The voters change by one name at a
// time, through a proposal that needs majorities of old and new: of two proposals
// the one that the later wave carried counts, and it takes force when a majority
// is seen to hold it by the same wave ([Paxos]). So the quorums of neighbouring
// versions meet in a node that knows.
//
// A Line is one founding of authority. A cluster is founded when as many nodes
// are together as were told to expect each other. The founding wave fixes only
// the line and its voters: leases and slots come with the first wave in which all
// of them are on that line, so that of two foundings which share a node one gets
// there (see wave.together). From then on a quorum will do. Foundings that share no
// node both get there: expect has to be more than half of the nodes, those counted
// that are added later, and a node that has forgotten everything, with no keys from
// before, is another one. So founders wait for a node that one of them hears of and that
// knows of a line (Node.waitsFor), and two lives of a name are one of those expected.
//
// A side that has seen no quorum for survivor_after goes on alone, on a line of its
// own, and exceeds the limit by what the others let in; what else may is said at the theorem. Each room
// follows in its own time, and one with survivor_after 0 stays where it is and calls nobody, until its nodes
// meet a majority of the voters of the line on which it is. One that shares follows at once: its
// accounts act on any side, and all reckon with that (sharing.go). A room that was never on
// a line is on the one that the survivors left (Voters.From): others may have it
// there, also if it was made since. When lines meet, the
// oldest that has its quorum in the wave goes on and the others' nodes open new
// accounts; while an older line may still live elsewhere, nobody does.
//
// # The argument, in lemmas
//
// What follows is why the limit holds, with survivor_after 0, and the order: in steps,
// each with the functions that keep it and the tests that see its breach. It is of rooms that
// have a limit: where the method is passthrough nobody needs a slot. TestSwarm judges
// each of them in every world in which it says something; the tests named here are directed at one. That they
// do notice is checked with planted bugs (package mutants).
//
// Lemma 1 (escrow). A ledger owns what was minted and received less what was sent, and
// uses no more; what is under way is nobody's. So whoever is called has a slot of the
// ledger that called them, and no two ledgers have the same one.
// Kept by Ledger.Spend, Ledger.send, Ledger.give, Ledger.receive, Ledger.fold.
// Seen by TestSlotsAreConserved, TestThesisALostTransferIsRepeated, TestScenarioWhatALeavingNodeGivesMayBeLost.
//
// Lemma 2 (one wave at a time). A node answers a wave only if it has answered no later
// one, and installs a commit only if its last answer was to that wave. So what a reply
// promises or says of lines, votes, voids, supply and what was minted is so until its commit
// is installed, or for ever unused. Calls go on meanwhile: of free slots a commit takes no more
// than are left.
// Kept by Node.onGather, Node.onReply, Node.onCommit.
// Seen by TestThesisAnOlderWaveIsIgnored, TestCommitAfterItsLeaseIsIgnored.
//
// Lemma 3 (the prefix). Nobody is stamped at or before the T of a wave after their node
// has answered it, but for waves of its own alone where its clock has been set back since; and the cut is
// at most T, and is raised to cover no more tickets than there are
// free slots. So who is entitled was counted, and so was everybody before them.
// Kept by Clock.promise, Clock.stamp, Clock.read, Node.join, Gate.reply, Gate.entitle, Front.choose, Gate.Wrong.
// Seen by TestScenarioCutStopsAtTheGathersT, TestAPromiseToACoordinatorOutlastsOneOfBefore, TestScenarioNobodyAfterTheGathersTIsCounted, TestChooseNeverTakesTooMany.
//
// Lemma 4 (leases). Nobody is called or let in, and no pass extended, but while the
// lease of the account runs, which counts from the gather; and no pass is good for longer, from
// when it is given, than the longest session that the account's node has told the others of, and
// its own disk: who is a quorum by itself tells no others. When the clock of a machine that
// stood still is set, no lease of before counts, nor a wave that was gathered before.
// Kept by Node.leased, Node.LeaseOf, Node.onCommit, escrow.lease, inForce.configure, inForce.Session, Node.Saved, Node.WrongPass.
// Seen by TestScenarioPauseThenLeaseCheck, TestScenarioALeaseCountsFromTheGather, TestScenarioALeaseOfBeforeAStandstillIsOver, TestCommitOfBeforeTheClockWasSetIsIgnored, TestScenarioALongerSessionWaitsUntilAllAgree, TestScenarioALongerSessionWaitsForTheDisk, TestScenarioAShorterSessionForgetsNoLongerPass.
//
// Lemma 5 (clocks). A pass is judged only by clocks that a quorum has taken for right,
// and two of them are no further apart than D reckons with, but for those of a machine
// that stood still with its clocks, and of one that is a quorum by itself and began with its
// clock ahead: it goes back once all that went by it is over, and if it is restarted with its clock
// right before that, passes of before are good for as long as it was ahead.
// Kept by Node.Clear, Clock.read, Clock.distrust, Clock.behind, Clock.followWall, Clock.beganAhead, Node.clocksAgree.
// Seen by TestScenarioARestartedNodesClockJudgesNoPass, TestScenarioAClockThatIsOffHonoursNoPass, TestScenarioDReckonsWithClocksThatDrift, TestScenarioAMachineThatStoodStillStopsWhenItHears, TestScenarioOneOfTwoThatStoodStillGoesByItsWallClock, TestScenarioOneOfTwoThatBeganAheadGoesByItsWallClock, TestScenarioAClockThatBeganAheadBringsNoPassBack, TestScenarioAClockThatBeganAheadBringsNoPassOfAnEarlierLifeBack, TestScenarioAClockThatBeganAheadBringsNoPassOfOthersBack, TestScenarioAClockThatBeganAheadBringsNoPassBackAfterAPause, TestScenarioALateReplyHidesNoClockThatIsOff.
//
// Lemma 6 (votes). Of any two primary waves of a line one knows of the other, and so do
// they and the wave by which a room leaves the line: quorums
// of the same voters meet in a name, a name votes in one life, who forgot, or whose name has voted in another life, does not
// vote before it has heard of each room again, and voters change by one name at a time, when a majority has heard what was known of each room. The proofs are at votes, change and remember.
// Kept by Voters.quorum, wave.votes, voiceOf, roomSums.quorumOf, Node.leave, Node.change, Node.heardAll, Node.hasAll, Node.remember, Node.primary, wave.outdoes, Node.standsFor, Node.restore.
// Seen by TestQuorumsMeet, TestScenarioAmnesiacVoterDoesNotFlipTheMajority, TestScenarioASecondLifeOfAVoterGivesNoSecondQuorum, TestScenarioALifeWithItsDiskTakesNoVoteBack, TestScenarioALaterLifeWithADiskTakesNoVoteOfAWaveBefore, TestScenarioNodesOfOneNameComeAndGo, TestScenarioASurvivorVotesOnItsOldLineAsItLeftIt, TestScenarioAFoundingMeetsAnOlderLine, TestScenarioAGatherFromBeforeTheFounding, TestScenarioAProposalThatOneVoterHasIsNotInForce, TestScenarioAVoidThatTheNextVotersHaveNotHeardOf, TestScenarioVotersChangeAndARoomIsAskedForTheFirstTime, TestWhatWasHeardOfAProposalIsNotHeardOfTheNext, TestScenarioAVoterThatForgotHearsOfNoRoom, TestScenarioAVoterThatForgotIsBackWithOneThatWasCutOff, TestScenarioAVoteComesBackToOneThatHearsOfNoRoom, TestScenarioAVoteComesBackWithOneThatWasCutOff, TestScenarioAVoteComesBackToOneOfTwo, TestScenarioAVoteIsNotGivenBackAsItsLastLifeIsForgotten, TestScenarioAVoteIsNotGivenBackToWhoWasOnASide, TestScenarioVotesComeBackInAnyWay, TestScenarioVotersChangeAndSomeHearHalfOfIt, TestVotersChangeOneNameAtATime.
//
// Lemma 7 (one line). Of two foundings that share a node one begins, and a room goes
// over to another line only where no quorum of its old one can be elsewhere, then or later, or after
// its own survivor_after, or, where it shares, with accounts that may act on any side, which all
// reckon with (8). The proofs are at together, quorumOf and ended.
// Kept by beginsLine, wave.together, Node.quit, Gate.chooseLine, roomSums.quorumOf, roomSums.ended, escrow.part, escrow.tell, escrow.follow, firstQuorate.
// Seen by TestScenarioTwoFoundingsThatShareANode, TestScenarioFoundersOfTwoLinesAreOver, TestScenarioALineOfWhichOneHasOnlyHeardIsOver, TestScenarioAFounderComesBackToALineThatItLeft, TestScenarioTwoNodesOfANameBeginTwoLinesAtOnce, TestScenarioSurvivorsOfOneLineMeet, TestScenarioARoomDoesNotLeaveALineTwice, TestScenarioAVoteForWhereARoomGoesIsGivenOnce, TestScenarioAVoteForALineThatAllHaveLeft, TestScenarioAVoteForALineThatItsVotersAreBackOn, TestScenarioAVoteThatOneIsNotAskedForAnew, TestScenarioALineThatIsOverIsSoAfterRestarts, TestScenarioThoseWhoHeardGoBackWithTheRest, TestScenarioOneWhoLeavesARoomWhereItWentTakesItNowhere, TestScenarioRoomsLeaveLinesInAnyWay, TestScenarioRoomsLeaveLinesAndFewHear, TestScenarioARoomThatStaysBehindSaysNothingNewOfItsSlots, TestScenarioARoomSurvivesInItsOwnTime, TestScenarioSplitBeforeTheFirstPrimaryWave.
//
// Lemma 8 (D). When D has passed since anybody was in a wave with a member, no account
// of it acts any more and no pass of it is good. By lemma 6 somebody in the wave knows
// of the last lease of that member; by 4 that is over Lc + L later and the last pass TTL
// after that; 5 says how much clocks add. Where all forgot all but the signing keys,
// nobody knows that TTL: a pass of before the founding ends with the longest session of
// the files from there, whatever it says. The proof is at EndsBy.
// Only an account that may act on a side is not waited out so: slots of a room that shares
// are made again when its node is back, or an operator answers for it; which accounts
// these are, and that every quorum knows, is proved in sharing.go.
// Kept by inForce.delayFor, Gate.settleGone, Gate.settleListed, Gate.lapsesAt, roomSums.share, Gate.Shares, Node.holdsShare, Node.EndsBy.
// Seen by TestScenarioLastPassOfALostNode, TestScenarioANodesOwnOldPassesAreWaitedFor, TestScenarioSurvivorsWaitForD, TestScenarioALongerSessionIsForgottenWhenAllDie, TestScenarioASurvivorDoesNotKnowWhenOthersMetOnTheLineThatItLeft, TestScenarioSlotsOfASideThatCameBackAnewAreWaitedFor, TestScenarioASideIsToldToShare, TestScenarioASideHasNotHeardThatItSharesNoMore, TestScenarioAReclaimedSideReturns.
//
// Lemma 9 (voids). Slots of an account that is void are refused by everybody before any
// is minted for them: an account is settled only when all nodes of a wave have replied
// that it is void, and nodes exchange slots only with accounts that they know to be
// listed. Nobody forgets that an account is void before its own node has closed it: else it
// would come back with slots that were made again. The proof is at forget.
// Kept by Gate.account, Gate.knows, escrow.accept, escrow.current, escrow.isSafe, escrow.lease, Gate.lapse, Node.age, Node.forget.
// Seen by TestScenarioAVoidThatIsNotOnDiskMakesNoSlots, TestScenarioSafeIsWaitedFor, TestScenarioSlotsInFlightAtVoid, TestSlotsFromAForgottenAccountAreRefused, TestScenarioWhoStoodStillForTwiceDHasNoAccount, TestScenarioWhoStoodStillForTwiceDAndLeadsHasNoAccount, TestScenarioALongerSessionOfASideKeepsNoAccount.
//
// Lemma 10 (supply). What is minted, and what those who are lost can still use, is
// together no more than the limit, or than there were when that was lowered; then nobody is called
// until there are fewer. While nobody can tell how much that is, nobody is
// called as long as it may be more. The proofs are at Supply and Census.
// Kept by roomSums.make, Gate.count, escrow.dateCensus, Gate.slotsKnown, roomSums.accepted, roomSums.mayRecall, roomSums.chosen, RoomRecord.differs.
// Seen by TestScenarioEveryLossHasItsOwnD, TestScenarioNoSlotIsMadeThatOthersDoNotKnowOf, TestScenarioThoseLostTogetherAreWaitedForTogether, TestARestoredSupplyIsNotSure, TestScenarioALineThatGoesOnHasItsOwnSupply, TestRecordDiffersWhenTheLimitHoldsAgain, TestScenarioTheLimitWasRaisedByAnEventBeforeARestart, TestScenarioALimitThatIsLoweredAgainHoldsNobodyUp, TestScenarioALimitThatIsNotOnDiskMakesNoSlots, TestScenarioWhoComesAndGoesKeepsNoRoomShut, TestScenarioACensusOutlivesWhoTookIt, TestScenarioACensusWaitsUntilAllKnowOfTheLost, TestScenarioVisitsThatGoOnEndACensus, TestScenarioWhatTooFewRememberStandsUntilOthersAreBack, TestScenarioWhatTooFewRememberIsGivenUpWithThoseWhoAreLost, TestScenarioWhoRemembersNoSupplyHearsOfTheNewest.
//
// Lemma 11 (sessions). A pass is extended at one node: its own; or one that has been given the visit
// with its slot by a node that leaves; or a later life that goes on with it (15); or, when the account
// is void and its lease over everywhere, one that has a free slot for it. A visit is given only to an account whose
// node has said that it is open, and taken only while its lease runs: so D, which counts from there, has all of its passes.
// Kept by Node.MayAdopt, Node.Heir, Gate.Give, Node.onSlots.
// Seen by TestScenarioAPassIsNotTakenOverWhileItsHomeMayExtendIt, TestScenarioAPassIsNotTakenOverByAGuess, TestScenarioANodeLeavesToOneThatHasNotBegun, TestScenarioVisitsAreNotGivenToOneWhoseLeaseIsOver, TestThesisPassesOfALostNodeCount, TestThesisARoamingPassCountsOnce.
//
// Theorem. People called and on the site are within the limit, but for machines that
// stood still with their clocks, a clock that was ahead where its node was a quorum by itself and that
// is right after a restart (5), foundings that share no node, and a node that an operator has reclaimed or
// replaced and that runs. Whoever is on the site has a slot
// of an account (1), which acts, or is one whose D is not over (4, 8, 11, 13), or that is known to use no
// more than others keep (14), or to have gone on (15). The slots of
// the accounts of a line, and what those that are lost can still use, are no more than
// the limit (9, 10), and no other line has slots of the room (7) but those that are reckoned with.
//
// Lemma 12 (faults of our own). If one of these is seen not to hold in a room, its node
// gives the room up, and is in no other state there than one that is lost: 8 to 11 say
// what the others may do.
// Kept by Gate.Wrong, Gate.WrongUse, Node.GiveUp.
// Seen by TestScenarioABrokenRoomIsGivenUpByItsNodeAlone.
//
// Lemma 13 (bounds). Nodes may have other settings: the D of lemma 8 is by the longest that
// anybody has acted by. What a wave lets its nodes act by, Commit.Acts, is the least
// of what those that count held when they replied, and each of them by the lesser of that
// and its own. So of two primary waves of a line the later one, which by lemma 6 has
// somebody who replied to the earlier one or heard of it, has a node that held at least
// as much, and goes by the longest that any of it holds or wants. What is held travels
// with gathers and commits, is on disk before it is said, and never becomes less but by a
// wave with all voters in which nobody remembers anybody who is missing. Then all who may
// act are in that wave, in this life, and who acts does by no more than its own settings,
// of which the wave has the longest; of everybody else twice D has passed by what was held
// before (forget), so that neither a lease nor a pass is left, nor a clock that was
// vouched for by other bounds. A wave must not take longer than the deadline that is
// held, nor have a clock that is further off. A side without a quorum only keeps what
// it holds. Who takes over people of the lost waits for the longest exclude_after that
// anybody has, and who was away asks after its own, so that none of both is missed.
// Other uses of exclude_after, in which nodes may differ, only say how soon somebody is
// left out, void or followed, which is safe at any time.
// Kept by clusterSettings.install, clusterSettings.hold, clusterSettings.reckon, Node.reckonWith, Node.vouchFor, Gate.delayWith, Node.head, Node.miss, Node.Gone.
// Seen by TestScenarioALongerLeaseWaitsForTheOthers, TestScenarioALongerLeaseOfAnotherIsWaitedFor, TestScenarioALongerLeaseIsNotForgottenInARestart, TestScenarioAMinorityThatNeverHeardOfALongerLease, TestScenarioALeaseIsRaisedAndLoweredNodeByNode.
//
// Lemma 14 (covers). Where a node has said that its account is covered, and nobody is lost
// but it of those who were in a wave since, it uses no more than the visits that the others
// keep of it, once its lease is over. If all know by then that it is void this is so for good,
// whoever is lost later. The proof is at cover. Package node says what is kept.
// Kept by Gate.coverNow, cover.installCovers, cover.missCovers, Gate.MayKeep, roomSums.uses, roomSums.lowered, escrow.giving, Gate.Give, Node.onSlots.
// Seen by TestWhatALostNodeCanUseIsNoted, TestWhatIsNotedOfTwoClaimsIsOfBoth, TestNothingIsKeptOfOneThatIsVoid, TestScenarioANodeThatIsKilledAgainAndAgainLosesNoSlotForLong, TestScenarioWhatIsNotedOfALostNodeHolds, TestScenarioWhoGaveVisitsToALostNodeBeginsAnew, TestScenarioALostNodesFreeSlotsComeBackWithItsLease, TestScenarioALostNodeWhoseHeirsAreLostIsWaitedFor, TestScenarioAnHeirIsLostJustBeforeItsHome, TestScenarioAnHeirOfTheAccountBeforeIsLost, TestScenarioAPassIsNotGivenByAWordOfLongAgo, TestScenarioWhatIsMadeAgainOfALostNodeIsUsedByNobody.
//
// Lemma 15 (visits that go on). Where all who were lost are back in later lives, and a wave has
// each of them go on with what its disk has of its visits, the accounts that live, those that
// have gone on and those that can yet use no more than there was before; what was being given to
// them and is on no disk is waited for. No pass goes on at two nodes. The proof is at resume.
// That no pass is good beyond the disk, also one of an account before, and that each visit there
// has a slot of its own, is for the owner to keep (package node); and that it says nothing of its
// earlier lives if it has visits of one that is on no record.
// Kept by roomSums.resume, roomSums.actLeft, roomSums.uncounted, roomSums.hold, Gate.resuming, Gate.MayResume, Gate.Book, Gate.knows, Node.MayAdopt.
// Seen by TestScenarioVisitsGoOnAfterACrashOfEverything, TestScenarioVisitsThatOthersHaveWoundUpDoNotGoOn, TestScenarioVisitsThatALivingNodeHasWoundUpDoNotGoOn, TestScenarioVisitsOfOneThatDoesNotComeBackAreWaitedFor, TestScenarioASlotWaitsUntilItsVisitIsOffTheDisk, TestScenarioVisitsOnTheirWayToALifeThatHadNone, TestScenarioVisitsOnTheirWayFromOneThatIsLost, TestScenarioVisitsGivenByAnAccountThatIsVoidStayOnTheDisk, TestScenarioTwoOfThreeDieAfterVisitsWentOn, TestScenarioVisitsThatMayGoOnYetAreNotAdopted, TestScenarioVisitsThatDoNotGoOnLeaveOthersCovered, TestScenarioALifeThatIsOnNoRecordIsWaitedFor, TestScenarioLivesThatComeAndGoKeepNoVisitFromBeingAdopted, TestScenarioWhoWasAwayKnowsThatALifeMayHaveGoneOn.
//
// # What is guaranteed
//
//   - People called and on the site are within the limit, with survivor_after 0, but for
//     what the theorem excepts; else within (number of sides) × the limit.
//   - After a limit is lowered nobody is called while more slots exist than that.
//   - Entitlement follows the order of weights while the view stands.
//   - Epochs never fall; a node installs at most one commit of each. The cut
//     never falls within a line and a keying.
//   - No more than new_users_per_minute, the highest that held in it, are called in any
//     minute: a call spends a token, tokens lapse after two seconds, sides that call have
//     parts of the rate, nobody deals before all who are listed know, and who takes over goes
//     on with the bucket of who dealt before: where that is not known, and where sides meet, it
//     begins with a debt of as many as all that were may have dealt at once.
//   - With a stable view of nodes that answer within the deadline a wave commits within that and a period. Every slot
//     is back within about D of its own loss, whatever else was lost since (or of a later wave in which
//     those who remember were no quorum, as too many had been restarted), and if all visits of
//     the lost node are kept when all know of its loss, about when its lease is over, or who uses it leaves; a raised
//     limit is there two waves after the last loss is known to all, once the slots are counted (Census)
//     and, in a room that shares, nobody is away.
//
// # Deviations from the design
//
//   - A ledger is named by the epoch that opened it, not by a counter: one number
//     then orders accounts, voids and sightings, and needs no memory of its own.
//   - Transfers carry totals, not sequence numbers: repeating and reordering them
//     changes nothing, and a lost one is made good by the next.
//   - Slots are taken only from accounts that the last commit listed, not from all
//     but the void: voids are forgotten in time, and a link may be stuck longer.
//   - A lease is granted room by room: a wave that leaves a quiet room out says
//     nothing of its accounts, which may be void unknown to their nodes.
//   - Slots are minted in two waves: the first tells everybody how many there may be,
//     the second makes them. Else a mint could be lost with its coordinator, and what
//     that can own would not be known. A node that is cut off and comes back in the
//     same life, again and again, keeps all that it had each time waited for, until
//     D after its last return: nobody tells its closed accounts apart.
//   - No ledger is kept on disk, only what must not be forgotten, and who is on the site. A
//     ledger that returns would have to be reconciled; waiting its account out is the path
//     that every crash takes anyway, but one of everything: then all go on with their visits, on
//     slots that they book for them (see resume), and the rest is made by waves, as ever.
//   - There is no rule by which a node that forgot counts again after some time
//     up. With voters that change it is unsafe: two such nodes could make quorums
//     of two different versions. Survivors found a new line instead.
//   - A session that is taken over needs a free slot, where the design takes its
//     old slot along. Its home may have ended it, given the slot to somebody else
//     and died: nobody left can tell, and whoever showed such a pass made a slot of
//     nothing. The lost slots are waited out instead.
//   - A longer session is used for new passes only when all replies agree on the
//     configuration; until then a lost node could leave passes behind that the
//     others do not reckon with.
//   - Side leases exist for rooms that share, and are marked by grade. A side goes on
//     only if a primary wave has told it that all know of that, and slots of a room that
//     has stopped sharing are waited for until every side is back: see sharing.go. Who
//     was last in a wave with the others long ago may have acted until it ended, which
//     they hear of from its next life: D counts from the start of that one.
//   - Where lines meet each has its own supply of slots (RoomReply.Supply): what a later
//     wave of another line has counted says nothing of the line that goes on.
//   - After a loss the cut stops for some seconds at the lightest ticket that is
//     missing, so that its owner can check in elsewhere, or until its node is back. Else the first wave after
//     it gives all the slots that came free while the loss was being noticed to
//     those who wait at other nodes. Who checks in before they may be taken over is
//     told when that is (GoneIn), so that they are not late for it. Time in which they could
//     not come is none of theirs: while this node was in no wave (lasts), or nobody may be
//     taken over. It delays calls and permits none.
//   - A node stamps joins, lets people in, extends passes and says whether one is
//     good only once a quorum has taken its clock for right in this life: D reckons
//     with clocks that are within max_skew of each other, not with one that nobody
//     has measured. A coordinator with a quorum of clocks around its median tells
//     who is off; that node stops at once. And a clock that others agreed with does
//     not follow its wall clock until somebody finds it wrong. A node alone cannot
//     tell which of its two clocks is off, and a place stamped in the future drags
//     along whoever takes it over.
//   - A machine may stand still with its clocks (a virtual one that is moved). No
//     reading of them shows it, so the node goes on with a lease and passes that are
//     over. A probe says when it was sent: a node that is behind that by more than
//     two good clocks can be apart stops before it answers anybody else, and a wave
//     measures which of the two is off. That is so for probes of members of its last
//     wave, which measured them, and not of a newcomer. Before that word comes
//     nothing can be held (docs/operating.md says what this may cost).
//   - Of two contents of one version of a room's configuration, as files may have,
//     the coordinator's counts: what the cluster runs with.
//   - An operator holds, drains or deletes a room by a Mode of its configuration,
//     which travels like the rest of it and touches no slot: the sums of the ledgers
//     are those of a room that nobody holds. Cloudflare's queue_all is Held; ours,
//     as in the design, only closes the open door.
//   - A wave asks for the tickets up to a stamp by which, by the digest, as many wait
//     as it wants; see Gate.upTo. What is no heavier than the last of a front is in it
//     all the same, so the cut is as exact; a wave that gets too few calls fewer, and
//     the next one asks without that bound.
//   - Digests go with every wave while a cluster is small; see digestEvery. There is
//     one of the whole room: those of the nodes are merged on the way up.
//
// # References
//
// [TAG]: Madden, Franklin, Hellerstein, Hong: TAG: a Tiny AGgregation service for
// ad-hoc sensor networks. OSDI 2002.
//
// [Escrow]: O'Neil: The escrow transactional method. ACM TODS 11(4), 1986.
//
// [Bounded]: Balegas et al.: Extending eventually consistent cloud databases for
// enforcing numeric invariants. SRDS 2015.
//
// [Paxos]: Lamport: The part-time parliament. ACM TOCS 16(2), 1998.
//
// [SWIM]: Das, Gupta, Motivala: SWIM: scalable weakly-consistent infection-style
// process group membership protocol. DSN 2002. Views come from there: they may
// be wrong in any way, and only cost time.
package eviction
