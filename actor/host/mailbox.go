package host

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	protoactor "github.com/asynkron/protoactor-go/actor"
)

const (
	// After about this much work in one go the others get the core. It is counted
	// and not timed, for a look at the clock costs more than many a message.
	patience    = 256
	workMessage = 1
	workTurn    = 32 // a turn may take milliseconds

	// A burst leaves slices of its size behind; longer ones than this are let go.
	keepSlots = 4096
)

// A mailbox queues what is sent to one actor, and calls the actor: one goroutine
// at a time, which protoactor starts when something comes and which ends when
// nothing is left.
//
//	        post                 rest: nothing there
//	idle ----------> running -------------------> idle
//	                   | Stop
//	                   v
//	                closing: no more user messages, no more turns; waits for the children
//	                   | Stopped
//	                   v
//	                ended: nothing is taken any more
//
// It has no bound: flow control is by limits between tasks, which leave no more
// in it than a few parcels for each sender.
type mailbox struct {
	host *Host

	mu      sync.Mutex
	in      []any // not looked at yet
	system  []any // protoactor's, which go first
	running bool  // a goroutine is in process, or about to be
	phase   phase
	// urgent is len(system) > 0, for a look without the lock.
	urgent atomic.Bool

	_ [64]byte // what follows is not touched by senders

	// Owner: the goroutine in process. It hands over by setting running to false
	// under mu, as the last thing that it does.
	runner     *runner
	invoker    protoactor.MessageInvoker
	dispatcher protoactor.Dispatcher
	out        []any // taken from in; out[next:] is to be received
	next       int
	closing    bool
	ended      bool
	process    func() // work until nothing is left; one closure for all times
}

type phase uint8

const (
	phaseOpen phase = iota
	phaseClosing
	phaseEnded
)

// The five methods that protoactor wants.

func (m *mailbox) RegisterHandlers(i protoactor.MessageInvoker, d protoactor.Dispatcher) {
	m.invoker, m.dispatcher = i, d
	m.process = func() {
		m.runner.wear()
		for !m.work() {
		}
	}
}

func (m *mailbox) Start() {}

func (m *mailbox) UserMessageCount() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.in)
}

func (m *mailbox) PostUserMessage(msg any) {
	m.mu.Lock()
	if m.phase != phaseOpen {
		m.mu.Unlock()
		m.host.dropped.Add(1)
		return
	}
	m.in = append(m.in, msg)
	wake := !m.running
	m.running = true
	m.mu.Unlock()
	if wake {
		m.dispatcher.Schedule(m.process)
	}
}

func (m *mailbox) PostSystemMessage(msg any) {
	m.mu.Lock()
	if m.phase == phaseEnded {
		m.mu.Unlock()
		return
	}
	m.system = append(m.system, msg)
	m.urgent.Store(true)
	wake := !m.running
	m.running = true
	m.mu.Unlock()
	if wake {
		m.dispatcher.Schedule(m.process)
	}
}

// work calls the actor until nothing is left, and reports whether it came to
// that; if not, the actor has panicked and work is to be called again.
func (m *mailbox) work() (rested bool) {
	defer func() {
		if rested {
			return
		}
		reason := recover()
		m.runner.fail(reason)
		if reason == nil {
			// runtime.Goexit, as by a failed assertion of a test in an actor's code: it
			// cannot be held up, so another goroutine has to go on.
			m.dispatcher.Schedule(m.process)
		}
	}()
	done := 0
	for {
		switch {
		case m.urgent.Load():
			m.invoker.InvokeSystemMessage(m.takeSystem())
			if m.ended {
				m.runner.gone()
				return true
			}
		case m.next < len(m.out):
			msg := m.out[m.next]
			m.out[m.next] = nil
			m.next++
			m.invoker.InvokeUserMessage(msg)
			done += workMessage
		case m.swap():
		case !m.closing && m.runner.turn():
			done += workTurn
		case m.rest():
			return true
		}
		if done >= patience {
			done = 0
			runtime.Gosched()
		}
	}
}

// takeSystem takes the first system message. If it is a Stop, the mailbox closes.
func (m *mailbox) takeSystem() any {
	m.mu.Lock()
	msg := m.system[0]
	m.system = slices.Delete(m.system, 0, 1)
	m.urgent.Store(len(m.system) > 0)
	_, stop := msg.(*protoactor.Stop)
	lost := 0
	if stop && m.phase == phaseOpen {
		m.phase = phaseClosing
		lost = len(m.in)
		m.in = nil
	}
	m.mu.Unlock()
	if stop {
		lost += len(m.out) - m.next
		m.out, m.next = nil, 0
		m.closing = true
		m.host.dropped.Add(uint64(lost))
	}
	return msg
}

// swap takes what was sent since the last swap, if anything.
func (m *mailbox) swap() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.in) == 0 {
		return false
	}
	m.in, m.out, m.next = m.out[:0], m.in, 0
	return true
}

// rest makes the mailbox idle, unless something has come.
func (m *mailbox) rest() bool {
	if cap(m.out) > keepSlots {
		m.out, m.next = nil, 0
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.in) > 0 || len(m.system) > 0 {
		return false
	}
	m.running = false
	return true
}

// end makes the mailbox take nothing any more. It is called by the actor's last
// call, or for an actor that never began.
func (m *mailbox) end() {
	m.ended = true
	m.mu.Lock()
	m.phase = phaseEnded
	m.mu.Unlock()
}
