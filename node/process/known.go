package process

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/egretstream/egret/cluster"
	"github.com/egretstream/egret/state/file"
)

// knownFile has the addresses of members, so that nodes find each other when all of them
// are started again, and those that they once joined are not there any more.
const knownFile = "members.json"

// readKnown returns the addresses that were written last.
func readKnown(dir string) ([]string, error) {
	if dir == "" {
		return nil, nil
	}
	name := filepath.Join(dir, knownFile)
	b, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err // names it
	}
	var all []string
	if err := json.Unmarshal(b, &all); err != nil {
		return nil, fmt.Errorf("%s, which says where the other nodes were, is damaged: delete it, and start with --join HOST:PORT of one that lives (%w)", name, err)
	}
	return all, nil
}

// writeKnown writes the addresses of the living members, if they are others than were
// written last. One that is alone keeps what it knows.
func (p *Process) writeKnown(members []cluster.Member) {
	var all []string
	for _, m := range members {
		if m.Alive && m.Node != p.self.Node {
			all = append(all, m.Addr)
		}
	}
	slices.Sort(all)
	if p.config.Data == "" || len(all) == 0 || slices.Equal(all, p.known) {
		return
	}
	b, err := json.Marshal(all)
	if err == nil {
		err = file.Write(filepath.Join(p.config.Data, knownFile), append(b, '\n'))
	}
	if err != nil {
		p.log.Warn("the addresses of the members could not be written, so this node may not find them when all are started again: " + err.Error())
		return
	}
	p.known = all
}
