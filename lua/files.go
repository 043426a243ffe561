// Package lua owns the server side of FlowFabric: one Lua file per function, and small shared helpers in lib/. It
// holds the files only.
//
// Every server gets the same sources as one FUNCTION library: Valkey, Redis ≥ 7.0, and the embedded development
// server, whose Lua is another (internal/functions). The text is a portable subset of Lua 5.1: no globals, no JSON,
// whole numbers only.
//
// Every function file begins with a header that states its flags, the Go method that calls it, and its arguments,
// replies and errors. The conformance suite holds every call that it makes to them.
package lua

import "embed"

// Files are the Lua files, a directory for each area, lib for the helpers, and decode for what is generated from the
// headers.
//
//go:embed groups.txt lib/*.lua system/*.lua execution/*.lua worker/*.lua stream/*.lua suspend/*.lua operate/*.lua read/*.lua flow/*.lua admission/*.lua tick/*.lua decode/*.lua
var Files embed.FS
