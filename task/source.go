package task

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"

	"github.com/egretstream/egret/mutation"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/tuple"
)

// What a spout task calls of a source may wait, so it is called elsewhere and
// its result comes as a message.

// calling runs user code and makes an error of its panic. It must not touch c's
// state; what it reads never changes, and c's node and plan do.
func (c *core) calling(during string, f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			p := &PanicError{Component: c.component, Task: c.number, During: during, Value: r, Stack: debug.Stack()}
			if m := tuple.Misused(r); m != nil {
				p.Value, p.Stack, p.Misuse = m, nil, true
			}
			err = p
		}
	}()
	return f()
}

// nextOf calls Next and Position of a reader. Nothing else of t is touched.
func (t *spoutTask) nextOf(ctx context.Context, r spout.Reader, out *spout.Out) (position string, err error) {
	err = t.calling("Next", func() error { return r.Next(ctx, out) })
	if _, is := errors.AsType[*PanicError](err); is {
		return "", err
	}
	if e := t.calling("Position", func() error { position = r.Position(); return nil }); e != nil {
		return "", e
	}
	return position, err
}

// A sourceCall is a call of Open or Next that is under way elsewhere. If the task ends
// meanwhile, its result comes to nobody, and a reader must be closed all the same:
// by the call if it returns after the task has left, else by the task.
type sourceCall struct {
	first  context.Context // ends with errBack or errLeft, whichever came first
	end    context.CancelCauseFunc
	reader spout.Reader // written before errBack
	watch  *blockedCall // nil: Next, which may wait
}

var (
	errBack = errors.New("the call has returned")
	errLeft = errors.New("the task has ended")
)

func newCall(r spout.Reader) *sourceCall {
	c := &sourceCall{reader: r}
	c.first, c.end = context.WithCancelCause(context.Background())
	return c
}

// back says that the call has returned. It reports whether the task is still
// there; if not, the reader is to be closed here.
func (c *sourceCall) back() bool {
	c.end(errBack)
	return context.Cause(c.first) == errBack
}

// leave says that the task has ended, or waits for the call no more. If the call
// has returned before, leave returns its reader, which is to be closed.
func (c *sourceCall) leave() (r spout.Reader, back bool) {
	if c.left() {
		return nil, false
	}
	return c.reader, true
}

// left says that the task has ended, and reports whether the call has not returned.
func (c *sourceCall) left() bool {
	c.end(errLeft)
	return context.Cause(c.first) == errLeft
}

// list asks the source for its splits.
func (t *spoutTask) list() {
	if t.drained {
		return
	}
	t.listing = true
	source, ctx, b := t.node.Source, t.running, t.block("Splits", "", ".(*spoutTask).list")
	t.listCall = b
	t.ctx.Block(func() any {
		var splits []spout.Split
		err := t.calling("Splits", func() (err error) { splits, err = source.Splits(ctx); return err })
		if err == nil {
			err = oneOfEach(splits)
		}
		return splitsRead{b, splits, err}
	})
}

// oneOfEach returns an error if a split is there twice: they would have one position.
func oneOfEach(splits []spout.Split) error {
	seen := make(map[spout.Split]bool, len(splits))
	for _, s := range splits {
		if seen[s] {
			return fmt.Errorf("the source lists split %.200q twice: each is to have a name of its own, by which its position is known", s)
		}
		seen[s] = true
	}
	return nil
}

func (t *spoutTask) callOpen(r *reading) {
	c := newCall(nil)
	r.call = c
	c.watch = t.block("Open", string(r.split), ".(*spoutTask).callOpen")
	source, ctx, split, position := t.node.Source, t.running, r.split, r.position
	t.ctx.Block(func() any {
		err := t.calling("Open", func() (err error) { c.reader, err = source.Open(ctx, split, position); return err })
		if !c.back() {
			t.close(c.reader)
		}
		return splitOpened{r, c, c.reader, err}
	})
}

func (t *spoutTask) callNext(r *reading, b *spout.Batch) {
	c := newCall(r.reader)
	r.call = c
	ctx, out := t.running, r.out
	t.ctx.Block(func() any {
		position, err := t.nextOf(ctx, c.reader, out)
		if !c.back() {
			t.close(c.reader)
		}
		return nextDone{r, c, b, position, err}
	})
}

// shut closes the reader of a split that has one.
func (t *spoutTask) shut(r *reading) {
	if reader := r.reader; reader != nil {
		last, b := r.eof, t.block("Close", string(r.split), ".(*spoutTask).close")
		t.ctx.Block(func() any { return closeDone{b, r, last, t.close(reader)} })
	}
	r.reader = nil
	if r.eof {
		r.out = nil // its row points into what was read last
	}
}

func (t *spoutTask) close(r spout.Reader) error {
	c, is := r.(io.Closer)
	if !is {
		return nil
	}
	return t.calling("Close", c.Close)
}

// tell tells the supervisor and the source of a position, not too often. The
// source hears of one at a time, in order.
func (t *spoutTask) tell(r *reading) {
	if r.position == r.told || r.telling {
		return
	}
	if r.toldAt > 0 && t.now-r.toldAt < commitEvery && !(r.eof && len(r.waiting) == 0) {
		if !t.commits {
			t.commits = true
			t.after(commitEvery, commit{})
		}
		return
	}
	r.told, r.toldAt = r.position, t.now
	t.ctx.Send(t.sup, committed{t.id, t.life, string(r.split), r.position, r.index})
	if _, is := t.node.Source.(spout.Committer); is && !r.deaf {
		r.telling = true
		if t.set.Store == nil || mutation.Is(mutation.CommitTooSoon) {
			t.tellSource(r, r.position)
		} // else when the store has it: see kept
	}
}

func (t *spoutTask) tellSource(r *reading, position string) {
	c := t.node.Source.(spout.Committer)
	ctx, split := t.alive, r.split
	r.commit = t.block("Commit", string(split), ".(*spoutTask).tellSource")
	t.ctx.Block(func() any {
		return commitDone{r, position, t.calling("Commit", func() error { return c.Commit(ctx, split, position) })}
	})
}
func (t *spoutTask) hasTold(m commitDone) {
	t.unblock(m.r.commit)
	m.r.telling, m.r.commit = false, nil
	if m.err != nil {
		t.set.Event(&SourceError{Task: t.m.Name, Split: string(m.r.split), Position: m.position, Err: fmt.Errorf("commit: %w", m.err)})
	}
	if !m.r.deaf {
		t.tell(m.r) // what has been done meanwhile
	}
}

// leaveCommits goes on without the calls of Commit that were told of as stuck, when
// nothing else is waited for. It returns false if there are others. The source hears
// no more of these splits; the supervisor does.
func (t *spoutTask) leaveCommits() bool {
	for _, r := range t.splits {
		if r.telling && (r.commit == nil || !r.commit.told) {
			return false
		}
	}
	for _, r := range t.splits {
		if r.telling {
			r.telling, r.deaf = false, true
			t.tellLeft("does not come back", "source", r.commit.String())
			t.tell(r)
		}
	}
	return true
}
