package egret

import (
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// atOnce is for how long a second SIGTERM is the same interrupt: the command timeout sends
// it to the process, and then to its group.
const atOnce = 250 * time.Millisecond

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
		count(signals, quit, func(n int) {
			if n == last {
				os.Exit(ExitInterrupted)
			}
			if each != nil {
				each(n)
			}
			numbers <- n
		})
	})
	return numbers, func() {
		signal.Stop(signals)
		close(quit)
		counter.Wait()
	}
}

// count numbers the signals that are interrupts, until quit is closed.
func count(signals <-chan os.Signal, quit <-chan struct{}, each func(n int)) {
	var terminated time.Time
	for n := 0; ; {
		select {
		case <-quit:
			return
		case s := <-signals:
			if s == syscall.SIGTERM {
				if time.Since(terminated) < atOnce {
					continue
				}
				terminated = time.Now()
			}
			n++
			each(n)
		}
	}
}
