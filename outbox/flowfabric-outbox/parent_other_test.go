//go:build !linux

package main

import "syscall"

func dieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{} }

func lockThread() {}
