// Package invariant reads everything one partition holds, with plain commands only, and holds it against the rules
// of a state and against those of this layout: one index, one alarm, no index entry
// without its record, no key that should not exist, no key that expires by itself except those that may.
//
//	server ──Read──► Dump ──Checker.Violations──► sentences, none for a sound partition
//	                   └────Text, Difference────► what a call changed
//
// The conformance scenarios look after every step; the crash, model, cluster and network tests look when the dust
// has settled. A Checker remembers what it saw of each execution, so that several looks also show what went
// backwards: an epoch, a number of attempts, an end that was not final.
//
// Failure story: a dump is not one atomic look. The keys are listed first and read after, so a partition that
// changes meanwhile may show breaches that never were. Stop all writers, the tick too, before a verdict counts.
// The package reads the layout itself instead of asking engine/, or a shared mistake would hide itself.
package invariant
