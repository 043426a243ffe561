// Package simulate replays a whole deployment from one number. Its code is in its tests.
//
//	seed ─▶ one goroutine ─▶ next actor, next instant, next fault
//	         ├─ producers, workers, gateways, maintainers, operators ─▶ engine ─▶ embedded server
//	         ├─ after each step: internal/invariant over the partitions that were touched
//	         └─ at the end, without faults: all work ends, an audit finds nothing
//
// Time is the server's, and moves only when the seed says so. Nothing else is random: no other goroutine decides
// anything, nobody reads the clock of the machine, and no decision follows the order of a map. So the same seed makes
// the same calls and gets the same answers, which the journal shows.
//
// A run of hours has gates besides: work asks one, and calls a service from its slot. After each hour every slot must
// be free, which is seen by filling them all. Its workers ask gates as those of the library do, with a goroutine for
// each partition that is asked, so such a seed does not repeat to the last answer.
//
// What internal/model does for one partition and exact answers, this package does for actors that keep state between
// their calls: that a session is renewed too late, an answer is lost, a call arrives twice or long after it was sent.
package simulate
