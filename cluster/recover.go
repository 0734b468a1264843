package cluster

import "math"

// lostEpochs is how many epochs the lost nodes may have given, at most, that nobody has
// heard of: hours of nothing but rebalancing.
const lostEpochs = 1 << 16

// Recover makes s the state of a new cluster, when the nodes that could have agreed on more
// are lost with their logs. Lives that they may have begun are before all that come now, so
// whoever has heard of these, such as a store of positions outside, does not take them for
// later ones. With an error, [ErrFull], s is as before.
func (s *State) Recover(cluster string) error {
	if s.Epoch > math.MaxUint32-lostEpochs {
		return refuse(ErrFull, "almost all epochs have been given away, and the lost nodes may have the rest")
	}
	s.Cluster, s.Epoch = cluster, s.Epoch+lostEpochs
	return nil
}
