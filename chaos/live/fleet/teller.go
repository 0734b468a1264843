package fleet

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/egretstream/egret/tuple"
)

// What a node tells the recorder are frames: a kind, the length of the rest, the rest.
// Each is answered by one byte when it is recorded.
const (
	helloFrame   = 'h' // a hello, first
	numbersFrame = 'n' // 16 bytes for each: number, when it was emitted in Unix nanoseconds
	livesFrame   = 'l' // a list of lives

	recorded  = 'r'
	mostFrame = 1 << 20
)

type hello struct {
	Process int `json:"process"`
}

// A life of a task has begun; of a source, one of a split.
type life struct {
	Component string `json:"component"`
	Index     int    `json:"index"`
}

// tellers are the connections of this process, by the address of a recorder.
type tellers struct {
	mu  sync.Mutex
	all map[string]*teller
}

func (t *tellers) to(addr string) *teller {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.all == nil {
		t.all = map[string]*teller{}
	}
	if t.all[addr] == nil {
		t.all[addr] = &teller{addr: addr}
	}
	return t.all[addr]
}

// A teller tells a recorder, in batches: while one waits for its answer, the next one is
// filled. Its goroutine ends when there is nothing to tell, so nobody has to close it.
type teller struct {
	addr string

	mu    sync.Mutex
	open  *telling // nil: nothing waits
	busy  bool     // the goroutine is there
	lives []life

	// of the goroutine
	conn   net.Conn
	answer *bufio.Reader
}

// A telling is a batch of numbers.
type telling struct {
	frame []byte
	done  chan struct{} // closed when there is an answer
	err   error
}

// number is the body of a sink.
func (t *teller) number(ctx context.Context, in tuple.Tuple, _ func(...any)) error {
	return t.tell(ctx, in.Int64("n"), in.Int64("at"))
}

// tell tells of a number, emitted at a time, and waits for the answer.
func (t *teller) tell(ctx context.Context, n, at int64) error {
	t.mu.Lock()
	if t.open == nil {
		t.open = &telling{done: make(chan struct{})}
	}
	b := t.open
	b.frame = binary.BigEndian.AppendUint64(b.frame, uint64(n))
	b.frame = binary.BigEndian.AppendUint64(b.frame, uint64(at))
	t.wake()
	t.mu.Unlock()
	select {
	case <-b.done:
		return b.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// life tells of a life, and does not wait.
func (t *teller) life(component string, index int) {
	if t.addr == "" {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lives = append(t.lives, life{component, index})
	t.wake()
}

// wake sees to it that somebody tells. Caller must hold mu.
func (t *teller) wake() {
	if !t.busy {
		t.busy = true
		go t.run()
	}
}

func (t *teller) run() {
	for {
		t.mu.Lock()
		b, lives := t.open, t.lives
		t.open, t.lives = nil, nil
		if b == nil && len(lives) == 0 {
			t.busy = false
			t.mu.Unlock()
			return
		}
		t.mu.Unlock()
		if len(lives) > 0 {
			text, err := json.Marshal(lives)
			if err == nil {
				err = t.say(livesFrame, text)
			}
			if err != nil { // until the recorder has it
				t.mu.Lock()
				t.lives = append(lives, t.lives...)
				t.mu.Unlock()
			}
		}
		if b != nil {
			b.err = t.say(numbersFrame, b.frame)
			close(b.done)
		}
	}
}

// say says something and waits for the answer.
func (t *teller) say(kind byte, text []byte) (err error) {
	defer func() {
		if err != nil && t.conn != nil {
			t.conn.Close()
			t.conn = nil
		}
		if err != nil {
			time.Sleep(20 * time.Millisecond) // between attempts
		}
	}()
	if t.conn == nil {
		if t.conn, err = net.DialTimeout("tcp", t.addr, time.Second); err != nil {
			t.conn = nil
			return err
		}
		t.answer = bufio.NewReader(t.conn)
		h, err := json.Marshal(hello{os.Getpid()})
		if err != nil {
			return err
		}
		if err := t.exchange(helloFrame, h); err != nil {
			return err
		}
	}
	return t.exchange(kind, text)
}

func (t *teller) exchange(kind byte, text []byte) error {
	frame := binary.BigEndian.AppendUint32([]byte{kind}, uint32(len(text)))
	if _, err := t.conn.Write(append(frame, text...)); err != nil {
		return err
	}
	b, err := t.answer.ReadByte()
	if err == nil && b != recorded {
		err = errors.New("the recorder has answered something else")
	}
	return err
}

// readFrame is the recorder's end.
func readFrame(r *bufio.Reader) (kind byte, text []byte, err error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	n := binary.BigEndian.Uint32(head[1:])
	if n > mostFrame {
		return 0, nil, errors.New("a frame is too long")
	}
	text = make([]byte, n)
	_, err = io.ReadFull(r, text)
	return head[0], text, err
}
