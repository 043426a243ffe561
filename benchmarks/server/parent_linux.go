package server

import "syscall"

// dieWithParent makes the kernel end the server when the benchmark is killed. Strictly it follows the thread that
// started the server, but Go ends threads early only with goroutines that are locked to them, and there are none here.
func dieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
