package egret

import (
	"context"

	"github.com/egretstream/egret/view"
	"github.com/egretstream/egret/web"
)

// For tests from outside.

// Tap is r.tap.
func Tap(ctx context.Context, r *Running, want view.Tap, yield func(*view.Tapped) bool) error {
	return r.tap(ctx, want, yield)
}

// Taps is how many there are.
func Taps(r *Running) int {
	r.taps.mu.Lock()
	defer r.taps.mu.Unlock()
	return len(r.taps.now)
}

// Oldest is r.oldest.
func Oldest(ctx context.Context, r *Running, n int) ([]view.Tree, error) { return r.oldest(ctx, n) }

// SourceOf is what is looked at of a run.
func SourceOf(r *Running) web.Source { return newRunSource(r) }
