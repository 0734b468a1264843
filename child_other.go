//go:build !unix

package egret

import "os/exec"

// apart does nothing here: an interrupt of the terminal goes to the children too.
func apart(*exec.Cmd) {}
