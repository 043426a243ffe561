// Package store keeps keys as Redis and Valkey do: in memory, and in a folder if it is given one. The embedded server
// puts it behind its port, and functions work on it.
//
//	command ─▶ Do ─▶ commands (one table) ─▶ values ─▶ reply
//	                        │ what changed something, in a form that can be repeated
//	                        └─▶ effects of a call ─▶ log (append-only file) ─▶ Wait: written, or synced
//
// The commands are those that the function library, the engine and the tests use, and some beside them. Their answers
// are those of Redis, which a test with random commands compares.
//
// # Calls
//
// [Store.Lock] and [Store.Unlock] enclose a call: one command, or all commands of one function. During a call the
// clock stands still, so that no key expires in the middle of it, and what it changes is one record of the log, which
// is read back as a whole or not at all.
//
// # Values
//
// What a value keeps it has copied, so that a short text never keeps the long one alive from which it was cut. What it
// hands out is never changed afterwards. Small hashes, sets and sorted sets are one text or one slice; large ones are
// B-trees, of which a copy costs nothing until one side changes. So a snapshot of the whole store is taken key by key
// beside its work: see [Store.snapshot].
package store
