package broker

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/egretstream/egret/cluster"
)

// A wire is one direction of a connection.
type wire struct{ frames []Frame }

// A station is one end, and what a slow obvious link would have to do: all that was
// queued, how much of it was given up, and how much of it the other end has got.
type station struct {
	*Link
	conn        int // the connection that it uses; 0: none
	greeted     bool
	queued      [lanes]int // frames that this end was given, each with its number
	givenUp     [lanes]int // of those, all up to this number were
	got         [lanes]int // the last number that has come from the other end, of its present process
	eras        int        // epochs that have begun here
	era         [lanes]int // when something was last delivered
	fresh       int
	resets      int
	forgot      int // by this end: told, or a new process
	boot        uint32
	outstanding int // bytes written and not told by Wrote
}

type badWorld struct {
	t     *rapid.T
	ends  [2]*station
	conns int
	used  [2]int           // the last one that an end has used
	wires map[[2]int]*wire // by connection and writing end
}

func (w *badWorld) config(end int) LinkConfig {
	return LinkConfig{Cluster: "c", Self: cluster.Home{Node: cluster.NodeID(end + 1), Boot: cluster.Boot(w.ends[end].boot)},
		Peer: cluster.Home{Node: cluster.NodeID(2 - end)}}
}

func newBadWorld(t *rapid.T) *badWorld {
	w := &badWorld{t: t, wires: map[[2]int]*wire{}}
	for i := range w.ends {
		w.ends[i] = &station{boot: 1}
		w.ends[i].Link = NewLink(w.config(i))
	}
	return w
}

func (w *badWorld) out(end int) *wire {
	key := [2]int{w.ends[end].conn, end}
	if w.wires[key] == nil {
		w.wires[key] = &wire{}
	}
	return w.wires[key]
}

func (w *badWorld) in(end int) *wire {
	key := [2]int{w.ends[end].conn, 1 - end}
	if w.wires[key] == nil {
		w.wires[key] = &wire{}
	}
	return w.wires[key]
}

func (w *badWorld) queue(end int, lane Lane) {
	s := w.ends[end]
	s.queued[lane]++
	payload := binary.LittleEndian.AppendUint64([]byte{byte(lane)}, uint64(s.queued[lane]))
	if s.queued[lane]%5 == 0 {
		payload = append(payload, make([]byte, copied)...)
	}
	require.NoError(w.t, s.Queue(lane, Note, s.boot, Sender{}, payload))
}

// attach has an end use the latest connection, or a new one if it does already.
func (w *badWorld) attach(end int) {
	s := w.ends[end]
	if w.used[end] == w.conns {
		w.conns++
	}
	w.used[end] = w.conns
	s.conn, s.greeted = w.conns, false
	hello := s.Hello()
	s.outstanding = len(hello)
	w.out(end).frames = append(w.out(end).frames, cutFrames(w.t, [][]byte{hello})...)
}

func (w *badWorld) detach(end int) {
	s := w.ends[end]
	s.Broken()
	s.conn, s.outstanding = 0, 0
}

func (w *badWorld) gaveUp(end int) {
	s := w.ends[end]
	s.givenUp = s.queued
}

func (w *badWorld) forget(end int) {
	w.ends[end].Forget()
	w.detach(end)
	w.gaveUp(end)
	w.ends[end].forgot++
}

// reboot ends a process and begins the next, which knows nothing. The other end is told
// of it now, or finds out by itself.
func (w *badWorld) reboot(end int, tell bool) {
	s, other := w.ends[end], w.ends[1-end]
	w.ends[end] = &station{boot: s.boot + 1, forgot: s.forgot + 1, resets: s.resets, queued: s.queued}
	w.gaveUp(end)
	w.ends[end].Link = NewLink(w.config(end))
	w.ends[end].eras = 1 // what was for the old process is not for this one
	if tell && other.Expect(cluster.Boot(s.boot+1)) {
		w.detach(1 - end)
		w.gaveUp(1 - end)
	}
}

// renew drops the Link of a process and makes another one.
func (w *badWorld) renew(end int) {
	w.forget(end)
	s := w.ends[end]
	c := s.LinkConfig
	c.Last = s.Last()
	s.Link = NewLink(c)
}

func (w *badWorld) write(end, most int) {
	s := w.ends[end]
	if s.conn == 0 {
		return
	}
	pieces := s.Write(nil, most)
	for _, p := range pieces {
		s.outstanding += len(p)
	}
	require.Equal(w.t, s.outstanding, s.unwritten, "it knows what the connection holds")
	w.out(end).frames = append(w.out(end).frames, cutFrames(w.t, pieces)...)
}

func (w *badWorld) wrote(end int) {
	w.ends[end].Wrote(w.ends[end].outstanding)
	w.ends[end].outstanding = 0
}

// read takes one frame from the connection.
func (w *badWorld) read(end int) (any bool) {
	s := w.ends[end]
	if s.conn == 0 || len(w.in(end).frames) == 0 {
		return false
	}
	f := w.in(end).frames[0]
	w.in(end).frames = w.in(end).frames[1:]
	if f.Kind == Hello && !s.greeted {
		g, err := ParseGreeting(f.Payload)
		require.NoError(w.t, err)
		outcome, err := s.Greeted(g)
		if err != nil {
			require.ErrorIs(w.t, err, ErrOver, "nothing else can be wrong here")
			w.detach(end)
			return true
		}
		s.greeted = true
		switch outcome {
		case Fresh:
			s.fresh++
			s.eras++
		case Reset:
			w.gaveUp(end)
			s.resets++
			s.eras++
		}
		return true
	}
	deliver, err := s.Arrived(&f)
	if err != nil {
		require.ErrorIs(w.t, err, ErrSequence)
		w.detach(end)
		return true
	}
	if !deliver {
		return true
	}
	from := w.ends[1-end]
	lane, n := Lane(f.Payload[0]), int(binary.LittleEndian.Uint64(f.Payload[1:]))
	require.Equal(w.t, lane, f.Lane)
	require.Equal(w.t, s.Peer().Boot, cluster.Boot(f.Run), "nothing comes of a process that is known to be over")
	require.Greater(w.t, n, s.got[lane], "twice, or out of order, in lane %d", lane)
	if n != s.got[lane]+1 {
		require.LessOrEqual(w.t, n-1, from.givenUp[lane], "%d to %d of lane %d are lost, and who sent them does not know", s.got[lane]+1, n-1, lane)
		require.Greater(w.t, s.eras, s.era[lane], "%d to %d of lane %d are lost, and who should have got them does not know", s.got[lane]+1, n-1, lane)
	}
	s.got[lane] = n
	s.era[lane] = s.eras
	return true
}

func (w *badWorld) check() {
	for i, s := range w.ends {
		var bytes [lanes]int
		for lane := range s.lanes {
			for k := range s.lanes[lane].len() {
				bytes[lane] += s.lanes[lane].at(k).Size()
			}
		}
		for k := range s.sent.len() {
			f := s.sent.at(k)
			bytes[f.Lane] += f.Size()
			require.Equal(w.t, s.seq-uint64(s.sent.len()-1-k), f.Seq)
		}
		require.Equal(w.t, bytes, s.bytes)
		require.True(w.t, s.epoch == 0 || s.epoch == s.last)
		require.True(w.t, s.epoch != 0 || s.sent.len() == 0)
		// Nobody loses anything because of a bad connection alone.
		require.LessOrEqual(w.t, s.resets, w.ends[1-i].forgot, "the other end knows of the link")
	}
}

// heal gives both ends a good connection and lets them come to rest.
func (w *badWorld) heal() {
	w.conns++
	for end := range w.ends {
		w.attach(end)
	}
	require.Equal(w.t, w.ends[0].conn, w.ends[1].conn)
	for quiet := 0; quiet < 3; quiet++ {
		for end, s := range w.ends {
			w.wrote(end)
			s.Idle()
			w.write(end, 100)
			for w.read(end) {
				quiet = 0
			}
		}
		w.check()
	}
	for end, s := range w.ends {
		require.True(w.t, s.Up())
		control, data := s.Bytes()
		require.Zero(w.t, control+data)
		for lane := range lanes {
			require.True(w.t, w.ends[1-end].got[lane] == s.queued[lane] || s.queued[lane] == s.givenUp[lane], "what was queued has arrived")
		}
	}
}

// Over connections that break anywhere, lose their end or their middle and repeat
// themselves, of which one end may know and the other not yet, everything arrives once
// and in the order of its lane, or both ends know that it did not. As soon as
// there is a good connection, all that was not given up arrives.
func TestReliableOrDead(t *testing.T) {
	for name, deaths := range map[string]bool{"bad connections": false, "and processes": true} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				w := newBadWorld(t)
				for range rapid.IntRange(1, 150).Draw(t, "steps") {
					end := rapid.IntRange(0, 1).Draw(t, "end")
					switch kind := rapid.IntRange(0, 23).Draw(t, "what"); kind {
					case 0, 1:
						w.queue(end, Control)
					case 2, 3, 4, 5:
						w.queue(end, Data)
					case 6, 7:
						w.attach(end)
					case 8:
						w.detach(end)
					case 9, 10, 11:
						w.write(end, rapid.SampledFrom([]int{1, 100, 5000}).Draw(t, "most"))
					case 12:
						w.wrote(end)
					case 13, 14, 15, 16, 17:
						for range rapid.IntRange(1, 9).Draw(t, "frames") {
							w.read(end)
						}
					case 18:
						w.ends[end].Idle()
					case 19, 20, 21: // harm on the way
						frames := w.out(end).frames
						if len(frames) == 0 || w.ends[end].conn == 0 {
							break
						}
						at := rapid.IntRange(0, len(frames)-1).Draw(t, "at")
						switch kind {
						case 19:
							frames = frames[:at]
						case 20:
							frames = append(frames[:at:at], frames[at+1:]...)
						default:
							frames = append(append(frames[:at:at], frames[:at+1]...), frames[at:]...)
						}
						w.out(end).frames = frames
					case 22:
						switch {
						case deaths && rapid.Bool().Draw(t, "link"):
							w.renew(end)
						case deaths:
							w.forget(end)
						}
					case 23:
						if deaths && rapid.Bool().Draw(t, "process") {
							w.reboot(end, rapid.Bool().Draw(t, "tell"))
						}
					}
					w.check()
				}
				w.heal()
				if !deaths {
					for _, s := range w.ends {
						require.Zero(t, s.resets)
						require.Equal(t, 1, s.fresh)
						require.Equal(t, [lanes]int{}, s.givenUp)
					}
				}
			})
		})
	}
}
