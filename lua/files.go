// Package lua owns the server side of FlowFabric: one Lua file per function, and small shared helpers in lib/. It holds the files only.
//
// The same sources serve two kinds of servers. Valkey and Redis ≥ 7.0 get one FUNCTION library; the embedded
// development server, which knows no functions, gets one script per function with the helpers it needs in front.
// The text is a portable subset of Lua 5.1: no globals, no JSON, whole numbers only.
//
// Every function file begins with a header that states its flags, the Go method that calls it, and its
// arguments, replies and errors. The conformance suite holds every call that it makes to them.
package lua

import "embed"

// Files are the Lua files, a directory for each area and lib for the helpers.
//
//go:embed lib/*.lua system/*.lua execution/*.lua worker/*.lua stream/*.lua suspend/*.lua operate/*.lua read/*.lua flow/*.lua admission/*.lua tick/*.lua
var Files embed.FS
