package gossip

import (
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// However many there are, all find each other, and a death is seen by all; what a node
// sends in a quiet cluster hardly grows with the number of nodes. Many more nodes with
// EGRET_LONG=1.
func TestScale(t *testing.T) {
	sizes := []int{10, 25}
	if os.Getenv("EGRET_LONG") != "" {
		sizes = []int{25, 50, 100, 200}
	}
	for _, size := range sizes {
		t.Run(fmt.Sprintf("nodes=%d", size), func(t *testing.T) {
			bubble(t, func(t *testing.T, n *network) {
				var all []*node
				for i := range size {
					all = append(all, n.start(t, i, nil))
				}
				names := func(dead string) string {
					var s []string
					for i := range size {
						name := fmt.Sprintf("n%d", i)
						if name == dead {
							name = "-" + name
						}
						s = append(s, name)
					}
					return strings.Join(s, " ")
				}
				found := see(t, 30*time.Second, names(""), all...)
				time.Sleep(30 * time.Second) // the news of it die down
				const quiet = 60
				datagrams, streamed := n.datagrams.Load(), n.streamed.Load()
				time.Sleep(quiet * time.Second)
				datagrams, streamed = n.datagrams.Load()-datagrams, n.streamed.Load()-streamed
				each := func(bytes int64) int64 { return bytes / quiet / int64(size) }
				all[size/2].stop()
				dead := see(t, 30*time.Second, names(all[size/2].config.Self.Name), append(all[:size/2:size/2], all[size/2+1:]...)...)
				t.Logf("all found each other in %v, saw a death in %v; a node sends %d bytes a second in datagrams and %d over connections",
					found, dead, each(datagrams), each(streamed))
				// Probes cost the same however many there are. An exchange has an entry for each, and
				// comes less often above 32 nodes, by the logarithm of their number.
				seldom := 1 + int64(math.Ceil(max(0, math.Log2(float64(size)/32))))
				require.Less(t, each(datagrams), int64(400))
				require.Less(t, each(streamed), 300+30*int64(size)/seldom)
				for i, d := range all {
					if i != size/2 {
						d.stop()
					}
				}
			})
		})
	}
}
