package eviction

import (
	"testing"

	"github.com/anteroom/anteroom/qpid"
	"pgregory.net/rapid"
)

func accountOf(i int) Account { return Account{Member{qpid.NodeID(rune('a' + i)), 1}, 1} }

// balance checks a ledger's own books.
func (l *Ledger) balance(t interface{ Fatalf(string, ...any) }) {
	owned, locked := l.minted, 0
	for _, p := range l.peers {
		owned += p.Received - p.Sent
		locked += p.Locked
	}
	if owned != l.owned || locked != l.locked || l.used < 0 || l.used+l.locked > l.owned {
		t.Fatalf("%v: owned %d, used %d, locked %d, minted %d, peers %+v", l.account, l.owned, l.used, l.locked, l.minted, l.peers)
	}
}

// S2, S3: slots are neither made nor lost on the way, whatever the network does
// to the messages, and what the books say is inside a group of accounts is
// there or on its way.
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
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			switch l := pick("at"); rapid.IntRange(0, 7).Draw(t, "do") {
			case 0, 1:
				if m := l.send("shop", pick("to").account, rapid.IntRange(-1, 9).Draw(t, "n")); m != nil {
					wire = append(wire, m)
				}
			case 2, 3, 4: // arrives, perhaps late, perhaps again; loss is never being picked
				if len(wire) > 0 {
					m := wire[rapid.IntRange(0, len(wire)-1).Draw(t, "message")]
					acks = append(acks, at(m.To).receive(m))
				}
			case 5:
				if len(acks) > 0 {
					a := acks[rapid.IntRange(0, len(acks)-1).Draw(t, "ack")]
					at(a.From).acked(a)
				}
			case 6:
				if free := l.Free(); l.Spend() != (free > 0) {
					t.Fatalf("spent with %d free", free)
				}
			case 7:
				if l.used > 0 {
					l.Release(Account{})
				} else {
					minted -= l.burn(rapid.IntRange(0, 2).Draw(t, "burn"))
				}
			}
			owned, flying := 0, 0
			for _, l := range ledgers {
				l.balance(t)
				owned += l.owned
				for _, p := range l.peers {
					if flying += p.Sent - p.Received; p.Acked > p.Sent {
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
						l.acked(at(p.Account).receive(&Slots{Room: "shop", From: l.account, To: p.Account, Total: p.Sent}))
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
	})
}

// When an account is void its partner's books are closed: what they exchanged
// becomes the partner's own making or unmaking, and locked slots are free.
func TestFoldKeepsTheSum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := &Ledger{account: accountOf(0)}
		l.mint(20)
		for i := 1; i <= 3; i++ {
			for born := uint64(1); born <= 3; born++ {
				a := accountOf(i)
				a.Born = born
				l.receive(&Slots{From: a, To: l.account, Total: rapid.IntRange(0, 5).Draw(t, "received")})
				l.send("shop", a, rapid.IntRange(0, 5).Draw(t, "sent"))
				if rapid.Bool().Draw(t, "adopt") {
					l.adopt(a)
					if rapid.Bool().Draw(t, "end") {
						l.Release(a)
					}
				}
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

// A session that was taken over brings its slot. When it ends, copies of its
// pass may still turn up elsewhere, so the slot is free only when its account
// is settled.
func TestAdoptedSlotIsLockedUntilSettled(t *testing.T) {
	l := &Ledger{account: accountOf(0)}
	gone := accountOf(1)
	l.adopt(gone)
	l.adopt(gone)
	if l.Owned() != 2 || l.Used() != 2 || l.Free() != 0 {
		t.Fatalf("owned %d, used %d, free %d after two take-overs", l.Owned(), l.Used(), l.Free())
	}
	l.Release(gone)
	if l.Free() != 0 || l.Locked() != 1 || l.Spend() {
		t.Errorf("free %d, locked %d: the slot may be spent", l.Free(), l.Locked())
	}
	l.fold(Void{gone.Member, 5})
	if l.Free() != 1 || l.Locked() != 0 || l.Minted() != 2 {
		t.Errorf("free %d, locked %d, minted %d after the account is settled", l.Free(), l.Locked(), l.Minted())
	}
	l.Release(gone) // the other one ends later
	if l.Free() != 2 || l.Used() != 0 {
		t.Errorf("free %d, used %d in the end", l.Free(), l.Used())
	}
}

func TestReleaseOfNothingPanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a ledger released what it did not use")
		}
	}()
	(&Ledger{}).Release(Account{})
}
