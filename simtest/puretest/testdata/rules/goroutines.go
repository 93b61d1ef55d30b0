package rules

func goroutines(f func()) {
	go f() // want go

	c := make(chan int) // want chan
	c <- 1              // want chan
	<-c                 // want chan
	for range c {       // want chan
	}
	select { // want chan
	default:
	}
}

func receive(c <-chan int) int { // want chan
	return <-c // want chan
}
