package main

import (
	"runtime"
	"syscall"
)

// dieWithParent makes the kernel end a server with the test.
func dieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }

func lockThread() { runtime.LockOSThread() }
