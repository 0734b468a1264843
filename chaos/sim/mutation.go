//go:build mutation

package sim

import (
	"fmt"
	"os"

	"github.com/egretstream/egret/mutation"
)

// A program with the tag mutation has the bug that EGRET_MUTATION names.
func init() {
	name := os.Getenv("EGRET_MUTATION")
	if name == "" {
		return
	}
	for _, m := range mutation.All() {
		if m.String() == name {
			mutation.Set(m, func() {})
			return
		}
	}
	fmt.Fprintf(os.Stderr, "EGRET_MUTATION is %q, and the mutations are %v\n", name, mutation.All())
	os.Exit(2)
}
