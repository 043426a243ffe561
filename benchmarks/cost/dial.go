package main

import (
	"context"
	"crypto/tls"
	"net"
)

// engineDial reaches a unix socket, as package engine does.
func engineDial(ctx context.Context, path string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
	return d.DialContext(ctx, "unix", path)
}
