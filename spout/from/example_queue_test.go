package from_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/egretstream/egret"
	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/spout/from"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// Each file is a message. What is done is removed, what is of no use is moved aside.
func ExampleSpool() {
	dir, err := os.MkdirTemp("", "spool")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	os.WriteFile(filepath.Join(dir, "1.txt"), []byte("Call me Ishmael."), 0o600)
	os.WriteFile(filepath.Join(dir, "2.txt"), []byte(""), 0o600)

	t := topology.New("letters", func(b *topology.Builder) {
		files := b.Queue("files", from.Spool(dir, from.SpoolOptions{UntilEmpty: true})).Emits("name", "content")
		b.Bolt("read", bolt.Each(func(in tuple.Tuple, _ *bolt.Collector) error {
			if in.String("content") == "" {
				return bolt.Reject(errors.New("the file is empty"))
			}
			fmt.Println(in.String("name"), in.String("content"))
			return nil
		}), files.Shuffle())
	})
	stats, err := egret.Run(context.Background(), t, egret.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(stats.Acked, "done,", stats.HandedBack, "handed back")
	why, _ := os.ReadFile(filepath.Join(dir, "failed", "2.txt.error"))
	fmt.Print(string(why))
	// Output:
	// 1.txt Call me Ishmael.
	// 1 done, 1 handed back
	// rejected: bolt read: the file is empty
}

// A program pushes what it has and waits until it is done.
func ExampleMemory() {
	jobs := from.NewMemory(100)
	t := topology.New("jobs", func(b *topology.Builder) {
		in := b.Queue("jobs", jobs.Queue).Emits("n")
		b.Bolt("square", bolt.Each(func(in tuple.Tuple, _ *bolt.Collector) error {
			fmt.Println(in.Int64("n") * in.Int64("n"))
			return nil
		}), in.Global())
	})
	ctx := context.Background()
	run, err := egret.Start(ctx, t, egret.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for n := range 3 {
		if _, err := jobs.Push(ctx, n); err != nil {
			fmt.Println(err)
		}
	}
	jobs.Close()
	if _, err := run.Wait(); err != nil {
		fmt.Println(err)
	}
	fmt.Println(jobs.Acked())
	// Output:
	// 0
	// 1
	// 4
	// [0 1 2]
}
