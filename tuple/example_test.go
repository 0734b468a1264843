package tuple_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/tuple"
)

// Quote is a Go value that travels in tuples as JSON.
type Quote struct {
	Symbol string
	Cents  int64
}

func init() {
	tuple.RegisterCodec("example.quote",
		func(dst []byte, q Quote) ([]byte, error) {
			b, err := json.Marshal(q)
			return append(dst, b...), err
		},
		func(b []byte) (q Quote, err error) {
			err = json.Unmarshal(b, &q)
			return q, err
		})
}

// Values of a type with a codec are emitted as tuple.Any and read with Value.
func ExampleRegisterCodec() {
	emit := func(out *bolt.Collector) {
		out.Emit(tuple.Any(Quote{"WHAL", 1851}))
	}
	execute := func(in tuple.Tuple) {
		q := in.Value("quote").Any().(Quote)
		fmt.Println(q.Symbol, q.Cents)
	}
	run(emit, execute, "quote")
	// Output: WHAL 1851
}

func ExampleAny() {
	v := tuple.Any(Quote{"WHAL", 1851})
	fmt.Println(v.Kind(), v.Any().(Quote).Cents)
	// Output: any 1851
}

// A field is read by its name, as what it is, or as a Value if it may be of
// several kinds.
func ExampleTuple() {
	emit := func(out *bolt.Collector) { out.Emit("whale", 1685, nil) }
	execute := func(in tuple.Tuple) {
		fmt.Println(in.String("word"), in.Int64("count"), in.Value("note").IsNil())
		for i := range in.Len() {
			fmt.Printf("%s is %v\n", in.Fields()[i], in.At(i).Kind())
		}
	}
	run(emit, execute, "word", "count", "note")
	// Output:
	// whale 1685 true
	// word is string
	// count is int64
	// note is nil
}

// run emits tuples, sends them through the wire form as to another node, and
// executes each.
func run(emit func(*bolt.Collector), execute func(tuple.Tuple), fields ...string) {
	s := &tuple.Schema{Component: "example", Stream: "default", Fields: fields}
	emit(bolt.NewCollector(context.Background(), []*tuple.Schema{s}, link{s, execute}))
}

type link struct {
	schema  *tuple.Schema
	execute func(tuple.Tuple)
}

func (l link) Put(_ int, r *tuple.Row) {
	sent, received := tuple.Parcel{Schema: l.schema}, tuple.Parcel{}
	sent.Begin(r.Kinds, 1)
	sent.Append(r)
	frame, err := tuple.AppendParcel(nil, &sent)
	if err == nil {
		err = tuple.DecodeParcel(frame, &received, l.schema)
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	l.execute(received.Tuple(0))
}
