package membership

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"

	"github.com/hashicorp/memberlist"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/qpid"
)

// saying is what a member says of itself, in the metadata that gossip carries
// with its name and address.
type saying struct {
	eviction.Peer
	addr    string // host:port of its peer service; an empty host: the one at which it gossips
	version string // of its program; empty: it does not say
}

// Metadata, big endian:
//
//	0   format, 1
//	1   version of the protocol between nodes
//	2   boot id, 8 bytes
//	10  start, Unix microseconds, 8 bytes
//	18  length of the peer service's host:port, then that
//	    length of the program's version, then that; it may be missing
//
// What follows belongs to a later release and is skipped.
const (
	metaFormat = 1
	metaFixed  = 19
	// Protocol is the version of what nodes say to each other. Nodes of two
	// versions do not form one cluster. internal/live/previous names a commit that
	// speaks this one.
	Protocol = 3

	versionMax = 64 // bytes of a program's version; more is cut off
)

// encode checks s and puts it into metadata. A wildcard host is left empty.
func encode(s saying) ([]byte, error) {
	if err := checkHostPort(s.addr, false); err != nil {
		return nil, err
	}
	host, port, _ := net.SplitHostPort(s.addr) // checked above
	if isWildcard(host) {
		host = ""
	}
	addr := net.JoinHostPort(host, port)
	if len(addr) > 255 {
		return nil, fmt.Errorf("%.60q… is longer than an address can be", s.addr)
	}
	b := append(make([]byte, 0, metaFixed+len(addr)), metaFormat, Protocol)
	b = binary.BigEndian.AppendUint64(b, s.Boot)
	b = binary.BigEndian.AppendUint64(b, uint64(s.Start))
	b = append(b, byte(len(addr)))
	b = append(b, addr...)
	version := s.version[:min(len(s.version), versionMax)]
	b = append(b, byte(len(version)))
	return append(b, version...), nil
}

// decode reads the metadata of the member with that name. Anyone may have
// written it.
func decode(name string, meta []byte) (saying, error) {
	switch {
	case len(meta) > memberlist.MetaMaxSize:
		return saying{}, fmt.Errorf("metadata of %d bytes", len(meta))
	case len(meta) < metaFixed || meta[0] != metaFormat:
		return saying{}, errors.New("metadata that is not anteroom's")
	case meta[1] != Protocol:
		return saying{}, fmt.Errorf("it speaks version %d of the protocol and this node %d: run the same release on all nodes", meta[1], Protocol)
	}
	var s saying
	s.Boot = binary.BigEndian.Uint64(meta[2:])
	s.Start = int64(binary.BigEndian.Uint64(meta[10:]))
	rest := meta[metaFixed:]
	if n := int(meta[18]); n <= len(rest) {
		s.addr = string(rest[:n])
		s.version = decodeVersion(rest[n:])
	}
	if s.Start <= 0 {
		return saying{}, errors.New("metadata without the time at which it started")
	}
	if err := checkHostPort(s.addr, false); err != nil {
		return saying{}, fmt.Errorf("peer service: %w", err)
	}
	if err := checkName(name); err != nil {
		return saying{}, fmt.Errorf("name: %w", err)
	}
	s.Name = qpid.NodeID(name)
	return s, nil
}

// decodeVersion reads what begins with the version's length. What could not be
// shown as it stands is no version.
func decodeVersion(b []byte) string {
	if len(b) == 0 || int(b[0]) > min(len(b)-1, versionMax) {
		return ""
	}
	version := string(b[1 : 1+int(b[0])])
	if strings.ContainsFunc(version, func(r rune) bool { return r < ' ' || r > '~' }) {
		return ""
	}
	return version
}

// dialAddr is the address of the member's peer service, for one who gossips
// with it at the given address.
func (s saying) dialAddr(gossip netip.AddrPort) string {
	host, port, err := net.SplitHostPort(s.addr)
	if err != nil || !isWildcard(host) {
		return s.addr
	}
	return net.JoinHostPort(gossip.Addr().String(), port)
}

// gossipAddr is where gossip knows n; not valid if that is no address.
func gossipAddr(n *memberlist.Node) netip.AddrPort {
	ip, ok := netip.AddrFromSlice(n.Addr)
	ip = ip.Unmap()
	if !ok || ip.IsUnspecified() || n.Port == 0 {
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(ip, n.Port)
}
