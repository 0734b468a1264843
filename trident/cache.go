package trident

// A cache keeps the keys that were used last, at most as many as its size. It has two
// halves: what is used is in the young one, and when that is full it becomes the old
// one, whose keys are forgotten.
type cache[K comparable, R any] struct {
	half       int
	young, old map[K]*cached[K, R]
}

// A cached is what there is for a key. The key owns its memory.
type cached[K comparable, R any] struct {
	key K
	r   *R
}

func newCache[K comparable, R any](size int) cache[K, R] {
	return cache[K, R]{half: max(size/2, 1), young: map[K]*cached[K, R]{}, old: map[K]*cached[K, R]{}}
}

// get returns what there is for a key, or nil.
func (c *cache[K, R]) get(k K) *R {
	if e := c.young[k]; e != nil {
		return e.r
	}
	e := c.old[k]
	if e == nil {
		return nil
	}
	delete(c.old, k)
	c.keep(e)
	return e.r
}

// put adds a key that is not there.
func (c *cache[K, R]) put(k K, r *R) { c.keep(&cached[K, R]{k, r}) }

func (c *cache[K, R]) keep(e *cached[K, R]) {
	if len(c.young) >= c.half {
		c.young, c.old = c.old, c.young
		clear(c.young)
	}
	c.young[e.key] = e
}

func (c *cache[K, R]) clear() {
	clear(c.young)
	clear(c.old)
}
