// Package engine is the Go face of the server library: one method per Lua function, and nothing else decides
// anything. It is the only package that talks to the server.
//
// # Path of a call
//
//	method ─▶ bounds and ids checked ─▶ FCALL with one key, the partition root
//	       ◀─ typed reply or typed error ◀─ envelope {1, OK, …} / {0, code, …}
//
// # When things fail
//
// Every function is either idempotent or fenced, so a call whose reply was lost is simply made again, a few times,
// with a growing pause; the repeat answers what the first call did. What is still failing then is returned as an
// error that wraps flowfabric.ErrTransport, and the caller may go on repeating. A server that lost the library (a
// restart without persistence, a failover to a fresh node) gets it loaded again, on that node. A partition whose
// root is gone is never recreated: the store was flushed, and going on would hide it.
//
// All methods may be called concurrently.
package engine
