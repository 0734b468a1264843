package fleet

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// ErrPermission reports that this process may not make network namespaces.
var ErrPermission = errors.New("network namespaces cannot be made here")

// A bridge joins the network namespaces of a fleet, as a switch joins machines. It has
// the recorder's end of the network too.
//
//	egret-br0 10.83.0.1 --+-- eg1 = eth0 10.83.0.2 in egret-1
//	                      +-- eg2 = eth0 10.83.0.3 in egret-2
type bridge struct {
	undo [][]string // commands, the last first
}

const (
	bridgeName = "egret-br0"
	cutName    = "egret-br1" // of those that are cut from the others
)

func ip(args ...string) error {
	out, err := exec.Command("ip", args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

// newBridge makes it all. It leaves nothing behind if it cannot.
func newBridge(nodes int) (b *bridge, err error) {
	if os.Geteuid() != 0 {
		return nil, fmt.Errorf("%w: that takes root", ErrPermission)
	}
	if _, err := exec.LookPath("ip"); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPermission, err)
	}
	if ip("link", "show", bridgeName) == nil {
		return nil, fmt.Errorf("there is a bridge %s already: another run uses it, or one was killed; then remove what it has left: ip link del %s; ip link del %s; ip netns del egret-1; and so on", bridgeName, bridgeName, cutName)
	}
	b = &bridge{}
	do := func(undo string, args string) {
		if err != nil {
			return
		}
		if err = ip(strings.Fields(args)...); err == nil && undo != "" {
			b.undo = append(b.undo, strings.Fields(undo))
		}
	}
	do("link del "+bridgeName, "link add "+bridgeName+" type bridge")
	do("link del "+cutName, "link add "+cutName+" type bridge")
	do("", "link set "+cutName+" up")
	do("", "addr add "+b.addr(0, -1)+"/24 dev "+bridgeName)
	do("", "link set "+bridgeName+" up")
	for i := 1; i <= nodes; i++ {
		space, port := b.space(i), b.port(i)
		do("netns del "+space, "netns add "+space)
		do("", "link add "+port+" type veth peer name eth0 netns "+space)
		do("", "link set "+port+" master "+bridgeName+" up")
		do("", "-n "+space+" addr add "+b.addr(i, -1)+"/24 dev eth0")
		do("", "-n "+space+" link set eth0 up")
		do("", "-n "+space+" link set lo up")
	}
	if err != nil {
		if strings.Contains(err.Error(), "not permitted") || strings.Contains(err.Error(), "denied") {
			err = fmt.Errorf("%w: %w", ErrPermission, err)
		}
		return nil, errors.Join(err, b.close())
	}
	return b, nil
}

// addr is where a node is, 0 for the recorder; without a port if that is below 0.
func (b *bridge) addr(node, port int) string {
	host := fmt.Sprintf("10.83.0.%d", node+1)
	if port < 0 {
		return host
	}
	return fmt.Sprintf("%s:%d", host, port)
}

func (b *bridge) space(node int) string { return fmt.Sprintf("egret-%d", node) }

func (b *bridge) port(node int) string { return fmt.Sprintf("egret-p%d", node) }

// cut puts nodes on a bridge of their own: they reach each other, and nobody else, the
// recorder included.
func (b *bridge) cut(node int, on bool) error {
	to := bridgeName
	if on {
		to = cutName
	}
	return ip("link", "set", b.port(node), "master", to)
}

// close removes all of it.
func (b *bridge) close() (err error) {
	for i := len(b.undo) - 1; i >= 0; i-- {
		err = errors.Join(err, ip(b.undo[i]...))
	}
	return err
}
