package fleet

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"time"

	"github.com/egretstream/egret/tuple"
)

// A countStore is where the counts of an exactly-once topology are: outside of all nodes,
// as a database would be, and reached by HTTP.
type countStore struct {
	*httptest.Server

	mu     sync.Mutex
	fences [tuple.KeyGroups]tuple.Fence
	last   [tuple.KeyGroups]tuple.BatchID
	rows   map[string]*countRow
	broken []string // what must never happen
	fenced int
	joins  int
	undone int
	writes int
	most   tuple.Attempt
	slow   atomic.Int64 // nanoseconds, each way
}

type countRow struct {
	group     uint16
	tx        tuple.TxID
	now, prev int
}

type (
	countJoin struct {
		Fence     tuple.Fence
		Groups    []uint16
		Committed tuple.TxID
		Last      []tuple.BatchID
	}
	countWrite struct {
		Fence tuple.Fence
		Tx    tuple.TxID
		Words map[string]int
	}
)

func newCountStore() *countStore {
	s := &countStore{rows: map[string]*countRow{}}
	mux := http.NewServeMux()
	mux.HandleFunc("/join", func(w http.ResponseWriter, r *http.Request) {
		var j countJoin
		answerStore(w, json.NewDecoder(r.Body).Decode(&j), func() error { return s.join(&j) })
	})
	mux.HandleFunc("/write", func(w http.ResponseWriter, r *http.Request) {
		var c countWrite
		time.Sleep(time.Duration(s.slow.Load()))
		answerStore(w, json.NewDecoder(r.Body).Decode(&c), func() error { return s.write(&c) })
		time.Sleep(time.Duration(s.slow.Load()))
	})
	s.Server = httptest.NewServer(mux)
	return s
}

func answerStore(w http.ResponseWriter, err error, f func() error) {
	if err == nil {
		err = f()
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusConflict)
	}
}

var errCountFenced = errors.New("fenced")

func (s *countStore) breaks(format string, args ...any) error {
	text := fmt.Sprintf(format, args...)
	s.broken = append(s.broken, text)
	return errors.New(text)
}

func (s *countStore) join(j *countJoin) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range j.Groups {
		if j.Fence.Less(s.fences[g]) {
			s.fenced++
			return errCountFenced
		}
		var was tuple.BatchID
		if j.Last != nil {
			was = j.Last[g]
		}
		if s.last[g] != was && s.last[g].Tx != j.Committed+1 {
			return s.breaks("attempt %v: batch %v has written last to group %d, and the record says %v, with %d committed", j.Fence.Attempt, s.last[g], g, was, j.Committed)
		}
	}
	if s.most.Less(j.Fence.Attempt) {
		s.most = j.Fence.Attempt
	}
	s.joins++
	mine := map[uint16]bool{}
	for _, g := range j.Groups {
		mine[g] = true
		s.fences[g] = j.Fence
		if s.last[g].Tx > j.Committed {
			s.last[g] = tuple.BatchID{}
			if j.Last != nil {
				s.last[g] = j.Last[g]
			}
		}
	}
	for _, r := range s.rows {
		if mine[r.group] && r.tx > j.Committed {
			s.undone++
			r.now, r.tx = r.prev, j.Committed
		}
	}
	return nil
}

func (s *countStore) write(w *countWrite) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for word := range w.Words {
		g := groupOf(word)
		if s.fences[g] != w.Fence {
			s.fenced++
			return errCountFenced
		}
		if s.last[g].Tx >= w.Tx {
			return s.breaks("batch %d of attempt %v writes to group %d, and batch %v was there", w.Tx, w.Fence.Attempt, g, s.last[g])
		}
	}
	s.writes++
	for word, n := range w.Words {
		g := groupOf(word)
		r := s.rows[word]
		if r == nil {
			r = &countRow{group: g}
			s.rows[word] = r
		}
		r.tx, r.prev, r.now = w.Tx, r.now, r.now+n
	}
	for word := range w.Words {
		s.last[groupOf(word)] = tuple.BatchID{Attempt: w.Fence.Attempt, Tx: w.Tx}
	}
	return nil
}

// counts are those of all keys, and what must never have happened.
func (s *countStore) counts() (all map[string]int, broken []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all = map[string]int{}
	for word, r := range s.rows {
		if r.now != 0 {
			all[word] = r.now
		}
	}
	return all, s.broken
}

func (s *countStore) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Sprintf("%d joins up to attempt %v, %d rows undone, %d writes, %d fenced", s.joins, s.most, s.undone, s.writes, s.fenced)
}

var wordSchema = &tuple.Schema{Fields: []string{"word"}}

func groupOf(word string) uint16 {
	var row tuple.Row
	row.Set(wordSchema, []any{word})
	return uint16(row.KeyGroup([]int{0}))
}

// A countClient asks a countStore.
type countClient struct {
	addr   string
	client http.Client
}

func (c *countClient) ask(ctx context.Context, path string, what any) error {
	body, err := json.Marshal(what)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.addr+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	answer, err := c.client.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = errors.New(string(text))
	}
	return err
}
