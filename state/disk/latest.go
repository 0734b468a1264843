package disk

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// Latest returns up to n letters of a component, or of all if it is empty: those that were
// given up last, and those first. It does not read older ones than it needs, so that it may
// be called again and again. Of files that cannot be read it returns an error, and the
// letters of the others.
func (l *Letters) Latest(ctx context.Context, component string, n int) ([]Entry, error) {
	found := map[string]Entry{}
	err := l.yard.locked(func() error {
		var errs []error
		for _, dir := range []string{replayDir, deadDir} {
			paths, err := l.yard.files(dir)
			errs = append(errs, err)
			slices.SortFunc(paths, func(a, b string) int { return compareFiles(b, a) })
			for k := 0; k < n && len(paths) > 0; paths = paths[1:] {
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
				all, err := readLetters(paths[0])
				errs = append(errs, err)
				for _, r := range all {
					if component != "" && r.letter.Component != component {
						continue
					}
					k++
					if old, is := found[r.letter.ID]; !is || r.letter.Deaths > old.Deaths {
						found[r.letter.ID] = Entry{r.letter, dir == replayDir, r.err}
					}
				}
			}
		}
		return errors.Join(errs...)
	})
	all := slices.Collect(maps.Values(found))
	slices.SortFunc(all, func(a, b Entry) int { return cmp.Or(b.Time.Compare(a.Time), compareIDs(b.ID, a.ID)) })
	return all[:min(n, len(all))], err
}

// compareFiles tells which of two files of letters was made first: they are named by run
// and number, and behind a dot by who moved them there.
func compareFiles(a, b string) int {
	x, more, _ := strings.Cut(strings.TrimSuffix(filepath.Base(a), suffix), ".")
	y, other, _ := strings.Cut(strings.TrimSuffix(filepath.Base(b), suffix), ".")
	return cmp.Or(compareIDs(x, y), strings.Compare(more, other))
}
