package rules

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"time"
	. "time"
	clock "time"
)

type config struct {
	wait  time.Duration
	start time.Time // want use
}

func clocks() {
	_ = time.Now().Unix()       // want use
	_ = clock.Since             // want use
	_ = Until                   // want use
	time.Sleep(time.Second)     // want use
	<-time.After(2 * time.Hour) // want use chan
	_ = time.NewTimer           // want use
	_ = time.Tick(time.Minute)  // want use
	_ = config{}.wait.Round(time.Millisecond)
}

func randomness(seed uint64) {
	_ = rand.IntN(6)        // want use
	_ = rand.N(time.Second) // want use
	rand.Shuffle(2, nil)    // want use
	r := rand.New(rand.NewPCG(seed, 1))
	_ = r.IntN(6)
	var source rand.Source = rand.NewChaCha8([32]byte{})
	_ = source.Uint64()
}

func terminal(s iter.Seq[int]) {
	fmt.Println("hello") // want use
	fmt.Scanln()         // want use
	println("hello")     // want use
	_ = fmt.Sprint("hello")
	_, _ = iter.Pull(s) // want use
}
