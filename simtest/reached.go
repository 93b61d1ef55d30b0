package simtest

// reached counts what a run saw happen: a simulator in which nothing happens
// passes everything.
type reached struct{ n [goals]int64 }

// goal is one thing worth reaching.
type goal uint8

const (
	reachRestart goal = iota
	reachDisk
	reachSave
	reachSaveFailed
	reachSaveCrash
	reachAllDown
	reachGoodbye
	reachPause
	reachPausedAnswer
	reachGray
	reachGrayAlone
	reachStandstill
	reachLongStandstill
	reachCut
	reachJump
	reachSuspicion
	reachAdd
	reachTrap
	reachRetarget
	reachMode
	reachResession
	reachPolicy
	reachQuarantine
	reachFounding
	reachSecondFounding
	reachNewLead
	reachSide
	reachUnanimous
	reachSurvivor
	reachVoters
	reachLeftOut
	reachFrozen
	reachNack
	reachVoid
	reachSettled
	reachMint
	reachTopUp
	reachBurn
	reachMoves
	reachClosed
	reachOpenShut
	reachShutOpen
	reachSampled
	reachDrawn
	reachRekeyed
	reachEvent
	reachEventLimit
	reachEventEnd
	reachPaced
	reachTicketTaken
	reachPassTaken
	reachParked
	reachDropped
	reachThrough
	reachBackFromParked
	reachOpenAdmission
	reachCalled
	reachSpent
	reachEndedPass
	reachForward
	reachForwardTwice
	reachForwardOn
	reachRelay
	reachRelayed
	reachRelayOn
	reachLostAnswer
	reachTicketExpired
	reachPassExpired
	reachClone
	reachSilent
	reachCancel
	reachVanish
	reachGaveUp
	reachTake
	reachTakeFrozen
	reachTakeAnswered
	reachRootMoved
	reachSync
	reachWanting
	reachReclaim
	reachKeysLost
	reachStuck
	reachTurns
	reachNoShow
	reachRestamped
	reachStandsFor
	reachUsedKept
	reachUsedHandedOver
	reachReplayLater
	reachVisitGiven
	reachPlaceGiven
	reachKept
	reachJoinKept
	reachJoinUnkept
	reachVisitKept
	reachCovered
	reachClaimLowered
	reachWentOn
	reachExpectFew
	reachTwin
	reachTwinInWaves
	reachAsk
	reachOtherFile
	reachHeldBack
	reachSunk
	reachCensus
	reachCensusOver
	reachSynced
	reachSyncFailed
	reachSyncHung
	reachPassOnDisk
	reachResume
	reachHeard
	reachSideSupply
	reachSideMint
	reachStormWaves
	reachStormCalls
	goals
)

func (g goal) String() string {
	return [...]string{
		"restart", "restart with disk", "save", "save that failed", "crash inside a save", "all nodes down", "goodbye", "pause", "answer held by a pause", "gray node", "gray node and no other fault", "standstill", "long standstill", "link cut",
		"clock jump", "false suspicion", "node added", "crash inside a wave", "limit changed", "mode changed", "session changed", "policy changed", "clock quarantine", "founding",
		"second founding", "coordinator take-over", "side without quorum", "unanimous wave", "survivor line", "voter change",
		"node left out of a wave", "freeze", "nack", "void", "settled", "mint", "top-up", "burn", "slots moved", "room over the limit",
		"open to closed", "closed to open", "sampled cut", "random draw", "shuffled event", "event of a schedule", "limit of an event", "end of an event", "pacing", "ticket taken over",
		"pass taken over", "parked", "place given up", "walked through after waiting", "back from parked", "open admission", "call", "replay of a used ticket rejected",
		"ended pass honoured", "forward", "forward refused", "forwarded on", "another node asked", "another node answered", "another node forwarded", "answer lost", "ticket expired", "pass expired", "second tab",
		"left silently", "cancelled", "pass left to expire", "patience lost", "deleteMin", "deleteMin while frozen",
		"deleteMin answered", "root moved", "sync of taken tickets", "pass waits for a slot", "reclaim", "signing keys lost", "quorum lost for good", "rooms took turns",
		"call missed by who listens", "place stamped anew", "old ticket of a place stamped anew",
		"used tickets on disk at a restart", "used tickets handed over", "used ticket tried when its node is back or gone",
		"visit given away by a node that leaves", "place given away by a node that leaves", "place kept by another node", "join answered when the place was kept", "join refused as nobody kept the place", "let in when the visit was kept", "visits of a node that others keep", "slots of a lost node made again for what others keep", "kept place gone on with",
		"founding of fewer nodes than there are", "second node of a name", "second node of a name in the waves",
		"list asked for",
		"node with other settings", "lease that waited for the others", "longer lease that was forgotten", "slots counted while nobody can tell", "slots known after a census",
		"visits on a disk", "visits that a disk does not take", "visits whose sync hangs", "pass of a node that dies and has it on its disk", "visits of earlier lives gone on with",
		"voters changed where slots had been made again",
		"slots counted where survivors have gone on", "mint where survivors have gone on", "waves due while faults last", "calls due while faults last",
	}[g]
}
