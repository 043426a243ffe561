package postgres

import "syscall"

// quitWithParent makes the kernel tell the server to end at once when the benchmark is killed; see package server.
func quitWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGQUIT} }
