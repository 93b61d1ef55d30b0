// Package conns bounds the connections that a node's ports have open: one
// connection limiter for each listener, over HTTP or gRPC.
//
// Every connection takes a file descriptor, and a process that has none left can
// neither save its state nor gossip nor reach the other nodes. So each listener
// has its own part of them (see [SharesOf], the one place where the parts are
// decided), and a flood of one port takes nothing from the others.
//
// When a listener is full, or one address has as many connections as it may, the
// connection that has carried no request for longest makes way for the newcomer:
// an idle one that is kept alive, one on which nothing was said yet, a handshake
// that is not over, or one whose request has not come as a whole. Real visitors
// and programs send theirs at once, and open a new connection when the old one is
// gone; so neither idle clients nor strangers who hold connections, or say what
// they want byte by byte, keep them out. Only if every connection carries a
// request, a newcomer is closed at once.
//
// Waiting in the kernel's backlog would let the idle ones starve the others. A
// request touches nothing but its own connection and a counter. Who has been
// quiet for longest is found out when somebody must go, for many at a time.
package conns
