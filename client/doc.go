// Package client uses the priority queues of an anteroom cluster from Go.
//
//	c, err := client.Dial([]string{"10.0.0.1:7002", "10.0.0.2:7002"})
//	if err != nil {
//		return err
//	}
//	defer c.Close()
//	jobs := c.Queue("jobs")
//	_, err = jobs.Put(ctx, client.New{Payload: []byte("resize 42"), Priority: 5})
//
// and, in a program that does the work:
//
//	err = jobs.Work(ctx, client.Worker{Concurrency: 4}, func(ctx context.Context, l *client.Lease) error {
//		return resize(ctx, l.Payload) // nil: done; an error: again later
//	})
//
// Any node takes any call, so the addresses are the ports for programs (node.grpc) of
// some nodes or of all. A client stays with one node as long as that answers,
// and goes on to the next when it does not.
//
// On a node's own machine that is all. Elsewhere nodes speak TLS and ask for a
// token:
//
//	client.Dial(addresses, client.WithCA(pem), client.WithToken(os.Getenv("ANTEROOM_TOKEN")))
//
// # Retries
//
// A call that meets a node that is gone, or slow, or has no room just now, is
// made again, at other nodes and after growing pauses, or when the node says so
// (google.rpc.RetryInfo), until the context ends or the client's patience does.
// That is safe: Put gives each item its id before the first try, so a repeated
// one puts nothing twice, and a repeated Ack succeeds. What a repeated Take may
// do is leave an item leased to nobody, because the answer was lost; the item is
// back when that lease lapses.
//
// # What to expect
//
// Items are delivered at least once. A lease lapses when its holder says nothing
// in time, and then somebody else gets the item: make the work harmless to
// repeat, or check Lease.Attempts and your own records. Work extends leases while
// the handler runs, and cancels the handler's context when one is lost.
//
// Errors are of type *Error, with a Reason to compare with errors.Is:
//
//	if errors.Is(err, client.ErrLeaseLost) { … }
//
// The service itself is anteroom.v1.PriorityQueue; docs/queue.md tells the rest.
package client
