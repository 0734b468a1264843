package broker

import "github.com/egretstream/egret/tuple"

// A Sender is one life of a task that sends over a link.
type Sender struct {
	Run  uint32
	Task tuple.TaskID
	Life tuple.Incarnation
}

// A Grant says how many bytes of frames a sender may have queued in all. Like a limit on
// tuples it may be late or repeated.
type Grant struct {
	Sender
	Limit uint64
	// Empty is the memory of payloads that have arrived at the other end: it is the
	// sender's again.
	Empty [][]byte
}

const (
	// FirstGrant is the limit of a sender before anything was said: one frame, since a
	// sender that is below its limit may queue a frame of any size.
	FirstGrant = 1

	mostCredit = 256 << 10 // not used yet, for one sender
	mostEmpty  = 64        // payloads that wait to go back to it
)

// A Share divides a budget of bytes among the senders of a link. A frame counts from
// when it is queued until it is acked.
//
// A sender may hold as much as is free: who is alone gets half of the budget, and of k
// busy ones each gets its part of k+1. So there is always something left for one more,
// and who holds more than the others is not raised until they have as much. Credit that
// is not used yet is small, for it cannot be taken back. Who holds nothing may
// always queue one frame.
//
// Invariant: what the senders hold, credit included, is at most the budget and one
// frame for each; so the frames are, if the senders keep to their limits.
//
// Owner: the link.
type Share struct {
	budget   int
	reserved int // held by all accounts
	accounts map[Sender]*account
	wants    []*account // who has little credit left, in the order in which they are served
}

type account struct {
	Sender
	queued, freed uint64
	limit         uint64
	told          uint64 // Invariant: it never falls
	empty         [][]byte
	listed        bool // in wants
	gone          bool // it will queue nothing more
}

// held is what an account holds of the budget: frames and credit. A frame that is above
// the limit counts too.
func (a *account) held() int { return int(max(a.limit, a.queued) - a.freed) }

// NewShare returns a Share of a budget of bytes without senders.
func NewShare(budget int) *Share {
	return &Share{budget: budget, accounts: map[Sender]*account{}}
}

func (s *Share) account(id Sender) *account {
	a := s.accounts[id]
	if a == nil {
		a = &account{Sender: id, limit: FirstGrant, told: FirstGrant}
		s.accounts[id] = a
		s.reserved += a.held()
	}
	return a
}

// Queued counts a frame.
func (s *Share) Queued(id Sender, bytes int) {
	a := s.account(id)
	before := a.held()
	a.queued += uint64(bytes)
	a.gone = false
	s.reserved += a.held() - before
	s.want(a)
}

// Freed counts a frame that was acked or given up.
func (s *Share) Freed(id Sender, bytes int) {
	a := s.accounts[id]
	if a == nil {
		return
	}
	before := a.held()
	a.freed += uint64(bytes)
	s.reserved += a.held() - before
	s.drop(a)
}

// Emptied takes the memory of a frame of a sender, who gets it with the next Grant. If
// that does not come for long, it gets a part of it.
func (s *Share) Emptied(id Sender, memory []byte) {
	if a := s.accounts[id]; a != nil && len(a.empty) < mostEmpty {
		a.empty = append(a.empty, memory)
	}
}

// FreedAll counts all frames as given up.
func (s *Share) FreedAll() {
	for _, a := range s.accounts {
		s.Freed(a.Sender, int(a.queued-a.freed))
	}
}

// Forget says that a sender will queue nothing more.
func (s *Share) Forget(id Sender) {
	if a := s.accounts[id]; a != nil {
		a.gone = true
		s.drop(a)
	}
}

// drop takes back the credit of one that is gone, and forgets it when its last frame is.
func (s *Share) drop(a *account) {
	if !a.gone {
		return
	}
	before := a.held()
	a.limit = a.queued
	s.reserved += a.held() - before
	if a.queued == a.freed {
		delete(s.accounts, a.Sender)
	}
}

// credit is how much of it a sender may have. It gets smaller with many senders, or the
// idle ones would hold the budget.
func (s *Share) credit() int {
	return max(min(mostCredit, s.budget/(8*max(len(s.accounts), 1))), 2)
}

func (s *Share) want(a *account) {
	if !a.listed && int64(a.limit-a.queued) < int64(s.credit()/2) {
		a.listed = true
		s.wants = append(s.wants, a)
	}
}

// Raise appends to dst the limits that have risen enough to be told. Who waited longest
// is served first.
func (s *Share) Raise(dst []Grant) []Grant {
	credit := s.credit()
	k := 0
	for _, a := range s.wants {
		if a.gone {
			a.listed = false
			continue
		}
		if s.raise(a, credit) {
			dst = append(dst, Grant{a.Sender, a.limit, a.empty})
			a.told, a.empty = a.limit, nil
		}
		if int64(a.limit-a.queued) >= int64(credit/2) {
			a.listed = false
			continue
		}
		s.wants[k] = a
		k++
	}
	clear(s.wants[k:])
	s.wants = s.wants[:k]
	return dst
}

// raise gives a what it may have, and reports whether it is to be told: because it is
// out of credit, or because it is worth it.
func (s *Share) raise(a *account, credit int) (tell bool) {
	held := a.held()
	level := max(a.limit, a.queued) // what is held goes up to here
	// After this a holds no more than is free.
	by := min(int64(a.queued)+int64(credit)-int64(level), int64(s.budget-s.reserved-held)/2)
	switch {
	case by > 0:
		s.reserved += int(by)
		a.limit = level + uint64(by)
	case a.queued == a.freed && a.queued >= a.limit:
		a.limit = a.queued + FirstGrant
		s.reserved += FirstGrant
	}
	return a.limit > a.told && (a.queued >= a.told || a.limit-a.told >= uint64(credit)/2)
}
