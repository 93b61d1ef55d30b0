package conns

import "log/slog"

const (
	ownMin      = 64       // file descriptors
	gossipMax   = 64       // streams of gossip; package membership bounds them, for up to 2 s each
	adminMax    = 32       // operators, a scraper or two, health checks
	peerMin     = 32       // two for each of the other nodes, and as many again while links are made anew
	peerMax     = 1024     // a cluster of hundreds
	grpcMin     = 32       // an Envoy has one for each of its threads, a program one
	grpcMax     = 4096     // workers that take from queues
	visitsMin   = 16       // of visitors and of origins, where the limit leaves next to nothing
	visitsMany  = 64 << 10 // of each; more where there is the memory for them
	visitMemory = 64 << 10 // bytes of the machine's for each of those: an idle connection takes some 16 KiB, one with a request twice that, and half is for all else
	filesEnough = 1024     // with fewer the log has a word about it
)

// Shares are how many connections may be open at once, by what they are for.
type Shares struct {
	Visitors, Origins int // see Gateway
	Admin, Peer, GRPC int
	most              int // of visitors, whatever the files
}

// SharesOf deals out the files that a process may have open. Each listener has
// a part of its own, so that strangers who fill one starve none of the others:
//
//	files    = RLIMIT_NOFILE, which Go raises to the hard limit at its start
//	own      = max(64, files/16): state, keys and logs (10), listeners (10), links to the other nodes (two for each), names looked up
//	gossip   = 64
//	admin    = 32
//	peer     = files/16, 32 to 1,024
//	grpc     = files/16, 32 to 4,096
//	visitors = half of what is left, 16 to 65,536, or one for each 64 KiB of memory if that is more
//	origins  = the other half, the same
//
// A visitor's request may need a connection to the origin, hence the halves. With
// HTTP/2 a visitor may have many requests at once, hence a bound on the connections
// to origins as well (see gateway.Bounds). Below some 300 files the parts come to
// more than there are, but then the limit is too low for a node that anybody
// depends on.
func SharesOf(files, memory uint64) Shares {
	most := visitsMost(memory)
	n := int(min(files, 4*uint64(most)))
	s := Shares{Admin: adminMax, Peer: within(n/16, peerMin, peerMax), GRPC: within(n/16, grpcMin, grpcMax)}
	left := n - max(ownMin, n/16) - gossipMax - s.Admin - s.Peer - s.GRPC
	s.Visitors = within(left/2, visitsMin, most)
	s.Origins = within(left-s.Visitors, visitsMin, most)
	s.most = most
	return s
}

// visitsMost bounds the connections of visitors, and those to origins.
func visitsMost(memory uint64) int { return int(max(visitsMany, min(memory, 1<<46)/visitMemory)) }

// SharesHere are this process's. Few of them get a word in the log.
func SharesHere(log *slog.Logger) Shares {
	files := filesMax()
	s := SharesOf(files, memoryMax())
	if files < filesEnough {
		log.Warn("few files may be open at once, so few visitors are served: raise the limit (ulimit -n, LimitNOFILE)",
			"files", files, "visitors", s.Visitors, "origins", s.Origins)
	}
	return s
}

// Gateway is how many connections visitors may have open. Where no room has an
// origin, because another proxy asks or an app does, they get both parts.
func (s Shares) Gateway(proxies bool) int {
	if proxies {
		return s.Visitors
	}
	return min(s.Visitors+s.Origins, s.most)
}

func within(n, least, most int) int { return min(max(n, least), most) }
