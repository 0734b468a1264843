//go:build unix

package egret

import (
	"os/exec"
	"syscall"
)

// apart sees to it that an interrupt of the terminal does not go to a child as well: it
// gets its own.
func apart(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
