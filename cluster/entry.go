package cluster

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"time"
)

// An Entry is what the log has entries of: one of its fields, named by its kind.
//
//	{"drain-node":{"node":"00000000000000b2","on":true}}
//
// Most kinds say what they were made for: a run, the epoch of a plan. When that is
// over, the entry is refused and changes nothing.
//
// A kind never gets another meaning. What has to be said in another way gets another
// kind, so that an older version notices that it cannot read it.
type Entry struct {
	Found       *Found       `json:"found,omitempty"`
	Submit      *Submit      `json:"submit,omitempty"`
	SetStatus   *SetStatus   `json:"set-status,omitempty"`
	SetPlan     *SetPlan     `json:"set-plan,omitempty"`
	ProposeNext *ProposeNext `json:"propose-next,omitempty"`
	CancelNext  *CancelNext  `json:"cancel-next,omitempty"`
	Switch      *Switch      `json:"switch,omitempty"`
	Commit      *Commit      `json:"commit,omitempty"`
	Batches     *Batches     `json:"batches,omitempty"`
	Finish      *Finish      `json:"finish,omitempty"`
	Forget      *Forget      `json:"forget,omitempty"`
	SawNode     *SawNode     `json:"saw-node,omitempty"`
	DrainNode   *DrainNode   `json:"drain-node,omitempty"`
	ForgetNode  *ForgetNode  `json:"forget-node,omitempty"`
}

// Found is the first entry of a log that is applied: all before it are refused.
type Found struct {
	Cluster string `json:"cluster"` // its id, for ever
}

// Submit starts a run. A run of the same name that is done is forgotten with its
// positions. One that was stopped or has failed leaves its positions, or its record of batches,
// to the new one, which goes on from there; to begin anew, it is forgotten first.
type Submit struct {
	Spec Spec      `json:"spec"`
	At   time.Time `json:"at"`
}

// SetStatus makes a run active, inactive, stopping or ending. From stopping there is only the
// way to ending, and none from there. One that has ended is removed by ending, and left alone
// by stopping if it is stopped: who asks does not know whether it has ended in the meantime.
type SetStatus struct {
	Topology string    `json:"topology"`
	Run      Run       `json:"run"`
	Status   Status    `json:"status"`
	At       time.Time `json:"at"`
}

// SetPlan puts a plan in force at once, in place of that with epoch Base (0: of none),
// and cancels the next one. It keeps the parallelism.
type SetPlan struct {
	Topology string `json:"topology"`
	Run      Run    `json:"run"`
	Base     uint32 `json:"base"`
	Plan     *Plan  `json:"plan"`
}

// ProposeNext says which plan shall follow that with epoch Base, once all is quiet.
// There is one such plan at a time.
type ProposeNext struct {
	Topology string `json:"topology"`
	Run      Run    `json:"run"`
	Base     uint32 `json:"base"`
	Plan     *Plan  `json:"plan"`
	Why      string `json:"why"` // for people
}

// CancelNext drops the next plan of a run.
type CancelNext struct {
	Topology string `json:"topology"`
	Run      Run    `json:"run"`
	Base     uint32 `json:"base"`
}

// Switch puts the next plan of a run in force. The spec follows its parallelism.
type Switch struct {
	Topology string `json:"topology"`
	Run      Run    `json:"run"`
	Base     uint32 `json:"base"`
}

// Commit raises positions of a run, whatever its status: what was finished is finished.
// One that comes from an earlier life than the position that is there is passed over.
type Commit struct {
	Topology  string     `json:"topology"`
	Run       Run        `json:"run"`
	Positions []Position `json:"positions"`
}

// Finish ends a run as done or failed, or, if it was stopping, as stopped and nothing else:
// whoever stopped it was told that it can go on. It stays visible with its last plan until
// its name is submitted again or forgotten.
type Finish struct {
	Topology string    `json:"topology"`
	Run      Run       `json:"run"`
	Status   Status    `json:"status"`
	Reason   string    `json:"reason,omitempty"`
	At       time.Time `json:"at"`
}

// Forget removes a run that has ended or is ending, and its positions.
type Forget struct {
	Topology string `json:"topology"`
	Run      Run    `json:"run"`
}

// SawNode says that a process of a node is there. It leaves alone whether the node is
// draining. A process before the last one that was seen is refused.
type SawNode struct {
	Node NodeID `json:"node"`
	Name string `json:"name"`
	Addr string `json:"addr"`
	Boot Boot   `json:"boot"`
}

// DrainNode says whether a node is draining.
type DrainNode struct {
	Node NodeID `json:"node"`
	On   bool   `json:"on"`
}

// ForgetNode removes a node that has no task of a running topology.
type ForgetNode struct {
	Node NodeID `json:"node"`
}

// A change is one kind of entry. Its error is a *Refusal, and then it has changed
// nothing.
type change interface {
	apply(s *State, r *Result) error
}

// changes returns those kinds that are set.
func (e *Entry) changes() (set []change, kind string) {
	for _, k := range []struct {
		kind string
		set  bool
		change
	}{
		{"found", e.Found != nil, e.Found},
		{"submit", e.Submit != nil, e.Submit},
		{"set-status", e.SetStatus != nil, e.SetStatus},
		{"set-plan", e.SetPlan != nil, e.SetPlan},
		{"propose-next", e.ProposeNext != nil, e.ProposeNext},
		{"cancel-next", e.CancelNext != nil, e.CancelNext},
		{"switch", e.Switch != nil, e.Switch},
		{"commit", e.Commit != nil, e.Commit},
		{"batches", e.Batches != nil, e.Batches},
		{"finish", e.Finish != nil, e.Finish},
		{"forget", e.Forget != nil, e.Forget},
		{"saw-node", e.SawNode != nil, e.SawNode},
		{"drain-node", e.DrainNode != nil, e.DrainNode},
		{"forget-node", e.ForgetNode != nil, e.ForgetNode},
	} {
		if k.set {
			set, kind = append(set, k.change), k.kind
		}
	}
	return set, kind
}

// Encode returns what the log keeps of e. Exactly one of its fields is set.
func (e Entry) Encode() ([]byte, error) {
	if set, _ := e.changes(); len(set) != 1 {
		return nil, refuse(ErrInvalid, "an entry is of one kind, and this one of %d", len(set))
	}
	return json.Marshal(e)
}

// decode is strict: what it would have to pass over may matter. An entry that has only
// words too many was written by a newer version, and then its kind is still returned.
func decode(data []byte) (c change, kind string, err error) {
	var e Entry
	if err := strictly(data, &e); err != nil {
		var kinds map[string]json.RawMessage
		if json.Unmarshal(data, &kinds) == nil && json.Unmarshal(data, new(Entry)) == nil && len(kinds) == 1 {
			for kind = range kinds { // the one
				kind = strings.ToValidUTF8(kind[:min(len(kind), 40)], "")
			}
			return nil, kind, refuse(ErrNewer, "a newer version of Egret wrote an entry %q, which this one cannot read (%v):"+
				" run the same version on all nodes", kind, err)
		}
		return nil, "", refuse(ErrCorrupt, "an entry cannot be read: %v", err)
	}
	set, kind := e.changes()
	if len(set) != 1 {
		return nil, "", refuse(ErrCorrupt, "an entry is of one kind, and this one of %d", len(set))
	}
	return set[0], kind, nil
}

func strictly(data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("there is more behind its end")
	}
	return nil
}
