// Package broker decides who may send how much, and sees to it that what goes to
// another process arrives. It is not for use outside Egret.
//
//	sender                                    receiver
//	Meter: sent 0, limit 64                   Window: executed 0
//	   | -- parcel of 40 -----------------------> |
//	   | -- parcel of 40 (Room was 24) ---------> | queue 80
//	   |    Room is -16: parcels are kept         | Executed(40)
//	   | <------------------------ limit 104 ---- | Raise: 40 + share
//	   | -- parcel of 40 (Room was 24) ---------> |
//
// For each pair of a sending and a receiving life of a task there is a limit on
// the running total of tuples: "you may send up to 104 in all". Such a limit may
// be lost, late or repeated and does no harm, for the next one says everything
// again; a sender that has had no room for a while asks, and is told again.
//
// Both sides know the first limit. A limit rises when tuples have been executed,
// whatever becomes of them, and never waits for an ack.
//
// Between two processes all of this travels in frames, see [Link]: over connections
// that may break, reliably or not at all. A [Share] divides the bytes that such a link
// may keep.
package broker

import "math"

// FirstLimit is the limit of a new pair before anything was said.
const FirstLimit = 64

// A Meter is the sender's side of one pair. The zero value is a new pair.
//
// Invariant: limit only grows; sent is what the receiver gets.
type Meter struct {
	sent  uint64
	limit uint64 // the highest heard of, 0 before the first
}

// Limit returns the highest limit heard of.
func (m *Meter) Limit() uint64 { return max(m.limit, FirstLimit) }

// Room returns how many tuples may be sent; none if it is 0 or less. A parcel of
// any size may be sent while there is room for one tuple, or a window smaller
// than a parcel would never let it pass: so one parcel may overshoot.
func (m *Meter) Room() int {
	limit := m.Limit()
	if m.sent > limit {
		return -int(min(m.sent-limit, math.MaxInt))
	}
	return int(min(limit-m.sent, math.MaxInt))
}

// Sent counts a parcel of n tuples that has been sent.
func (m *Meter) Sent(n int) { m.sent += uint64(n) }

// Unsent takes back n tuples of a parcel, which did not travel after all.
func (m *Meter) Unsent(n int) { m.sent -= uint64(n) }

// Raise takes in a limit, late or repeated ones too, and reports whether there
// is room now where there was none.
func (m *Meter) Raise(limit uint64) (woke bool) {
	if limit <= m.limit {
		return false
	}
	had := m.Room() > 0
	m.limit = limit
	return !had && m.Room() > 0
}
