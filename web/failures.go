package web

import (
	"net/netip"
	"sync"
	"time"
)

const (
	mostFailures = 10 // wrong tokens from one place in
	failureSpell = time.Minute
	mostPlaces   = 1000 // that are remembered; beyond, all others are one
)

// failures counts wrong tokens by where they came from. The zero value is ready.
type failures struct {
	mu sync.Mutex
	by map[netip.Prefix]*spell
}

// A spell is a time in which failures are counted.
type spell struct {
	since time.Time
	n     int
}

// listen reports whether somebody is listened to.
func (f *failures) listen(from netip.Prefix, now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.spell(from, now)
	return s == nil || s.n < mostFailures
}

// add counts a failure, and reports whether it is the last that is listened to.
func (f *failures) add(from netip.Prefix, now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.spell(from, now)
	if s == nil {
		if len(f.by) >= mostPlaces {
			from = netip.Prefix{}
		}
		s = &spell{since: now}
		if f.by == nil {
			f.by = map[netip.Prefix]*spell{}
		}
		f.by[from] = s
	}
	s.n++
	return s.n == mostFailures
}

// spell returns the one that somebody is in, or nil, and forgets those that are over.
// Caller must hold mu.
func (f *failures) spell(from netip.Prefix, now time.Time) *spell {
	for p, s := range f.by {
		if now.Sub(s.since) >= failureSpell {
			delete(f.by, p)
		}
	}
	if s := f.by[from]; s != nil || len(f.by) < mostPlaces {
		return s
	}
	return f.by[netip.Prefix{}]
}

// origin is where a request comes from: an address, of IPv6 the network of one customer.
func origin(remote string) netip.Prefix {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return netip.Prefix{}
	}
	addr, bits := at.Addr().Unmap().WithZone(""), 32
	if addr.Is6() {
		bits = 64
	}
	p, _ := addr.Prefix(bits)
	return p
}
