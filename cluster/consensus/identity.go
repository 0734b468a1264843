package consensus

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/egretstream/egret/cluster"
	"github.com/egretstream/egret/state/file"
)

const (
	identityFile   = "node.json"
	identityFormat = 1
)

// An Identity says who this process is: its node, the number of its process, and the
// cluster that it belongs to. It holds the data directory of the node, so that no other
// process uses it. Its methods may be called from any goroutine.
type Identity struct {
	dir  string // "": in memory
	lock *os.File

	mu sync.Mutex
	is identity
}

// An identity is what lies in the file.
type identity struct {
	Format  int            `json:"format"`
	Node    cluster.NodeID `json:"node"`
	Boot    cluster.Boot   `json:"boot"`
	Cluster string         `json:"cluster,omitempty"`
	Founder bool           `json:"founder,omitempty"` // its log began here, with this node alone
	Log     bool           `json:"log,omitempty"`     // it has a log, which must not be lost: it may have voted
}

// Identify opens the data directory of a node, which it makes if there is none, and
// counts its process: the boot is greater by one each time, durably. Without a directory
// ("") the node is a new one, which will be forgotten. The error is ErrInUse if another
// process has the directory, and ErrCorrupt or ErrNewer if what lies there cannot be
// read; nothing is changed then.
func Identify(dir string) (*Identity, error) {
	if dir == "" {
		return &Identity{is: identity{Format: identityFormat, Node: newNode(), Boot: 1}}, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err // names the directory
	}
	lock, err := lockDir(dir)
	if err != nil {
		return nil, err
	}
	i := &Identity{dir: dir, lock: lock}
	if err := i.boot(); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return i, nil
}

// IsNode reports whether a directory is that of a node.
func IsNode(dir string) (bool, error) {
	_, err := os.Stat(filepath.Join(dir, identityFile))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

func newNode() cluster.NodeID {
	for {
		var b [8]byte
		rand.Read(b[:]) // never fails
		if n := cluster.NodeID(binary.LittleEndian.Uint64(b[:])); n != 0 {
			return n
		}
	}
}

// boot reads the file, or begins it, and counts.
func (i *Identity) boot() error {
	name := filepath.Join(i.dir, identityFile)
	b, err := os.ReadFile(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if _, err := os.Stat(filepath.Join(i.dir, storeFile)); err == nil {
			return fmt.Errorf("%w: %s has a log but no %s, so nobody knows which node it was: put the file back, or start"+
				" with another directory, as a new node", ErrCorrupt, i.dir, identityFile)
		}
		i.is = identity{Format: identityFormat, Node: newNode()}
	case err != nil:
		return err // names the file
	default:
		if i.is, err = decodeIdentity(b); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return i.change(func(is *identity) { is.Boot++ })
}

func decodeIdentity(b []byte) (is identity, err error) {
	d := json.NewDecoder(bytes.NewReader(b))
	if err := d.Decode(&is); err != nil {
		return is, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	switch _, err := hex.DecodeString(is.Cluster); {
	case is.Format > identityFormat:
		return is, ErrNewer
	case is.Format != identityFormat || is.Node == 0 || is.Boot == 0 || err != nil || is.Founder && is.Cluster == "":
		return is, fmt.Errorf("%w: it does not say which node this is", ErrCorrupt)
	case is.Boot+1 == 0:
		return is, errors.New("this node has been started too often")
	}
	return is, nil
}

// change writes what the identity will be, and then it is that.
func (i *Identity) change(f func(*identity)) error {
	next := i.is
	f(&next)
	if i.dir != "" {
		b, err := json.MarshalIndent(next, "", "  ")
		if err != nil {
			return err
		}
		if err := file.Write(filepath.Join(i.dir, identityFile), append(b, '\n')); err != nil {
			return err
		}
	}
	i.is = next
	return nil
}

// Home is the node and the number of its process.
func (i *Identity) Home() cluster.Home {
	i.mu.Lock()
	defer i.mu.Unlock()
	return cluster.Home{Node: i.is.Node, Boot: i.is.Boot}
}

// Keeps reports whether there is a data directory.
func (i *Identity) Keeps() bool { return i.dir != "" }

// Cluster is the id of the cluster that the node belongs to, "" if it has none yet.
func (i *Identity) Cluster() string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.is.Cluster
}

// Found makes a new cluster of this node alone: it gets a random id, and Open will begin
// its log. It is refused if the node belongs to one.
func (i *Identity) Found() error { return i.join(newCluster(), true) }

func newCluster() string {
	var b [8]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// renew gives the node another cluster, in which it is alone.
func (i *Identity) renew() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.change(func(is *identity) { is.Cluster = newCluster() })
}

// Adopt makes the node one of a cluster's for good. It is refused if it belongs to
// another.
func (i *Identity) Adopt(id string) error {
	if b, err := hex.DecodeString(id); err != nil || len(b) == 0 {
		return fmt.Errorf("%q is no id of a cluster", id)
	}
	return i.join(id, false)
}

func (i *Identity) join(id string, founder bool) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	switch i.is.Cluster {
	case "":
		return i.change(func(is *identity) { is.Cluster, is.Founder = id, founder })
	case id:
		return nil
	}
	if founder {
		id = "a new one"
	}
	return fmt.Errorf("node %v belongs to cluster %s, not to %s: start it with another data directory to have it there", i.is.Node, i.is.Cluster, id)
}

// founder reports whether the log begins with this node, and whether it has begun.
func (i *Identity) founder() (founder, log bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.is.Founder, i.is.Log
}

// logged says that there is a log from now on.
func (i *Identity) logged() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.is.Log {
		return nil
	}
	return i.change(func(is *identity) { is.Log = true })
}

// Close lets go of the directory. It may be called once, when the Log is closed.
func (i *Identity) Close() error {
	if i.lock == nil {
		return nil
	}
	return i.lock.Close()
}

func lockDir(dir string) (*os.File, error) {
	lock, by, err := file.Hold(dir)
	if errors.Is(err, file.ErrLocked) {
		return nil, fmt.Errorf("%s is %w by a node%s: stop that one, or use another directory", dir, ErrInUse, by)
	}
	return lock, err
}
