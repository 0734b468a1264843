package egret

import (
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// interrupts counts the interrupts that this process gets until stop is called. The
// first two go to told, the third ends the process, whatever it is doing. each, if
// not nil, is called for the first two, from another goroutine.
func interrupts(each func(n int)) (told <-chan int, stop func()) {
	const last = 3
	numbers := make(chan int, last-1)
	signals := make(chan os.Signal, last)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	quit := make(chan struct{})
	var counter sync.WaitGroup
	counter.Go(func() { // stop waits for it
		for n := 1; ; n++ {
			select {
			case <-quit:
				return
			case <-signals:
			}
			if n == last {
				os.Exit(ExitInterrupted)
			}
			if each != nil {
				each(n)
			}
			numbers <- n
		}
	})
	return numbers, func() {
		signal.Stop(signals)
		close(quit)
		counter.Wait()
	}
}
