package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// frame returns a frame of n bytes in all, each of them b.
func frame(n int, b byte) []byte {
	f := bytes.Repeat([]byte{b}, n)
	binary.LittleEndian.PutUint32(f, uint32(n-lengthBytes))
	return f
}

// A record is what a Conn has told.
type record struct {
	mu     sync.Mutex
	frames [][]byte
	wrote  int
	broken []error
	news   chan struct{} // holds one if something was told
}

func (r *record) config(most int) ConnConfig {
	r.news = make(chan struct{}, 1)
	tell := func(f func()) {
		r.mu.Lock()
		f()
		r.mu.Unlock()
		select {
		case r.news <- struct{}{}:
		default:
		}
	}
	return ConnConfig{
		Most:    most,
		Arrived: func(frames [][]byte) { tell(func() { r.frames = append(r.frames, frames...) }) },
		Wrote:   func(n int) { tell(func() { r.wrote += n }) },
		Broken:  func(err error) { tell(func() { r.broken = append(r.broken, err) }) },
	}
}

// until waits for something to be so.
func (r *record) until(ok func() bool) {
	for {
		r.mu.Lock()
		done := ok()
		r.mu.Unlock()
		if done {
			return
		}
		<-r.news
	}
}

// pairs returns the kinds of connections that frames go over.
func pairs(t testing.TB, do func(t *testing.T, a, b net.Conn), only ...string) {
	for _, kind := range []string{"tcp", "tls", "pipe"} {
		if len(only) > 0 && !slices.Contains(only, kind) {
			continue
		}
		t.(*testing.T).Run(kind, func(t *testing.T) {
			a, b := net.Pipe()
			if kind != "pipe" {
				a, b = connected(t, kind == "tls")
			}
			do(t, a, b)
		})
	}
}

// connected returns both ends of a connection of two ports.
func connected(t testing.TB, sealed bool) (a, b net.Conn) {
	s := Secret{}
	if sealed {
		s = secret(t, newText)
	}
	p, _ := listen(t, 1, s, Secret{})
	a, err := p.Dial(t.Context(), Broker, p.Addr())
	require.NoError(t, err)
	b, err = p.Listener(Broker).Accept()
	require.NoError(t, err)
	return a, b
}

// Whatever the sizes, all frames arrive as they were, in order, and all bytes are told
// as written.
func TestFramesArrive(t *testing.T) {
	pairs(t, func(t *testing.T, a, b net.Conn) {
		const most = 3 << 20
		var from, to record
		ca, cb := NewConn(a, from.config(most)), NewConn(b, to.config(most))
		var want [][]byte
		total := 0
		for i, size := range []int{0, 4, 5, 44, 8 << 10, 64<<10 - 1, 64 << 10, 64<<10 + 1, readBuffer - 1, readBuffer, readBuffer + 1, 4, most, 4, 100, 1 << 20, 7} {
			for range 3 {
				if size == 0 { // nothing is nothing
					ca.Write([][]byte{nil, {}})
					ca.Write(nil)
					continue
				}
				f := frame(size, byte(i))
				want = append(want, f)
				total += size
			}
		}
		for i := 0; i < len(want); i += 5 {
			ca.Write(want[i:min(i+5, len(want))])
		}
		to.until(func() bool { return len(to.frames) == len(want) })
		from.until(func() bool { return from.wrote == total })
		for i := range want {
			require.True(t, bytes.Equal(want[i], to.frames[i]), "frame %d", i)
		}
		// And back.
		cb.Write(want[:4])
		from.until(func() bool { return len(from.frames) == 4 })
		ca.Close()
		ca.Wait()
		cb.Wait()
		require.Len(t, from.broken, 1)
		require.ErrorIs(t, from.broken[0], net.ErrClosed)
		require.Len(t, to.broken, 1)
		require.Error(t, to.broken[0])
		ca.Write(want[:1])
		ca.Close()
		require.Empty(t, ca.waiting)
		require.Len(t, from.broken, 1, "that is said once")
	})
}

// Small frames that are written while the writer is busy go together.
func TestWritesAreBatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := net.Pipe()
		var from record
		c := NewConn(a, from.config(1<<20))
		first := frame(10, 1)
		c.Write([][]byte{first})
		synctest.Wait() // it is under way, and nobody reads
		for range 1000 {
			c.Write([][]byte{frame(44, 2)})
		}
		got := make([]byte, 1<<20)
		n, err := b.Read(got)
		require.NoError(t, err)
		require.Equal(t, 10, n)
		n, err = b.Read(got)
		require.NoError(t, err)
		require.Equal(t, 44000, n)
		c.Close()
		c.Wait()
		b.Close()
		require.Equal(t, 44010, from.wrote)
	})
}

// A connection that takes nothing for 30 s is over; one that takes a little is not.
func TestStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := net.Pipe()
		var from record
		c := NewConn(a, from.config(1<<20))
		time.Sleep(time.Hour) // with nothing to write it may last
		began := time.Now()
		c.Write([][]byte{frame(10, 1)})
		c.Wait()
		require.Equal(t, stall, time.Since(began))
		require.ErrorIs(t, from.broken[0], os.ErrDeadlineExceeded)
		require.Zero(t, from.wrote)
		b.Close()
	})
	synctest.Test(t, func(t *testing.T) {
		a, b := net.Pipe()
		var from record
		c := NewConn(a, from.config(1<<20))
		began := time.Now()
		c.Write([][]byte{frame(10, 1), frame(10, 2), frame(10, 3)})
		for range 20 { // a slow receiver
			time.Sleep(stall - time.Second)
			b.Read(make([]byte, 1))
		}
		c.Wait()
		require.ErrorIs(t, from.broken[0], os.ErrDeadlineExceeded)
		require.Greater(t, time.Since(began), 10*stall)
		require.Equal(t, 20, from.wrote)
		b.Close()
	})
}

func TestTooLong(t *testing.T) {
	pairs(t, func(t *testing.T, a, b net.Conn) {
		var to record
		c := NewConn(b, to.config(100))
		var bad [4]byte
		binary.LittleEndian.PutUint32(bad[:], 97)
		_, err := a.Write(slices.Concat(frame(100, 1), frame(5, 2), bad[:]))
		require.NoError(t, err)
		c.Wait()
		require.ErrorContains(t, to.broken[0], "a frame of 101 bytes, and 100 are allowed")
		require.Equal(t, [][]byte{frame(100, 1), frame(5, 2)}, to.frames, "those before it are good")
		under(a).Close()
	})
}

// The other side is gone in the middle of a frame: what was whole is handed over.
func TestTorn(t *testing.T) {
	pairs(t, func(t *testing.T, a, b net.Conn) {
		var to record
		c := NewConn(b, to.config(1<<20))
		_, err := a.Write(append(frame(10, 1), frame(1000, 2)[:500]...))
		require.NoError(t, err)
		under(a).Close()
		c.Wait()
		require.Equal(t, [][]byte{frame(10, 1)}, to.frames)
		require.True(t, errors.Is(to.broken[0], io.EOF) || errors.Is(to.broken[0], io.ErrUnexpectedEOF), "%v", to.broken[0])
	})
}

// Frames that were handed over never change, whatever comes behind them, and lie in
// memory of their own.
func TestFramesAreTheReceivers(t *testing.T) {
	pairs(t, func(t *testing.T, a, b net.Conn) {
		var from, to record
		ca, cb := NewConn(a, from.config(1<<20)), NewConn(b, to.config(1<<20))
		for i := range 2000 {
			ca.Write([][]byte{frame(1000, byte(i))})
		}
		to.until(func() bool { return len(to.frames) == 2000 })
		for i, f := range to.frames {
			require.True(t, bytes.Equal(frame(1000, byte(i)), f), "frame %d", i)
			require.Equal(t, len(f), cap(f), "appending to one does not write to the next")
		}
		ca.Close()
		cb.Close()
		ca.Wait()
		cb.Wait()
	})
}

// Close does not wait, also while a write does not come to an end.
func TestCloseWhileWriting(t *testing.T) {
	pairs(t, func(t *testing.T, a, b net.Conn) {
		var from record
		c := NewConn(a, from.config(1<<20))
		for range 64 {
			c.Write([][]byte{frame(1<<20, 1)}) // nobody reads
		}
		c.Close()
		require.Empty(t, c.waiting, "the memory is given back")
		c.Wait()
		require.ErrorIs(t, from.broken[0], net.ErrClosed)
		under(b).Close()
	})
}

// A frame that is only announced does not make the buffer long, and a long one not for
// ever.
func TestBufferIsBounded(t *testing.T) {
	var announced [4]byte
	binary.LittleEndian.PutUint32(announced[:], 1<<29)
	c := &chop{pieces: [][]byte{announced[:], make([]byte, 1000)}}
	var got record
	require.ErrorIs(t, (&Conn{conn: c, config: got.config(1 << 30)}).read(), io.EOF)
	require.Equal(t, readBuffer, c.room+4+1000)

	c = &chop{pieces: [][]byte{frame(10<<20, 1), frame(10, 2), frame(10, 3)}}
	require.ErrorIs(t, (&Conn{conn: c, config: got.config(1 << 30)}).read(), io.EOF)
	require.Len(t, got.frames, 3)
	require.Equal(t, readBuffer, c.room)
}

// chop gives a stream to a reader in pieces, as the network does.
type chop struct {
	script
	pieces [][]byte
	room   int // for which was asked the last time
}

func (c *chop) Read(b []byte) (int, error) {
	c.room = len(b)
	for len(c.pieces) > 0 && len(c.pieces[0]) == 0 {
		c.pieces = c.pieces[1:]
	}
	if len(c.pieces) == 0 {
		return 0, io.EOF
	}
	n := copy(b, c.pieces[0])
	c.pieces[0] = c.pieces[0][n:]
	return n, nil
}

// However a stream is cut into pieces, the same frames come out.
func TestCutProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const most = 300 << 10
		var want [][]byte
		var stream []byte
		for i, size := range rapid.SliceOfN(rapid.OneOf(rapid.IntRange(4, 100), rapid.IntRange(4, most)), 0, 12).Draw(t, "sizes") {
			want = append(want, frame(size, byte(i)))
			stream = append(stream, want[i]...)
		}
		if rapid.Bool().Draw(t, "torn") {
			stream = append(stream, frame(100, 9)[:rapid.IntRange(0, 99).Draw(t, "rest")]...)
		}
		c := &chop{}
		for len(stream) > 0 {
			n := min(rapid.OneOf(rapid.IntRange(1, 10), rapid.IntRange(1, 200<<10)).Draw(t, "piece"), len(stream))
			c.pieces = append(c.pieces, stream[:n])
			stream = stream[n:]
		}
		var got record
		err := (&Conn{conn: c, config: got.config(most)}).read()
		if !errors.Is(err, io.EOF) {
			t.Fatalf("%v", err)
		}
		if len(got.frames) != len(want) {
			t.Fatalf("%d frames of %d", len(got.frames), len(want))
		}
		for i := range want {
			if !bytes.Equal(got.frames[i], want[i]) {
				t.Fatalf("frame %d is another", i)
			}
		}
	})
}

// Whatever the bytes are: no panic, no frame above the limit, and what comes out is
// what went in.
func FuzzCut(f *testing.F) {
	f.Add([]byte{}, 100)
	f.Add(slices.Concat(frame(4, 0), frame(10, 1), frame(100, 2)), 100)
	f.Add(append(frame(10, 1), 0xff, 0xff, 0xff, 0xff, 1), 1<<20)
	f.Add([]byte{1, 0, 0, 0x80, 5}, 1<<31)
	f.Fuzz(func(t *testing.T, b []byte, most int) {
		most = max(most, 0)
		var got record
		err := (&Conn{conn: &script{in: bytes.NewReader(b)}, config: got.config(most)}).read()
		all := slices.Concat(got.frames...)
		require.True(t, bytes.HasPrefix(b, all))
		for _, f := range got.frames {
			require.LessOrEqual(t, len(f), most)
			require.Equal(t, len(f), int(binary.LittleEndian.Uint32(f))+4)
		}
		rest := b[len(all):]
		if errors.Is(err, io.EOF) { // what is left is not a whole frame
			require.True(t, len(rest) < 4 || uint64(binary.LittleEndian.Uint32(rest)) > uint64(len(rest)-4))
		} else {
			require.ErrorContains(t, err, "are allowed")
			require.Greater(t, uint64(binary.LittleEndian.Uint32(rest))+4, uint64(most))
		}
	})
}

// BenchmarkConn sends frames one way over loopback, with at most 1 MB that is not told
// as written.
func BenchmarkConn(b *testing.B) {
	for _, sealed := range []bool{false, true} {
		for _, size := range []int{64, 8 << 10} {
			b.Run(fmt.Sprintf("tls=%v/frame=%d", sealed, size), func(b *testing.B) {
				x, y := connected(b, sealed)
				written, arrived := make(chan int, 1<<16), make(chan int, 1<<16)
				nothing := func([][]byte) {}
				from := NewConn(x, ConnConfig{Most: 1 << 20, Arrived: nothing, Wrote: func(n int) { written <- n }, Broken: func(error) {}})
				to := NewConn(y, ConnConfig{Most: 1 << 20, Arrived: func(f [][]byte) { arrived <- len(f) }, Wrote: func(int) {}, Broken: func(error) {}})
				f := frame(size, 1)
				group := make([][]byte, max(1, 16<<10/size)) // what a broker has after one turn
				for i := range group {
					group[i] = f
				}
				b.SetBytes(int64(size))
				b.ReportAllocs()
				b.ResetTimer()
				sent, got, ahead := 0, 0, 0
				for sent < b.N {
					n := min(len(group), b.N-sent)
					from.Write(group[:n])
					sent += n
					ahead += n * size
					for ahead > 1<<20 {
						ahead -= <-written
					}
					for more := true; more; {
						select {
						case n := <-arrived:
							got += n
						default:
							more = false
						}
					}
				}
				for got < b.N {
					got += <-arrived
				}
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "frames/s")
				b.StopTimer()
				from.Close()
				to.Close()
				from.Wait()
				to.Wait()
			})
		}
	}
}
