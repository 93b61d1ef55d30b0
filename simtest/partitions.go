package simtest

// trouble begins a fault that goes on for a while.
func (w *world) trouble(f Fault, h *host, last int64) {
	i := int32(len(w.nemesis.troubles))
	w.nemesis.troubles = append(w.nemesis.troubles, trouble{kind: f, host: h.index, last: last})
	t := &w.nemesis.troubles[i]
	t.at = w.runningHosts()
	if len(t.at) < 2 {
		t.over = true
		return
	}
	w.rngFaults.Shuffle(len(t.at), func(a, b int) { t.at[a], t.at[b] = t.at[b], t.at[a] })
	w.begin(t)
	if !t.over {
		w.agenda.push(w.now+t.last, evStage, i, 0)
	}
}

// begin does a trouble's first stage.
func (w *world) begin(t *trouble) {
	all, n := t.at, len(t.at)
	other := all[0]
	if other == t.host {
		other = all[1]
	}
	switch t.kind {
	case CutPair:
		w.cutBoth(t, t.host, other)
	case CutOneWay:
		w.cutLink(t, t.host, other)
	case CutOff:
		w.split(t, []int32{t.host}, without(all, t.host))
	case Halves:
		k := 1 + w.rngFaults.IntN(n-1)
		w.split(t, all[:k], all[k:])
	case Bridge:
		if n < 3 {
			t.over = true
			return
		}
		k := 1 + w.rngFaults.IntN(n-2)
		w.split(t, all[:k], all[k+1:])
	case Ring:
		for i := range all {
			for j := i + 2; j < n; j++ {
				if i != 0 || j != n-1 {
					w.cutBoth(t, all[i], all[j])
				}
			}
		}
	case FlipMajority:
		if n < 3 {
			t.over = true
			return
		}
		w.split(t, all[:n/2+1], all[n/2+1:])
	case Twin:
		if n < 3 || len(w.hosts) == cap(w.hosts) {
			t.over = true
			return
		}
		w.twin(t)
	case Swizzle:
		t.at = all[:1+w.rngFaults.IntN(n)]
		t.last = max(100_000, t.last/int64(2*len(t.at)))
		w.swizzle(t)
	case SlowLink:
		w.wires.link(t.host, other).slow += 100_000 + w.rngFaults.Int64N(900_000)
		t.at = []int32{other}
	case Suspicion, Flapping:
		w.suspect(t)
	case BadDisk:
		h := &w.hosts[t.host]
		w.mishap(h)
		h.disk.failing = true
		h.disk.spares = w.o.Faults.Visits && chance(w.rngVisits, 1, 3)
		w.afflict(t.host, 1)
	case Rolling:
		t.last = max(600_000, t.last/int64(n))
		w.roll(t)
	default:
		panic("simtest: no trouble: " + t.kind.String())
	}
	w.topology()
}

// stage moves a trouble on, or ends it.
func (w *world) stage(i int32) {
	t := &w.nemesis.troubles[i]
	if t.over {
		return
	}
	t.stage++
	again := false
	switch t.kind {
	case FlipMajority:
		again = w.flip(t)
	case Twin:
		again = w.chooseSides(t)
	case Swizzle:
		again = w.swizzle(t)
	case Rolling:
		again = w.roll(t)
	case Flapping:
		again = t.stage < 6
		if t.stage%2 == 1 {
			w.trust(t)
		} else {
			w.suspect(t)
		}
	default: // one stage is all
	}
	if !again {
		w.end(t)
	} else {
		w.agenda.push(w.now+t.last, evStage, i, 0)
	}
	w.topology()
}

// end takes back all that a trouble did.
func (w *world) end(t *trouble) {
	if t.over {
		return
	}
	t.over = true
	w.printf("%v ends", t.kind)
	for _, c := range t.cuts {
		w.mend(c.from, c.to)
	}
	t.cuts = nil
	w.trust(t)
	switch t.kind {
	case SlowLink:
		w.wires.link(t.host, t.at[0]).slow = 0
	case BadDisk:
		d := &w.hosts[t.host].disk
		d.failing, d.spares, d.well = false, false, w.now
		w.afflict(t.host, -1)
	case Twin:
		w.leaveLast(t)
	default:
	}
}

func (w *world) cutLink(t *trouble, from, to int32) {
	w.reached.n[reachCut]++
	w.mishap(&w.hosts[from])
	w.mishap(&w.hosts[to])
	w.wires.cut(from, to)
	w.afflict(from, 1)
	w.afflict(to, 1)
	t.cuts = append(t.cuts, cut{from, to})
}

// afflict counts what keeps a host from the others.
func (w *world) afflict(host, by int32) {
	h := &w.hosts[host]
	h.cuts += by
	if by < 0 {
		h.calm = w.now
	}
}

func (w *world) cutBoth(t *trouble, a, b int32) {
	w.cutLink(t, a, b)
	w.cutLink(t, b, a)
}

func (w *world) split(t *trouble, a, b []int32) {
	for _, x := range a {
		for _, y := range b {
			w.cutBoth(t, x, y)
		}
	}
}

// apart has the hosts start in two halves, which meet when all are there.
func (w *world) apart(within int64) {
	i := int32(len(w.nemesis.troubles))
	w.nemesis.troubles = append(w.nemesis.troubles, trouble{kind: Halves})
	all := make([]int32, len(w.hosts))
	for j, at := range w.rngFaults.Perm(len(all)) {
		all[j] = int32(at)
	}
	k := 1 + w.rngFaults.IntN(len(all)-1)
	w.split(&w.nemesis.troubles[i], all[:k], all[k:])
	w.agenda.push(within+w.rngFaults.Int64N(within), evStage, i, 0)
}

// flip: the node in the middle restarts, changes sides and, without a disk,
// has forgotten what it decided on the first side.
func (w *world) flip(t *trouble) bool {
	n := len(t.at)
	middle := t.at[n/2]
	switch t.stage {
	case 1:
		w.crash(&w.hosts[middle], t.kind.String())
		w.agenda.push(w.now+200_000, evStart, middle, 0)
		return true
	case 2:
		for _, c := range t.cuts {
			w.mend(c.from, c.to)
		}
		t.cuts = t.cuts[:0]
		w.split(t, t.at[:n/2], t.at[n/2:])
		return true
	}
	return false
}

// goesForGood ends a node, if it runs, that nobody starts again.
func (w *world) goesForGood(h *host, why string) {
	w.printf("%s never returns", h.name)
	h.gone = true
	w.crash(h, why)
	w.loseKeysOf(h)
}

// roll restarts the next node.
func (w *world) roll(t *trouble) bool {
	h := &w.hosts[t.at[t.stage]]
	if h.running() {
		w.crash(h, t.kind.String())
		w.agenda.push(w.now+t.last/2, evStart, h.index, 0)
	}
	return t.stage+1 < len(t.at)
}

// swizzle cuts all links of some hosts one host at a time, then mends them in
// another order.
func (w *world) swizzle(t *trouble) bool {
	n := len(t.at)
	switch {
	case t.stage < n:
		for i := range w.hosts {
			if int32(i) != t.at[t.stage] {
				w.cutBoth(t, t.at[t.stage], int32(i))
			}
		}
	case t.stage < 2*n:
		if t.stage == n {
			w.rngFaults.Shuffle(n, func(a, b int) { t.at[a], t.at[b] = t.at[b], t.at[a] })
		}
		h := t.at[t.stage-n]
		kept := t.cuts[:0]
		for _, c := range t.cuts {
			if c.from == h || c.to == h {
				w.mend(c.from, c.to)
			} else {
				kept = append(kept, c)
			}
		}
		t.cuts = kept
	}
	return t.stage+1 < 2*n
}

// suspect makes gossip wrong about a host, at some or at all others.
func (w *world) suspect(t *trouble) {
	w.reached.n[reachSuspicion]++
	w.mishap(&w.hosts[t.host])
	for i := range w.hosts {
		if int32(i) == t.host || t.kind == Flapping && chance(w.rngFaults, 1, 2) {
			continue
		}
		p := int32(i)*w.gossip.places + t.host
		w.gossip.suspect[p]++
		w.afflict(t.host, 1)
		t.pairs = append(t.pairs, p)
	}
}

func (w *world) trust(t *trouble) {
	for _, p := range t.pairs {
		w.gossip.suspect[p]--
		w.afflict(t.host, -1)
	}
	t.pairs = t.pairs[:0]
}
