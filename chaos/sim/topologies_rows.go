package sim

import (
	"bytes"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/egretstream/egret/tuple"
)

// texts are what the values of a scene's tuples look like. All of it is a function of
// the tuple's id, so whoever gets one knows what it must hold.
type texts struct {
	mixed bool   // keys are of two kinds
	odd   bool   // the second key is of all kinds, and often empty
	keys  uint64 // how many different ones
	hot   bool   // four of five tuples have the same
	size  int    // of the text of most tuples
	big   int    // one in so many has much more; 0: none
	bytes bool   // it is bytes and no string
}

// fields are those of every stream.
var fields = []string{"root", "id", "key", "by", "seq", "half", "data"}

// aBigText is what bigger texts than anybody expects are cut from.
var (
	aBigText  = strings.Repeat("0123456789abcdef", 300<<10/16)
	manyBytes = []byte(aBigText)
)

func (s *scene) drawTexts(r *rand.Rand) {
	s.texts = texts{
		keys: uint64(1 + r.IntN(40)), mixed: chance(r, 20), odd: chance(r, 10), hot: chance(r, 15),
		size: one(r, 0, 0, 0, 3, 40, 40, 2000), bytes: chance(r, 20),
	}
	if chance(r, 12) {
		s.texts.big = 20 + r.IntN(100)
	}
	s.set.QueuedBytes = one(r, 1, 5_000, 50_000, 64<<20, 64<<20, 64<<20)
}

// row returns the values of a tuple.
func (s *scene) row(root, id uint64, by int64, seq int64) []any {
	return []any{root, id, s.key(id), by, seq, s.half(id), s.data(id)}
}

func (s *scene) key(id uint64) any {
	n := id % s.texts.keys
	if s.texts.hot && mix(id, 'h', 'o')%5 > 0 {
		n = 0
	}
	if s.texts.mixed && id&1 != 0 {
		if n == 0 {
			return ""
		}
		return strconv.FormatUint(n, 10)
	}
	return n
}

// half is the second key of a grouping by several fields.
func (s *scene) half(id uint64) any {
	n := mix(id, 'h', 2)
	if !s.texts.odd {
		return int64(n%3) - 1
	}
	switch n % 9 {
	case 0:
		return nil
	case 1:
		return ""
	case 2:
		return []byte{}
	case 3:
		return false
	case 4:
		return 0.0
	case 5:
		return -1.5
	case 6:
		return time.Unix(int64(n%7), 0).UTC()
	case 7:
		return time.Duration(0)
	}
	return "half"
}

// length is how much text a tuple has besides its keys.
func (s *scene) length(id uint64) int {
	if s.texts.big > 0 && mix(id, 'b', 'i')%uint64(s.texts.big) == 0 {
		return len(aBigText) / (1 + int(id%16))
	}
	return s.texts.size
}

func (s *scene) data(id uint64) any {
	n := s.length(id)
	if s.texts.bytes {
		return manyBytes[:n]
	}
	return aBigText[:n]
}

// intact reports whether a tuple has the values that belong to its id.
func (s *scene) intact(in tuple.Tuple) bool {
	id := in.Uint64("id")
	return same(in.Value("key"), s.key(id)) && same(in.Value("half"), s.half(id)) && same(in.Value("data"), s.data(id))
}

func same(v tuple.Value, want any) bool {
	if b, is := want.([]byte); is {
		return v.Kind() == tuple.KindBytes && bytes.Equal(v.Bytes(), b)
	}
	return v.Any() == want
}

// by returns the fields that an edge is grouped by.
func (e edge) by() []string {
	if e.several {
		return []string{"key", "half"}
	}
	return []string{"key"}
}
