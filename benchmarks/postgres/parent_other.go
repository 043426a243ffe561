//go:build !linux

package postgres

import "syscall"

func quitWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{} }
