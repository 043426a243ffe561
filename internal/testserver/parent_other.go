//go:build !linux

package testserver

import "syscall"

// dieWithParent has no counterpart here: a test process that is killed may leave its servers behind.
func dieWithParent() *syscall.SysProcAttr { return nil }
