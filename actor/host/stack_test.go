package host

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What an actor does is what its own code does, and not what carries it: that calls the
// standard library between two messages, and may be met there.
func TestParseStacks(t *testing.T) {
	require.Equal(t, map[string]string{"7": "time.Sleep\n\t/go/time.go:3\nmain.(*count).Execute\n\t/count.go:9\ngithub.com/egretstream/egret/task.(*boltTask).Receive\n\t/bolt.go:5\n"},
		parseStacks([]byte(`goroutine profile: total 4
1 @ 0x47d92e 0x480b25
# labels: {"egret_actor":"7", "egret_task":"count/2"}
#	0x480b24	time.Sleep+0x164	/go/time.go:3
#	0x480b25	main.(*count).Execute+0x1	/count.go:9
#	0x480b26	github.com/egretstream/egret/task.(*boltTask).Receive+0x2	/bolt.go:5
#	0x480b27	github.com/egretstream/egret/actor/host.(*runner).Receive+0x3	/runner.go:66
#	0x480b28	main.main+0x1	/main.go:1

1 @ 0x47d92e
# labels: {"egret_actor":"8", "egret_task":"count/3"}
#	0x480b24	sync/atomic.(*Bool).Load+0x1	/go/type.go:19
#	0x480b25	github.com/egretstream/egret/actor/host.(*mailbox).run+0x1	/mailbox.go:9

1 @ 0x47d92e
# labels: {"egret_actor":"9", "egret_task":"count/4"}
#	0x480b25	github.com/egretstream/egret/actor/host.(*mailbox).run+0x1	/mailbox.go:9

1 @ 0x47d92e
#	0x480b24	github.com/egretstream/egret/task.(*boltTask).Receive+0x1	/bolt.go:5
#	0x480b25	github.com/egretstream/egret/actor/host.(*runner).Receive+0x1	/runner.go:66
`)))
}
