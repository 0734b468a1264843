package broker

import "github.com/egretstream/egret/tuple"

type Sender struct {
	Run  uint32
	Task tuple.TaskID
	Life tuple.Incarnation
}
type Share struct{}

func NewShare(int) *Share           { return &Share{} }
func (s *Share) Queued(Sender, int) {}
func (s *Share) Freed(Sender, int)  {}
func (s *Share) FreedAll()          {}
