//go:build unix

package fleet

import "syscall"

func apart() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
