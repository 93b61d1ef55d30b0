package client_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/anteroom/anteroom/client"
)

func Example() {
	ctx := context.Background()
	c, closeAll := dial() // client.Dial([]string{"10.0.0.1:7002", "10.0.0.2:7002", "10.0.0.3:7002"})
	defer closeAll()
	jobs := c.Queue("mail/outgoing")
	for _, n := range []client.New{
		{ID: "weekly-news", Priority: 10, Payload: []byte("a thousand letters")},
		{ID: "password-7", Priority: 1, Payload: []byte("one letter, soon")},
	} {
		if _, err := jobs.Put(ctx, n); err != nil {
			fmt.Println(err)
		}
	}
	taken, err := jobs.Take(ctx, client.Want{Items: 10, Lease: time.Minute, Wait: 20 * time.Second})
	if err != nil {
		fmt.Println(err)
	}
	for _, l := range taken.Leases {
		fmt.Printf("%s: %s\n", l.ID, l.Payload)
		if err := l.Ack(ctx); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// password-7: one letter, soon
	// weekly-news: a thousand letters
}

func ExampleQueue_Work() {
	ctx, stop := context.WithCancel(context.Background()) // or signal.NotifyContext
	c, closeAll := dial()
	defer closeAll()
	jobs := c.Queue("images")
	for _, name := range []string{"cat.png", "dog.png"} {
		if _, err := jobs.Put(ctx, client.New{ID: name}); err != nil {
			fmt.Println(err)
		}
	}
	done := 0
	err := jobs.Work(ctx, client.Worker{Concurrency: 1, Lease: 10 * time.Second}, func(_ context.Context, l *client.Lease) error {
		fmt.Println("resize", l.ID)
		done++
		if done == 2 {
			stop() // the handlers that run come to their end, and no more are started
		}
		return nil
	})
	fmt.Println(err)
	// Output:
	// resize cat.png
	// resize dog.png
	// <nil>
}

// An item of the same id is put once, however often a caller tries.
func ExampleQueue_Put_repeated() {
	ctx := context.Background()
	c, closeAll := dial()
	defer closeAll()
	for range 2 {
		p, err := c.Queue("orders").Put(ctx, client.New{ID: "order-4711"})
		fmt.Println(p.ID, p.Existed, err)
	}
	// Output:
	// order-4711 false <nil>
	// order-4711 true <nil>
}

func ExampleReason() {
	ctx := context.Background()
	c, closeAll := dial()
	defer closeAll()
	err := c.Queue("orders").Ack(ctx, "a receipt of long ago")
	if errors.Is(err, client.ErrLeaseLost) {
		fmt.Println("somebody else may have it")
	}
	// Output: somebody else may have it
}
