package process

import (
	"errors"

	"github.com/egretstream/egret/cluster"
	"github.com/egretstream/egret/cluster/consensus"
	"github.com/egretstream/egret/node"
)

// refusal says to who has asked for an entry what the log has answered: whether anything
// was done, and whether it helps to ask again.
func refusal(err error) error {
	var why cluster.Reason
	var text string
	switch {
	case err == nil:
		return nil
	case errors.Is(err, consensus.ErrNotLeader):
		why, text = node.ErrNoQuorum, "who leads has just changed, and nothing was done: try again"
	case errors.Is(err, consensus.ErrClosed):
		why, text = node.ErrNoQuorum, "the node that leads begins or ends, and nothing was done: try again"
	case errors.Is(err, consensus.ErrBusy):
		why, text = node.ErrBusy, "the log has too much to do, and nothing was done: try again later"
	case errors.Is(err, consensus.ErrUnsure):
		why, text = node.ErrUnsure, err.Error()+": look with egret status before you try again"
	case errors.Is(err, consensus.ErrTooLarge):
		why, text = node.ErrParameter, err.Error()
	default:
		why, text = node.ErrFailed, err.Error()
	}
	return &cluster.Refusal{Reason: why, Text: text}
}
