package gossip

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
)

// A seal encrypts datagrams. memberlist could, too, but with one key to all: a node that
// has been given a new secret and the previous one could not be heard by those that have
// only one of the two. Here whoever speaks with a key is answered with it. Connections
// are encrypted by whoever makes them.
type seal struct {
	keys []cipher.AEAD // the present one, and previous ones

	mu    sync.Mutex
	heard map[string]int // address: the key it used last
}

// manyHeard bounds heard. Beyond it everything is forgotten, and learnt again.
const manyHeard = 10000

var purpose = []byte("egret gossip 1")

var errSealed = errors.New("it is not encrypted with a key that this node has")

// newSeal returns nil if there is no key.
func newSeal(key []byte, previous [][]byte) (*seal, error) {
	if len(key) == 0 {
		if len(previous) > 0 {
			return nil, errors.New("there is a previous key for gossip, but none for now")
		}
		return nil, nil
	}
	s := &seal{heard: map[string]int{}}
	for _, k := range append([][]byte{key}, previous...) {
		block, err := aes.NewCipher(k)
		if err != nil {
			return nil, fmt.Errorf("the key for gossip has %d bytes: 16, 24 or 32 are wanted", len(k))
		}
		aead, err := cipher.NewGCM(block)
		if err != nil {
			return nil, err
		}
		s.keys = append(s.keys, aead)
	}
	return s, nil
}

// close returns a datagram for an address: a random nonce, then what is encrypted.
func (s *seal) close(b []byte, to string) []byte {
	s.mu.Lock()
	i, ok := s.heard[to]
	s.mu.Unlock()
	if !ok {
		i = len(s.keys) - 1 // the oldest: a node that was just given a new one is among those that have the old one
	}
	k := s.keys[i]
	out := make([]byte, k.NonceSize(), k.NonceSize()+len(b)+k.Overhead())
	rand.Read(out)
	return k.Seal(out, out, b, purpose)
}

// open returns what was in a datagram from an address.
func (s *seal) open(b []byte, from string) ([]byte, error) {
	for i, k := range s.keys {
		if len(b) < k.NonceSize() {
			break
		}
		out, err := k.Open(nil, b[:k.NonceSize()], b[k.NonceSize():], purpose)
		if err != nil {
			continue
		}
		s.mu.Lock()
		if was, ok := s.heard[from]; !ok || was != i {
			if len(s.heard) >= manyHeard {
				clear(s.heard)
			}
			s.heard[from] = i
		}
		s.mu.Unlock()
		return out, nil
	}
	return nil, errSealed
}
