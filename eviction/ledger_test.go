package eviction

import (
	"slices"
	"testing"

	"github.com/anteroom/anteroom/qpid"
	"pgregory.net/rapid"
)

func accountOf(i int) Account { return Account{Member{qpid.NodeID(rune('a' + i)), 1}, 1} }

// balance checks a ledger's own books.
func (l *Ledger) balance(t interface{ Fatalf(string, ...any) }) {
	owned := l.minted
	for _, p := range l.peers {
		owned += p.Received - p.Sent
	}
	if owned != l.owned || l.used < 0 || l.used > l.owned {
		t.Fatalf("%v: owned %d, used %d, minted %d, peers %+v", l.account, l.owned, l.used, l.minted, l.peers)
	}
}

// S2, S3: slots are neither made nor lost on the way, whatever the network does
// to the messages, and what the books say is inside a group of accounts is
// there or on its way. A visit that is given away with its slot is on the books of
// one ledger at most, and in the end of one.
func TestSlotsAreConserved(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 5).Draw(t, "ledgers")
		ledgers := make([]*Ledger, n)
		for i := range ledgers {
			ledgers[i] = &Ledger{account: accountOf(i)}
		}
		minted := rapid.IntRange(0, 30).Draw(t, "slots")
		ledgers[0].mint(minted)
		var wire []*Slots
		var acks []*SlotsAck
		pick := func(label string) *Ledger { return ledgers[rapid.IntRange(0, n-1).Draw(t, label)] }
		at := func(a Account) *Ledger { return ledgers[a.Name[0]-'a'] }
		visits := map[qpid.ItemID]*Ledger{} // nil: on the way
		receive := func(m *Slots) *SlotsAck {
			ack, in := at(m.To).receive(m)
			for _, v := range in {
				if visits[v.ID] != nil {
					t.Fatalf("visit %v arrives a second time", v.ID)
				}
				visits[v.ID] = at(m.To)
			}
			return ack
		}
		backed := func(l *Ledger) (ids []qpid.ItemID) {
			for id := range visits {
				if visits[id] == l {
					ids = append(ids, id)
				}
			}
			slices.SortFunc(ids, func(a, b qpid.ItemID) int { return slices.Compare(a[:], b[:]) })
			return ids
		}
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			switch l := pick("at"); rapid.IntRange(0, 8).Draw(t, "do") {
			case 0, 1:
				if m := l.send(pick("to").account, rapid.IntRange(-1, 9).Draw(t, "n")); m != nil {
					wire = append(wire, m)
				}
			case 2, 3, 4: // arrives, perhaps late, perhaps again; loss is never being picked
				if len(wire) > 0 {
					m := wire[rapid.IntRange(0, len(wire)-1).Draw(t, "message")]
					acks = append(acks, receive(m))
				}
			case 5:
				if len(acks) > 0 {
					a := acks[rapid.IntRange(0, len(acks)-1).Draw(t, "ack")]
					at(a.From).acked(a)
				}
			case 6:
				free := l.Free()
				if l.Spend() != (free > 0) {
					t.Fatalf("spent with %d free", free)
				}
				if free > 0 {
					visits[qpid.ItemID{0: byte(len(visits) + 1)}] = l
				}
			case 8:
				to := pick("heir")
				var given []Visit
				for _, id := range backed(l) {
					if to != l && rapid.Bool().Draw(t, "give") {
						given = append(given, Visit{ID: id})
						visits[id] = nil
					}
				}
				if len(given) > 0 {
					wire = append(wire, l.give(to.account, given))
				}
			case 7:
				if ids := backed(l); len(ids) > 0 {
					l.Release()
					visits[ids[0]] = &Ledger{} // over
				} else {
					minted -= l.burn(rapid.IntRange(0, 2).Draw(t, "burn"))
				}
			}
			owned, flying := 0, 0
			for _, l := range ledgers {
				l.balance(t)
				if n := len(backed(l)); l.used != n {
					t.Fatalf("%v uses %d and has %d visits", l.account, l.used, n)
				}
				owned += l.owned
				for _, p := range l.peers {
					flying += p.Sent - p.Received
					if p.Acked > p.Sent {
						t.Fatalf("%d acknowledged of %d sent", p.Acked, p.Sent)
					}
				}
			}
			if owned+flying != minted || flying < 0 {
				t.Fatalf("%d owned and %d on the way of %d minted", owned, flying, minted)
			}
		}
		for range 2 { // repeat every transfer: all arrive
			for _, l := range ledgers {
				for _, p := range l.Peers() {
					if p.Acked < p.Sent {
						for _, m := range l.unacked(p) {
							l.acked(receive(m))
						}
					}
				}
			}
		}
		owned := 0
		for _, l := range ledgers {
			owned += l.owned
		}
		if owned != minted {
			t.Fatalf("%d owned of %d minted when all has arrived", owned, minted)
		}
		if lost := backed(nil); len(lost) > 0 {
			t.Fatalf("visits %v are nobody's when all has arrived", lost)
		}
	})
}

// When an account is void its partner's books are closed: what they exchanged
// becomes the partner's own making or unmaking.
func TestFoldKeepsTheSum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := &Ledger{account: accountOf(0)}
		l.mint(20)
		for i := 1; i <= 3; i++ {
			for born := uint64(1); born <= 3; born++ {
				a := accountOf(i)
				a.Born = born
				l.receive(&Slots{From: a, To: l.account, Total: rapid.IntRange(0, 5).Draw(t, "received")})
				l.send(a, rapid.IntRange(0, 5).Draw(t, "sent"))
			}
		}
		owned, used := l.owned, l.used
		l.fold(Void{accountOf(2).Member, 2})
		l.balance(t)
		if l.owned != owned || l.used != used {
			t.Fatalf("owned %d and used %d became %d and %d", owned, used, l.owned, l.used)
		}
		for _, p := range l.peers {
			if p.Member == accountOf(2).Member && p.Born <= 2 {
				t.Fatalf("the books on %v are still open", p.Account)
			}
		}
	})
}

func TestReleaseOfNothingPanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a ledger released what it did not use")
		}
	}()
	(&Ledger{}).Release()
}
