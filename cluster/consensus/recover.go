package consensus

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"

	"github.com/hashicorp/raft"

	"github.com/egretstream/egret/cluster"
)

// Remains are what the log of one node has. Of two nodes that one has more whose last
// entry has the greater term, or the same term and the greater index.
type Remains struct {
	Term, Index uint64 // of the last entry, agreed on or not
	Servers     []cluster.Server
}

// Recover makes the log of a node, which must not be in use, that of a new cluster with this
// node alone, when the others have lost theirs. It gives all entries to m, those too that
// were never agreed on, and asks sure; if that is false, nothing is changed. Otherwise the
// log begins with the Snapshot of m, and the cluster has another id: so servers of the old
// one are refused if they come back after all, with entries that this node does not have.
// After an error Recover may be called again.
func Recover(i *Identity, m Machine, sure func(Remains) bool) (err error) {
	_, had := i.founder()
	if i.dir == "" || !had {
		return errors.New("this node has no log that could be recovered: it was never one of a cluster's with this directory")
	}
	quiet := slog.New(slog.DiscardHandler)
	snapshots, end, err := openSnapshots(i.dir, newNoise(quiet))
	if err != nil {
		return err
	}
	s, err := openStore(i.dir, true, end, quiet)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	all := &read{machine{Machine: m, logger: quiet}}
	r, err := all.read(snapshots, s)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(r.Servers, func(s cluster.Server) bool { return s.Node == i.Home().Node })
	if at < 0 {
		return fmt.Errorf("node %v had been removed from the log of cluster %s, and does not have what came later: recover a node that members showed to the end", i.Home().Node, i.Cluster())
	}
	if !sure(r) {
		return nil
	}
	// In this order: with the new id and the old log the node has no quorum, and is only to be
	// recovered again. The other way round the others could find it.
	if err := i.renew(); err != nil {
		return err
	}
	self := address(r.Servers[at].Addr, r.Servers[at].Node)
	addr, transport := raft.NewInmemTransport(self)
	defer transport.Close()
	return raft.RecoverCluster(settings(i.Home().Node, cluster.Calm, newNoise(quiet)), all, s, s, snapshots, transport,
		raft.Configuration{Servers: []raft.Server{{ID: raft.ServerID(i.Home().Node.String()), Address: addr}}})
}

// A read machine has all that is in the log already, so raft gives it nothing.
type read struct{ machine }

func (*read) Apply(*raft.Log) any           { return nil }
func (*read) Restore(r io.ReadCloser) error { return r.Close() }

// read reads the newest snapshot, which openSnapshots has looked at, and the entries behind it.
func (m *read) read(snapshots *raft.FileSnapshotStore, s *store) (r Remains, err error) {
	var servers raft.Configuration
	all, err := snapshots.List()
	if err != nil {
		return r, err
	}
	if len(all) > 0 {
		is, data, err := snapshots.Open(all[0].ID)
		if err != nil {
			return r, err
		}
		err = m.machine.Restore(data)
		if err := errors.Join(err, data.Close()); err != nil {
			return r, err
		}
		r.Term, r.Index, servers = is.Term, is.Index, is.Configuration
	}
	last, err := s.LastIndex()
	if err != nil {
		return r, err
	}
	for i := r.Index + 1; i <= last; i++ {
		var l raft.Log
		if err := s.GetLog(i, &l); err != nil {
			return r, err
		}
		switch l.Type {
		case raft.LogCommand:
			m.machine.Apply(&l)
		case raft.LogConfiguration:
			servers = raft.DecodeConfiguration(l.Data)
		}
		r.Term, r.Index = l.Term, l.Index
	}
	r.Servers = places(servers)
	return r, nil
}
