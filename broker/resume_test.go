package broker

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/cluster"
)

// cutFrames returns the frames of pieces, which are as if they were one.
func cutFrames(t require.TestingT, pieces [][]byte) (frames []Frame) {
	var b []byte
	for _, p := range pieces {
		b = append(b, p...)
	}
	for len(b) > 0 {
		n := 4 + int(binary.LittleEndian.Uint32(b))
		f, err := ParseFrame(b[:n:n])
		require.NoError(t, err)
		frames = append(frames, f)
		b = b[n:]
	}
	return frames
}

// TestLinkScripts plays the conversations in testdata/link*.txt between two ends, which
// are called a and b. UPDATE=1 writes down what they answer. A line that begins with a
// tab is an answer; the rest is
//
//	a is 1.1 [cluster=c]       a new process: node 1, boot 1; b is node 2. Or the same one
//	                           with another Link
//	a queues control|data TEXT...
//	connect                    both say hello and are greeted
//	a hello | a greeted        or one step of that after the other
//	a writes [most=N]          onto the connection, and the connection takes it
//	b reads [N]                frames from it, or all
//	b reads again              the last one a second time
//	a breaks | lost a          the connection; what a wrote and b has not read
//	a idle | a forgets | a expects N
func TestLinkScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/link*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			var out strings.Builder
			s := conversation{}
			for line := range strings.Lines(string(text)) {
				if strings.HasPrefix(line, "\t") {
					continue
				}
				out.WriteString(line)
				if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
					continue
				}
				for _, answer := range s.play(t, strings.Fields(line)) {
					out.WriteString("\t" + answer + "\n")
				}
			}
			if os.Getenv("UPDATE") != "" {
				require.NoError(t, os.WriteFile(file, []byte(out.String()), 0o644))
				return
			}
			require.Equal(t, string(text), out.String())
		})
	}
}

type conversation map[string]*party

type party struct {
	*Link
	wire []Frame // written by this end
	last *Frame  // read by this end
}

func (s conversation) play(t *testing.T, words []string) (answers []string) {
	say := func(format string, args ...any) { answers = append(answers, fmt.Sprintf(format, args...)) }
	if words[0] == "connect" {
		for _, w := range []string{"a hello", "b hello", "a greeted", "b greeted"} {
			answers = append(answers, s.play(t, strings.Fields(w))...)
		}
		return answers
	}
	name, verb, args := words[0], words[1], words[2:]
	if name == "lost" {
		say("%d frames", len(s[verb].wire))
		s[verb].wire = nil
		return answers
	}
	number := func(i int) int {
		n, err := strconv.Atoi(args[i][strings.Index(args[i], "=")+1:])
		require.NoError(t, err)
		return n
	}
	if verb == "is" {
		var self cluster.Home
		_, err := fmt.Sscanf(args[0], "%d.%d", &self.Node, &self.Boot)
		require.NoError(t, err)
		var last uint64
		if old := s[name]; old != nil && old.Self == self && old.peer.Boot > 0 {
			last = old.Last() // the same process
		}
		c := LinkConfig{Last: last, Self: self, Peer: cluster.Home{Node: 2}, Cluster: "c0ffee"}
		if name == "b" {
			c.Peer.Node = 1
		}
		if len(args) > 1 {
			c.Cluster = strings.TrimPrefix(args[1], "cluster=")
		}
		s[name] = &party{Link: NewLink(c)}
		return nil
	}
	p, other := s[name], s["a"]
	if name == "a" {
		other = s["b"]
	}
	switch verb {
	case "queues":
		lane, kind := Control, Note
		if args[0] == "data" {
			lane, kind = Data, Parcel
		}
		for _, text := range args[1:] {
			require.NoError(t, p.Queue(lane, kind, 1, Sender{}, []byte(text)))
		}
	case "hello":
		p.wire = cutFrames(t, [][]byte{p.Hello()})
		p.Wrote(p.unwritten)
		g := p.mine
		say("%s says from=%v to=%v epoch=%d last=%d received=%d", name, short(g.From), short(g.To), g.Epoch, g.Last, g.Received)
	case "greeted":
		require.Equal(t, Hello, other.wire[0].Kind)
		g, err := ParseGreeting(other.wire[0].Payload)
		require.NoError(t, err)
		other.wire = other.wire[1:]
		if outcome, err := p.Greeted(g); err != nil {
			say("%s refuses: %v", name, err)
		} else {
			say("%s: %v, epoch %d", name, outcome, p.epoch)
		}
	case "writes":
		most := 1 << 20
		if len(args) > 0 {
			most = number(0)
		}
		frames := cutFrames(t, p.Write(nil, most))
		p.Wrote(p.unwritten)
		p.wire = append(p.wire, frames...)
		for _, f := range frames {
			say("%v %q seq=%d acked=%d", f.Kind, f.Payload, f.Seq, f.Acked)
		}
		control, data := p.Bytes()
		say("%d control bytes and %d data bytes wait", control, data)
	case "reads":
		frames := other.wire
		if len(args) > 0 && args[0] == "again" {
			frames = []Frame{*p.last}
		} else {
			if len(args) > 0 {
				frames = frames[:number(0)]
			}
			other.wire = other.wire[len(frames):]
		}
		for _, f := range frames {
			p.last = &f
			switch deliver, err := p.Arrived(&f); {
			case err != nil:
				say("bad: %v", err)
			case deliver:
				say("delivers %q", f.Payload)
			default:
				say("nothing new in %v %d", f.Kind, f.Seq)
			}
		}
		control, data := p.Bytes()
		say("%d control bytes and %d data bytes wait", control, data)
	case "breaks":
		p.Broken()
	case "idle":
		p.Idle()
	case "forgets":
		p.Forget()
	case "expects":
		say("reset: %t", p.Expect(cluster.Boot(number(0))))
	default:
		t.Fatalf("no such verb: %v", words)
	}
	return answers
}

func short(h cluster.Home) string { return fmt.Sprintf("%d.%d", uint64(h.Node), h.Boot) }

// What is not of the connection breaks it, and changes nothing else.
func TestOutOfSequence(t *testing.T) {
	a, b := NewLink(LinkConfig{Self: cluster.Home{Node: 1, Boot: 1}, Peer: cluster.Home{Node: 2}}), NewLink(LinkConfig{Self: cluster.Home{Node: 2, Boot: 1}, Peer: cluster.Home{Node: 1}})
	refused := func(f Frame, want string) {
		t.Helper()
		deliver, err := a.Arrived(&f)
		require.False(t, deliver)
		require.ErrorIs(t, err, ErrSequence)
		require.ErrorContains(t, err, want)
	}
	refused(Frame{Kind: Note, Seq: 1}, "a note before a hello")
	_, err := a.Greeted(Greeting{})
	require.ErrorContains(t, err, "a hello in the middle")
	greet := func(a, b *Link) Outcome {
		outcome, err := a.Greeted(*b.mine)
		require.NoError(t, err)
		return outcome
	}
	a.Hello()
	b.Hello()
	require.Equal(t, Fresh, greet(a, b))
	require.NoError(t, a.Queue(Control, Note, 0, Sender{}, nil))
	a.Write(nil, 1<<20)
	refused(Frame{Kind: Hello}, "a hello in the middle")
	_, err = a.Greeted(*b.mine)
	require.ErrorContains(t, err, "a hello in the middle")
	refused(Frame{Kind: Note, Epoch: 2, Seq: 1}, "epoch 2 in epoch 1")
	refused(Frame{Kind: Ack, Epoch: 1, Acked: 2}, "2 frames are acked, and there were 1")
	refused(Frame{Kind: Note, Epoch: 1, Seq: 2}, "2 after 0")
	deliver, err := a.Arrived(&Frame{Kind: Note, Epoch: 1, Seq: 1, Acked: 1})
	require.NoError(t, err)
	require.True(t, deliver)

	// The other end, which has forgotten the link without a word.
	a.Hello()
	b.Hello()
	outcome, err := a.Greeted(*b.mine)
	require.Equal(t, Reset, outcome)
	require.ErrorIs(t, err, ErrSequence)
	require.ErrorContains(t, err, "0000000000000002.1 has 0 frames, and 1 to 1 are known")
	a.Hello()
	b.Hello()
	require.Equal(t, Fresh, greet(a, b))
	require.Equal(t, Fresh, greet(b, a))
}

func TestLinkIsBounded(t *testing.T) {
	l := NewLink(LinkConfig{MaxFrame: 100, ControlBudget: 150})
	require.EqualError(t, l.Queue(Data, Parcel, 1, Sender{}, make([]byte, 63)),
		"bad frame: a parcel of 101 bytes, and 100 are the most that may travel at a time")
	require.NoError(t, l.Queue(Control, Note, 0, Sender{}, make([]byte, 62)))
	require.ErrorIs(t, l.Queue(Control, Note, 0, Sender{}, make([]byte, 62)), ErrFull)
	require.NoError(t, l.Queue(Control, Note, 0, Sender{}, make([]byte, 12)))
	control, data := l.Bytes()
	require.Equal(t, []int{150, 0}, []int{control, data})
}

func FuzzParseGreeting(f *testing.F) {
	l := NewLink(LinkConfig{Self: cluster.Home{Node: 1, Boot: 1}, Peer: cluster.Home{Node: 2, Boot: 1}, Cluster: "c"})
	f.Add(l.Hello()[HeaderSize:])
	f.Add([]byte(`{"from":{"node":"00000000000000ff","boot":1},"epoch":1}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		g, err := ParseGreeting(b)
		if err != nil {
			require.ErrorIs(t, err, ErrFrame)
			return
		}
		l.Hello()
		if _, err := l.Greeted(g); err == nil {
			require.True(t, l.Up())
		}
	})
}
