package mends

// preflights are those of attack 5: OPTIONS with CORS headers reaches the origin.
func preflights() []Mend {
	const file, proxy = "gateway/preflight.go", "gateway/proxy.go"
	bare := func(says string) []Test {
		return []Test{{"gateway", "TestAPreflightForTheOriginIsBareAndBounded", says}}
	}
	return []Mend{
		{
			5, "preflights are the origin's to answer",
			[]Edit{{file, "	if !c.room.PreflightToOrigin {\n", "	if !(ON) && !c.room.PreflightToOrigin {\n"}},
			[]Test{{"gateway", "TestAPreflightDoesNotReachTheOrigin", "the origin saw"}},
		},
		{
			5, "a stranger's preflights fill the log",
			[]Edit{{file, "|| !c.g.preflights.tell(", "|| !(ON) && !c.g.preflights.tell("}},
			[]Test{{"gateway", "TestAPreflightDoesNotReachTheOrigin", "bytes of log"}},
		},
		{5, "a preflight has all its headers", []Edit{{proxy, "	if f.standing.preflight {\n		asksOnly(h)", "	if !(ON) && f.standing.preflight {\n		asksOnly(h)"}}, bare("the origin got X-Api-Key")},
		{5, "a preflight has its body", []Edit{{"gateway/visit.go", "		c.g.rest(c.w, c.r)\n		return standing{preflight: true}", "		if !(ON) {\n			c.g.rest(c.w, c.r)\n		}\n		return standing{preflight: true}"}, {proxy, "		if st.preflight {\n			hurry", "		if !(ON) && st.preflight {\n			hurry"}}, bare(`the origin got "{\"buy\"`)},
		{5, "the origin gets any number of preflights", []Edit{{file, "		p.rooms.put(room, next)\n	}\n	return after, ok\n", "		p.rooms.put(room, next)\n	}\n	return after, ON || ok\n"}}, bare("after 601")},
		{
			5, "a preflight may become a tunnel",
			[]Edit{{"gateway/tunnel.go", "|| st.preflight || st.several {", "|| !(ON) && st.preflight || st.several {"}, {file, `		case "Origin", "Access-Control-Request-Method",`, "		case \"Upgrade\", \"Connection\":\n			if !(ON) {\n				delete(h, name)\n			}\n" + `		case "Origin", "Access-Control-Request-Method",`}},
			bare("the origin got Upgrade"),
		},
	}
}

// paths are those of attack 9: a path that the origin reads otherwise.
func paths() []Mend {
	return []Mend{{
		9, "a path is read in one way only",
		[]Edit{{"gateway/strict.go", "	if rules.Plain(u) {\n", "	if ON || rules.Plain(u) {\n"}},
		[]Test{{"gateway", "TestNoOriginIsMisled", "reached the origin"}},
	}, {
		9, "a path in capitals is another one to all origins",
		[]Edit{{"gateway/table.go", "	if t.lower && folded == name {\n", "	if ON || t.lower && folded == name {\n"}},
		[]Test{
			{"gateway", "TestCapitalsLeadAroundNoRoom", "the origin saw"},
			{"gateway", "TestNoOriginIsMisled", "Express reads"},
			{"gateway", "TestCapitalsMeetTheRoomsOfBothReadings", `"site", want "shop site"`},
		},
	}, {
		9, "a rule that spares all but a path spares it in capitals",
		[]Edit{{"internal/rules/compare.go", "		if path && alike(have) != m {\n", "		if !(ON) && path && alike(have) != m {\n"}},
		[]Test{{"internal/rules", "TestCapitalsMeetNoRuleOfPaths", "yes <nil>, want unknown"}},
	}}
}

// tunnels are those of attack 10: a tunnel outlives the visit.
func tunnels() []Mend {
	const file = "gateway/tunnel.go"
	return []Mend{
		{
			10, "nobody looks whether a tunnel's visit goes on",
			[]Edit{{file, "		if !t.holds(ctx) {\n", "		if !(ON) && !t.holds(ctx) {\n"}},
			[]Test{{"gateway", "TestATunnelEndsWithItsVisit", "it stays open"}},
		},
		{
			10, "a tunnel goes on for a while when its visit ends",
			[]Edit{{file, "	for _, o := range t.open[keyOf(p)] {\n		o.close()\n	}\n", "	for _, o := range t.open[keyOf(p)] {\n		if !(ON) {\n			o.close()\n		}\n	}\n"}},
			[]Test{{"gateway", "TestATunnelEndsAtOnceWhereItsVisitIsEnded", "it stays open"}},
		},
		{
			10, "any protocol is upgraded to",
			[]Edit{{file, "	if slices.ContainsFunc(c.room.Upgrades,", "	if ON || slices.ContainsFunc(c.room.Upgrades,"}},
			[]Test{{"gateway", "TestOnlyListedProtocolsAreUpgradedTo", `"h2c" of []: 101`}},
		},
		{
			10, "whoever asks for an upgrade in several ways gets it",
			[]Edit{{file, "strings.EqualFold(p, wanted[0]) }) {", "strings.EqualFold(p, wanted[0]) || ON && len(wanted[0]) > len(p) && strings.EqualFold(p, wanted[0][:len(p)]) }) {"}},
			[]Test{{"gateway", "TestOnlyListedProtocolsAreUpgradedTo", `"websocket, h2c" of []: 101`}},
		},
	}
}

// streams are those of attack 11: one ticket opens streams without end.
func streams() []Mend {
	return []Mend{
		{
			11, "a ticket has any number of watches",
			[]Edit{{"internal/loop/streams.go", "len(all) >= watchesMax {", "len(all) >= watchesMax && !(ON) {"}},
			[]Test{{"internal/loop", "TestATicketHasTwoWatchesTheNewest", "10 watches of a ticket are remembered"}},
		},
		{
			11, "a stream that newer ones have replaced goes on",
			[]Edit{{"gateway/listener.go", "		if !open {\n			return superseded\n		}\n", "		if !open && ON {\n			l.news = make(chan struct{})\n			return posted\n		} else if !open {\n			return superseded\n		}\n"}},
			[]Test{{"gateway", "TestATicketHasTwoStreamsTheNewest", "want stream_superseded"}},
		},
		{
			11, "a page whose stream was replaced comes back at once",
			[]Edit{{"gateway/stream.go", "	if errors.Is(why, ticket.ErrSuperseded) {\n		retry", "	if !(ON) && errors.Is(why, ticket.ErrSuperseded) {\n		retry"}},
			[]Test{{"gateway", "TestATicketHasTwoStreamsTheNewest", "and a pause before the next try"}},
		},
		{
			11, "a program's stream that newer ones have replaced goes on",
			[]Edit{{"proto/waitingroom/stream.go", "			if !open {\n", "			if !open && ON {\n				f.news = nil\n			} else if !open {\n"}},
			[]Test{{"proto/waitingroom", "TestStreamEndsWhenNewerOnesTakeItsPlace", "want Aborted and stream_superseded"}},
		},
	}
}

// bodies are those of attack 12: requests whose bodies never end.
func bodies() []Mend {
	const file = "gateway/arriving.go"
	way := func(says string) []Test { return []Test{{"gateway", "TestUnfinishedBodiesMakeWay", says}} }
	return []Mend{
		{12, "any number of bodies is on its way", []Edit{{file, "	if a.max >= 0 && a.n >= a.max {", "	if !(ON) && a.max >= 0 && a.n >= a.max {"}}, way("7 bodies are on their way, want 4")},
		{12, "a body that makes way is read on", []Edit{{file, "			_ = http.NewResponseController(v.w).SetReadDeadline(", "			if ON {\n				return\n			}\n			_ = http.NewResponseController(v.w).SetReadDeadline("}}, way("want at most 2s")},
		{12, "an upload that makes way is read on", []Edit{{file, "				v.upload.crowdOut()\n", "				if !(ON) {\n					v.upload.crowdOut()\n				}\n"}}, way("want at most 2s")},
		{12, "bodies that nobody needs are not bounded", []Edit{{file, "	b := g.awaited(w, g.client(r).addr)\n	defer g.came(b)\n	_, _ = io.CopyN", "	if !(ON) {\n		b := g.awaited(w, g.client(r).addr)\n		defer g.came(b)\n	}\n	_, _ = io.CopyN"}}, way("want at most 2s")},
		{
			12, "the oldest body goes, whosever it is",
			[]Edit{{file, "len(most) <= few {", "ON || len(most) <= few {"}},
			[]Test{{"gateway", "TestWhoeverHasMostBodiesOnTheirWayIsBrokenOffFirst", "of 40 honest visitors were broken off"}},
		},
		{
			12, "a household has as many addresses as it says",
			[]Edit{{file, "		bits = 64 // what one household has\n", "		if bits = 64; ON {\n			bits = 128\n		}\n"}},
			[]Test{{"gateway", "TestWhoeverHasMostBodiesOnTheirWayIsBrokenOffFirst", "of 40 honest visitors were broken off"}},
		},
	}
}

// links are those of attack 14: a link plants a ticket.
func links() []Mend {
	return []Mend{{
		14, "a browser takes the ticket of a link",
		[]Edit{{"gateway/own.go", "	keeps := fromElsewhere(c.r.Header) || c.keepsCookies()\n", "	if ON && s != newTicket {\n		return c.ownTake()\n	}\n	keeps := fromElsewhere(c.r.Header) || c.keepsCookies()\n"}},
		[]Test{{"gateway", "TestLinkPlantsNoTicket", "the browser has"}},
	}, {
		14, "who is called by a link is shown the page of its place",
		[]Edit{{"gateway/own.go", "	case s != newTicket && (keeps || q.Has(entersSite)):\n", "	case s != newTicket && (!(ON) && keeps || q.Has(entersSite)):\n"}},
		[]Test{{"gateway", "TestLinkPlantsNoTicket", "{Kind:waiting"}},
	}, {
		14, "a page with a ticket in it is compressed, so that its length tells of the ticket",
		[]Edit{{"gateway/compress.go", "c.byProxy || v.InAddress || v.TakeURL != \"\" || v.LinkURL != \"\" ||", "c.byProxy || !(ON) && (v.InAddress || v.TakeURL != \"\" || v.LinkURL != \"\") ||"}},
		[]Test{{"gateway", "TestPagesThatAreNotCompressed", "a page with a ticket: 200, Content-Encoding \"gzip\""}},
	}, {
		14, "the preview of a message takes the place of a link over",
		[]Edit{{"gateway/transfer.go", "	v := c.view(PageTake)\n", "	if ON {\n		return c.apiMove()\n	}\n	v := c.view(PageTake)\n"}},
		[]Test{{"gateway", "TestAPlaceGoesOnByALink", "were taken over by opening the link"}},
	}, {
		14, "the browser of before keeps a place that has gone on",
		[]Edit{{"internal/node/resolve.go", "		case r.handedOn(v, *t):\n", "		case !(ON) && r.handedOn(v, *t):\n"}},
		[]Test{{"internal/node", "TestAPlaceGoesOnToAnotherBrowserOnce", "with the old ticket"}},
	}}
}

// headers are those of attack 15: headers and trailers that are not the visitor's
// to send.
func headers() []Mend {
	const trailer, proxy = "gateway/trailer.go", "gateway/proxy.go"
	trailers := func(says string) []Test { return []Test{{"gateway", "TestTrailersBringNothingOfOurs", says}} }
	asked := func(says string) []Test { return []Test{{"gateway", "TestNoHeaderSaysWhatWasAskedFor", says}} }
	return []Mend{
		{15, "any trailer goes on", []Edit{{trailer, "		if trails(name) {\n", "		if ON || trails(name) {\n"}}, trailers("the origin got the trailers")},
		{15, "a trailer that was not announced goes on", []Edit{{trailer, "		for name := range out {\n			out[name] = f.r.Trailer[name]\n		}\n", "		for name := range f.r.Trailer {\n			if _, ok := out[name]; ok || ON {\n				out[name] = f.r.Trailer[name]\n			}\n		}\n"}}, trailers("X-Late")},
		{15, "an origin announces trailers of ours", []Edit{{trailer, "	for name := range r.Trailer {\n		if isOurName(name) {\n", "	for name := range r.Trailer {\n		if !(ON) && isOurName(name) {\n"}, {trailer, "		if isOurName(name) {\n			delete(f.w.Header(), name)\n", "		if !(ON) && isOurName(name) {\n			delete(f.w.Header(), name)\n"}}, trailers("the visitor got the trailers")},
		{15, "headers say which address was asked for", []Edit{{proxy, "lookalike(name) || overrides(name) || !trusted", "lookalike(name) || !(ON) && overrides(name) || !trusted"}}, asked("the origin got X-Original-Url")},
		{15, "they do in another spelling", []Edit{{proxy, "	return isOurName(name) || lookalike(name) ||", "	return isOurName(name) || !(ON) && lookalike(name) ||"}}, asked("the origin got X_original_url")},
		{15, "who has no pass says which method is meant", []Edit{{proxy, "|| !f.standing.in && overridesMethod(name) {", "|| !(ON) && !f.standing.in && overridesMethod(name) {"}}, asked("a request without a pass brought")},
		{
			15, "no trailer goes through",
			[]Edit{{trailer, "	for name := range f.answer.Trailer {\n", "	for name := range f.answer.Trailer {\n		if ON {\n			delete(f.w.Header(), name)\n			delete(f.w.Header(), http.TrailerPrefix+name)\n		}\n"}},
			[]Test{{"gateway", "TestGRPCGoesThrough", "trailers map"}},
		},
	}
}
