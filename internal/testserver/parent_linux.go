package testserver

import "syscall"

// dieWithParent makes the kernel end the server when the test process dies without its cleanups, for example
// by SIGKILL or a panic of another test.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
