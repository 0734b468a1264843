package bench

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/egretstream/egret/tuple"
)

// The baseline of two nodes is a loop over the codec of parcels and a connection of
// loopback to another process: what brokers would reach at best that did nothing else.
//
//	AppendParcel --length, parcel--> read, DecodeParcel
//	             <--4 bytes: how many in all--

const (
	bareTCP    = "bare-tcp"
	bareParcel = 256 // tuples, as the engine has in a parcel
	bareWindow = 64  // parcels under way
	bareBuffer = 64 << 10
)

// bareParcels returns the parcels of all lines, with the fields of the null topology
// and each one tree.
func bareParcels() (all []*tuple.Parcel) {
	schema := bareSchema()
	for from := 0; from < lineCount; from += bareParcel {
		p := &tuple.Parcel{To: 1, Schema: schema}
		p.Begin([]tuple.Kind{tuple.KindString, tuple.KindInt64}, bareParcel)
		p.Slots = append(p.Slots, tuple.Slot{Tree: tuple.TreeID{Seq: uint64(from)}, Edge: tuple.EdgeID(0x9e3779b97f4a7c15), Count: bareParcel})
		var row tuple.Row
		for i, line := range lines()[from : from+bareParcel] {
			row.Set(schema, []any{line, int64(0)})
			p.Append(&row)
			p.Refs = append(p.Refs, tuple.Ref{Index: uint16(i)})
		}
		all = append(all, p)
	}
	return all
}

func bareSchema() *tuple.Schema { return &tuple.Schema{Fields: emitted.fields("line")} }

// measureBare is Measure for the loop.
func measureBare(ctx context.Context, c child, d time.Duration) (Result, error) {
	r, err := timed(ctx, d, newProbe(), func(ctx context.Context) Running {
		other, err := c.open(context.WithoutCancel(ctx), order{Baseline: bareTCP})
		if err != nil {
			return failed(err)
		}
		conn, err := net.Dial("tcp", other.addr)
		if err != nil {
			return failed(errors.Join(err, other.close()))
		}
		b := &bareLoop{other: other, conn: conn, room: make(chan struct{}, bareWindow), over: make(chan struct{})}
		var both sync.WaitGroup
		var sent, heard error
		both.Go(func() {
			sent = b.send(ctx)
			_ = conn.(*net.TCPConn).CloseWrite() // the other end reads all there is, and closes
		})
		both.Go(func() {
			heard = b.hear()
			close(b.over)
		})
		return Running{Stats: b.counts, Wait: func() (Counts, error) {
			both.Wait()
			return b.counts(), errors.Join(sent, heard, conn.Close(), other.close())
		}}
	})
	if err != nil {
		return Result{}, fmt.Errorf("baseline %s: %w", bareTCP, err)
	}
	r.Topology, r.Nodes, r.Spouts, r.Bolts = bareTCP, 2, 1, 1
	return r, nil
}

// A bareLoop is the end that sends.
type bareLoop struct {
	other   *session
	conn    net.Conn
	room    chan struct{} // one for each parcel under way
	over    chan struct{} // closed when nothing more will be heard
	arrived atomic.Int64  // parcels
	written atomic.Int64  // bytes
}

func (b *bareLoop) counts() Counts {
	n := b.arrived.Load() * bareParcel
	c := Counts{Emitted: n, Executed: n, other: b.other.snap().Used}
	c.other.Wire = uint64(b.written.Load())
	return c
}

func (b *bareLoop) send(ctx context.Context) error {
	w := bufio.NewWriterSize(b.conn, bareBuffer)
	parcels := bareParcels()
	var buffer []byte
	for ctx.Err() == nil {
		for _, p := range parcels {
			select {
			case b.room <- struct{}{}:
			default:
				if err := w.Flush(); err != nil {
					return err
				}
				select {
				case b.room <- struct{}{}:
				case <-b.over:
					return errors.New("the other process has hung up")
				}
			}
			var err error
			if buffer, err = tuple.AppendParcel(append(buffer[:0], 0, 0, 0, 0), p); err != nil {
				return err
			}
			binary.LittleEndian.PutUint32(buffer, uint32(len(buffer)-4))
			if _, err := w.Write(buffer); err != nil {
				return err
			}
			b.written.Add(int64(len(buffer)))
		}
	}
	return w.Flush()
}

// hear takes what the other end says.
func (b *bareLoop) hear() error {
	for {
		var said [4]byte
		if _, err := io.ReadFull(b.conn, said[:]); err != nil {
			if err == io.EOF {
				return nil
			}
			return err
		}
		for all := int64(binary.LittleEndian.Uint32(said[:])); b.arrived.Load() < all; b.arrived.Add(1) {
			<-b.room
		}
	}
}

// serveBare is the other end, in another process.
func serveBare(requests *json.Decoder, answers *json.Encoder) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer listener.Close()
	if err := answers.Encode(answer{Addr: listener.Addr().String()}); err != nil {
		return err
	}
	if err := listener.(*net.TCPListener).SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		return err
	}
	conn, err := listener.Accept()
	if err != nil {
		return err // who has ordered has not come
	}
	taken := make(chan error, 1)
	go func() { // ends with the connection; serveBare waits for it
		taken <- errors.Join(takeBare(conn), conn.Close())
	}()
	for {
		var r request
		if err := requests.Decode(&r); err != nil {
			return <-taken // the other end has closed its connection before
		}
		if err := answers.Encode(answer{Used: used()}); err != nil {
			return err
		}
	}
}

func takeBare(conn net.Conn) error {
	r := bufio.NewReaderSize(conn, bareBuffer)
	schema := bareSchema()
	var buffer []byte
	var p tuple.Parcel
	for n := uint32(1); ; n++ {
		var length [4]byte
		if _, err := io.ReadFull(r, length[:]); err != nil {
			if err == io.EOF {
				return nil
			}
			return err
		}
		size := int(binary.LittleEndian.Uint32(length[:]))
		if cap(buffer) < size {
			buffer = make([]byte, size)
		}
		buffer = buffer[:size]
		if _, err := io.ReadFull(r, buffer); err != nil {
			return err
		}
		if err := tuple.DecodeParcel(buffer, &p, schema); err != nil {
			return err
		}
		p.Reset()
		if n%(bareWindow/8) == 0 || r.Buffered() == 0 {
			binary.LittleEndian.PutUint32(length[:], n)
			if _, err := conn.Write(length[:]); err != nil {
				return err
			}
		}
	}
}
