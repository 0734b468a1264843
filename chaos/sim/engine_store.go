package sim

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/egretstream/egret/chaos"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/task"
	"github.com/egretstream/egret/tuple"
)

// A simStore is a store whose disk is slow and fails at times. It outlives every
// task. It has some of the letters that it gets replayed.
type simStore struct {
	rec     *record
	chance  *rand.Rand
	most    time.Duration // for one call
	failed  int           // calls
	saves   int           // that failed, in a row: at most 2, since the end of a run tries 3 times
	alone   bool          // sources hear of no position
	replays int           // letters that are still to be replayed

	positions map[[2]string]int
	lives     map[[2]string]tuple.Incarnation
	letters   map[string]bool // by ID
	waiting   []*task.DeadLetter
	given     map[string]*task.DeadLetter
	told      map[string]bool // that they were replayed
	buried    map[string]bool // again
	until     time.Duration   // the end of the last call
	over      time.Duration   // the end of the run
}

var errDisk = errors.New("simulated: disk")

// The store of a scene has a generator of its own, so that the rest of a scene does not
// depend on it.
func (s *scene) storeChance() *rand.Rand { return rand.New(rand.NewPCG(s.seed, 0x73746f7265)) }

// stores reports whether a scene has a store.
func (s *scene) stores() bool { return !chance(s.storeChance(), 50) }

// drawStore draws the store of a scene, or none.
func drawStore(rec *record) *simStore {
	r := rec.scene.storeChance()
	if chance(r, 50) {
		return nil
	}
	s := &simStore{
		rec: rec, chance: r, alone: chance(r, 50), most: one(r, time.Microsecond, time.Millisecond, 100*time.Millisecond),
		positions: map[[2]string]int{}, lives: map[[2]string]tuple.Incarnation{}, letters: map[string]bool{}, given: map[string]*task.DeadLetter{}, told: map[string]bool{}, buried: map[string]bool{},
	}
	// A poison that is replayed by hand kills tasks more often than a run puts up with.
	if n := one(r, 0, 1, 10); rec.scene.mood() != "forgetful" && !rec.scene.plans(chaos.Poison, nil) {
		s.replays = n
	}
	return s
}

// A forgetfulSource leaves its positions to the store.
type forgetfulSource struct{ spout.Source }

// source returns the source of a part.
func (rec *record) source(i int) spout.Source {
	s := &simSource{rec, i}
	if rec.store != nil && rec.store.alone {
		return forgetfulSource{s}
	}
	return s
}

// work takes a while. It fails before or, with late, after what was to be done.
func (s *simStore) work() (err error, late bool) {
	later, fails := s.rec.adv.saves()
	s.rec.w.Spend(time.Duration(s.chance.Int64N(int64(s.most))+1) + later)
	s.until = max(s.until, s.rec.w.Now())
	if fails {
		s.failed++
		s.rec.adv.did(chaos.Lose, chaos.Save)
		return errDisk, chance(s.chance, 50)
	}
	return nil, true
}

func (s *simStore) Save(ps []task.Position, replayed []string) (int, error) {
	err, late := s.work()
	if s.saves++; err == nil || s.saves > 2 {
		err, late, s.saves = nil, true, 0
	}
	if !late {
		return 0, err
	}
	for _, p := range ps {
		at := [2]string{p.Component, p.Split}
		part := slices.IndexFunc(s.rec.scene.parts, func(x part) bool { return x.name == p.Component })
		b, n := (&simSource{s.rec, part}).find(spout.Split(p.Split), p.Position)
		s.rec.passed(b, n, "saved at")
		s.rec.check(chaos.Stored)
		if p.Life < s.lives[at] || n < s.positions[at] {
			s.rec.violate(chaos.Positions, "%v is saved at %d by life %v, and was at %d by life %v", b, n, p.Life, s.positions[at], s.lives[at])
		}
		s.lives[at], s.positions[at] = p.Life, n
	}
	for _, id := range replayed {
		if s.given[id] == nil {
			s.rec.violate(chaos.DeadLetters, "letter %s was replayed, and nobody had asked for it", id)
		}
		s.told[id] = true
	}
	return 0, err
}

func (s *simStore) Bury(all []*task.DeadLetter) (stored int, err error) {
	err, late := s.work()
	if err == nil {
		stored = len(all)
	} else if !late {
		stored = s.chance.IntN(len(all) + 1)
		all = all[:stored]
	}
	for _, l := range all {
		s.rec.check(chaos.Stored)
		if l.ID == "" && l.Deaths > 1 {
			s.rec.violate(chaos.DeadLetters, "a letter that has died %d times is stored as another one", l.Deaths)
		}
		if l.ID == "" {
			l.ID = strconv.Itoa(len(s.letters) + 1)
			s.letters[l.ID] = true
		}
		s.buried[l.ID] = true
		if isLetter(l.Stream) {
			s.rec.letterDead(l, s.rec.w.outside)
		} else {
			m := s.rec.roots[l.Values[0].Uint64()]
			m.dead = append(m.dead, moment{s.rec.w.Now(), s.rec.w.outside})
		}
		if s.replays > 0 && err == nil {
			s.replays--
			s.waiting = append(s.waiting, l)
		}
	}
	return stored, err
}

func (s *simStore) Replays() (all []*task.DeadLetter, more bool, err error) {
	err, late := s.work()
	if !late {
		return nil, false, err
	}
	all, s.waiting = s.waiting, nil
	if len(all) > 1 {
		n := 1 + s.chance.IntN(len(all))
		all, s.waiting, more = all[:n:n], all[n:], n < len(all)
	}
	for _, l := range all {
		s.given[l.ID] = l
		delete(s.buried, l.ID)
		if !isLetter(l.Stream) {
			s.rec.roots[l.Values[0].Uint64()].replays++
		}
	}
	return all, more, err
}

func (s *simStore) position(b *splitBook) int {
	return s.positions[[2]string{s.rec.scene.parts[b.part].name, fmt.Sprint(b.index)}]
}

// atEnd checks that nothing is left to be saved when the run has come to its end,
// and that no call was under way.
func (s *simStore) atEnd() {
	if s.rec.check(chaos.Stored); s.until > s.over {
		s.rec.violate(chaos.Stored, "the run has ended at %v, and a call of the store was under way until %v", s.over, s.until)
	}
	for _, id := range slices.Sorted(maps.Keys(s.given)) {
		s.rec.twin(chaos.Stored)
		l := s.given[id]
		if isLetter(l.Stream) || s.told[id] || s.buried[id] || s.rec.drained {
			continue
		}
		if m := s.rec.roots[l.Values[0].Uint64()]; m.replayed > 0 {
			s.rec.violate(chaos.DeadLetters, "%s was dead, was replayed and is done, and the store does not know", m.name)
		}
	}
	for i := range s.rec.splits {
		for _, b := range s.rec.splits[i] {
			at := s.position(b)
			if s.rec.twin(chaos.Stored); at != b.messages && !s.rec.drained {
				s.rec.violate(chaos.Positions, "the run has ended, %v has %d messages and is saved at %d", b, b.messages, at)
			}
		}
	}
}
