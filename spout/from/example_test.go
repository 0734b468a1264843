package from_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing/fstest"

	"github.com/egretstream/egret"
	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/bolt/to"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/spout/from"
	"github.com/egretstream/egret/topology"
)

// Several tasks share the splits of several files.
func ExampleLines() {
	dir, err := os.MkdirTemp("", "lines")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	cow, moon := filepath.Join(dir, "cow.txt"), filepath.Join(dir, "moon.txt")
	os.WriteFile(cow, []byte("the cow\njumped\n"), 0o600)
	os.WriteFile(moon, []byte("over\nthe moon"), 0o600)

	t := topology.New("rhyme", func(b *topology.Builder) {
		lines := b.Spout("lines", from.Lines(cow, moon)).Emits("line").Parallel(2)
		sums := b.Bolt("count", bolt.Count("line"), lines.By("line")).Emits("line", "count")
		b.Bolt("print", to.Stdout(), sums.Global())
	})
	if _, err := egret.Run(context.Background(), t, egret.Config{}); err != nil {
		fmt.Println(err)
	}
	// Output:
	// jumped 1
	// over 1
	// the cow 1
	// the moon 1
}

// A rate makes of any source one that behaves like the live one.
func ExamplePaced() {
	ticks := from.Paced(spout.Slice("tick", "tock", "tick"), 1000) // a second
	t := topology.New("clock", func(b *topology.Builder) {
		b.Bolt("print", to.Stdout(), b.Spout("clock", ticks).Emits("tick").Global())
	})
	if _, err := egret.Run(context.Background(), t, egret.Config{}); err != nil {
		fmt.Println(err)
	}
	// Output:
	// tick
	// tock
	// tick
}

// The fields of a stream choose the columns, and records that are wrong go to a
// stream of their own.
func ExampleCSVFS() {
	files := fstest.MapFS{"prices.csv": {Data: []byte("what,weight,cents\n\"tea, green\",0.1,350\nsalt,1.0,dear\n")}}
	t := topology.New("prices", func(b *topology.Builder) {
		source := from.CSVFS(files, "prices.csv").Int("cents").BadTo("bad")
		read := b.Spout("read", source).Emits("cents", "what").EmitsTo("bad", "error", "record")
		b.Bolt("print", to.Stdout(), read.Global(), read.Stream("bad").Global())
	})
	if _, err := egret.Run(context.Background(), t, egret.Config{}); err != nil {
		fmt.Println(err)
	}
	// Output:
	// 350 tea, green
	// line 3 of prices.csv, at byte 39: column "cents" is "dear", not a whole number salt,1.0,dear
}

func ExampleJSONLinesFS() {
	files := fstest.MapFS{"quakes.ndjson": {Data: []byte(`{"id": "ak18", "properties": {"mag": 2, "place": "Skagway, Alaska"}}` + "\n" +
		`{"id": "us20", "properties": {"mag": 4.7}}`)}}
	t := topology.New("quakes", func(b *topology.Builder) {
		source := from.JSONLinesFS(files, "quakes.ndjson").Float("properties.mag")
		read := b.Spout("read", source).Emits("id", "properties.mag", "properties.place")
		b.Bolt("print", to.Stdout(), read.Global())
	})
	if _, err := egret.Run(context.Background(), t, egret.Config{}); err != nil {
		fmt.Println(err)
	}
	// Output:
	// ak18 2 Skagway, Alaska
	// us20 4.7 nil
}
