package gossip

import (
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/hashicorp/memberlist"

	"github.com/egretstream/egret/cluster"
)

// A meta is what a node says of itself, beside its id and address. It travels with every
// message that says that the node is there, so its names are short.
type meta struct {
	Boot    cluster.Boot `json:"b"`
	Cluster string       `json:"c,omitempty"` // "": it does not know yet
	Name    string       `json:"n,omitempty"`
	Keeps   bool         `json:"k,omitempty"`
	Weight  int          `json:"w,omitempty"`
	Leaving bool         `json:"l,omitempty"`
	Departs bool         `json:"d,omitempty"`
}

// encode fails if there is too much of it.
func (m meta) encode() ([]byte, error) {
	b, err := json.Marshal(m)
	if err == nil && len(b) > memberlist.MetaMaxSize {
		err = fmt.Errorf("what gossip has to say of this node has %d bytes, and %d are allowed: give it a shorter name", len(b), memberlist.MetaMaxSize)
	}
	return b, err
}

func decodeMeta(b []byte) (m meta, err error) {
	if err := json.Unmarshal(b, &m); err != nil {
		return m, fmt.Errorf("what it says of itself cannot be read: %w", err)
	}
	if _, err := hex.DecodeString(m.Cluster); err != nil || m.Boot == 0 {
		return m, fmt.Errorf("what it says of itself makes no sense: %q", b)
	}
	return m, nil
}
