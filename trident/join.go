package trident

// Join returns f of each two elements of a batch, one of left and one of right, that
// have the same key. Elements of other batches do not meet: what is to wait longer goes
// into a state.
func Join[K comparable, L, R, U any](left *Grouped[K, L], right *Grouped[K, R], f func(key K, l L, r R) U) *Stream[U] {
	given(left, ErrStream, "the left of Join")
	left.s.b.wants(f, "the function of Join")
	return join(left, right, "Join", func(k K, s *sides[L, R], emit func(U)) {
		for _, l := range s.left {
			for _, r := range s.right {
				emit(f(k, l, r))
			}
		}
	})
}

// LeftJoin is [Join] with f also called for elements of left that have no partner: r is
// then the zero R, and found false.
func LeftJoin[K comparable, L, R, U any](left *Grouped[K, L], right *Grouped[K, R], f func(key K, l L, r R, found bool) U) *Stream[U] {
	given(left, ErrStream, "the left of LeftJoin")
	left.s.b.wants(f, "the function of LeftJoin")
	return join(left, right, "LeftJoin", func(k K, s *sides[L, R], emit func(U)) {
		for _, l := range s.left {
			for _, r := range s.right {
				emit(f(k, l, r, true))
			}
			if len(s.right) == 0 {
				var none R
				emit(f(k, l, none, false))
			}
		}
	})
}

// sides are the elements of one key.
type sides[L, R any] struct {
	left  []L
	right []R
}

func join[K comparable, L, R, U any](left *Grouped[K, L], right *Grouped[K, R], what string, each func(K, *sides[L, R], func(U))) *Stream[U] {
	ls, rs := keyed(left, what), keyed(right, what)
	if !ls.b.owns(rs.b, what) {
		return Map(ls, func(Pair[K, L]) (none U) { return none })
	}
	n := &node{kind: "join", inputs: []input{{from: ls.n}, {from: rs.n}}}
	n.make = func(t *body, n *node) []any {
		next := outOf[U](t, n)
		m := remember(t, &memory[groups[K, sides[L, R]]]{
			fresh: newGroups[K, sides[L, R]],
			clear: (*groups[K, sides[L, R]]).clear,
			done: func(g *groups[K, sides[L, R]]) {
				for i := range g.all {
					each(g.all[i].key, &g.all[i].acc, next)
				}
			},
		})
		return []any{
			func(p Pair[K, L]) { s, _ := m.now.at(p.Key); s.left = append(s.left, p.Value) },
			func(p Pair[K, R]) { s, _ := m.now.at(p.Key); s.right = append(s.right, p.Value) },
		}
	}
	return added[U](ls.b, n)
}
