package trident

import (
	"context"
	"errors"

	"github.com/egretstream/egret/state"
	"github.com/egretstream/egret/topology"
)

// Reach returns why a state of a plan that comes of [New] cannot be opened where it is to
// be; nil if all can, or are not there yet. It makes nothing.
func Reach(ctx context.Context, p *topology.Plan) error { return look(ctx, p, false) }

// Filled is [Reach] that returns an error as well if a state has values. A record that
// knows nothing of them does not fit, see state.ErrLost.
func Filled(ctx context.Context, p *topology.Plan) error { return look(ctx, p, true) }

func look(ctx context.Context, p *topology.Plan, empty bool) error {
	for i := range p.Components {
		if n := &p.Components[i]; n.Stateful {
			if b, is := n.Bolt().(*stateBody); is {
				if err := b.keeper.look(ctx, p.Topology, empty); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (k *keeper[K, A, V]) look(ctx context.Context, topology string, empty bool) error {
	r, err := k.st.Open(ctx, topology, Latest)
	if errors.Is(err, state.ErrNone) {
		return nil
	}
	if err != nil {
		return err
	}
	defer r.Close()
	if !empty {
		return nil
	}
	ctx, enough := context.WithCancel(ctx) // a database would send all that is left
	defer enough()
	some := false
	err = r.All(ctx, func(K, V) bool {
		some = true
		enough()
		return false
	})
	if some {
		return k.st.about(errors.New("it has values"))
	}
	return err
}
