// Package proto is where nodes and programs meet over gRPC. Its directories:
//
//	anteroom/v1       the public services, and the code generated from them
//	anteroom/peer/v1  what nodes say to each other, and the code generated from it
//	wire              the types of the core to and from the generated ones
//	auth              who counts as a peer
//	link              the streams between nodes, and forwarded requests
//	notice            what nodes tell each other beside the waves
//	queuelink         the same for the messages of the priority queues, apart from the waves
//	waitingroom       the public service of the rooms, over whatever queue is behind it
//	priorityqueue     the public service of the priority queues
//	envoy             the service that Envoys ask, over the gateway
//	rpc               the gRPC server that offers all of them on one port
//
// Nothing here decides anything about a queue.
package proto

//go:generate go tool -modfile=../tools/go.mod buf lint
//go:generate go tool -modfile=../tools/go.mod buf generate
