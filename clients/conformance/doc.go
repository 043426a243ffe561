// Package conformance holds what every client and worker must do, as data: scenarios/*.json. A runner in each language
// reads them, does what they say with the package of that language, and compares. All run against one
// `flowfabric serve` on Redis.
//
// A scenario has kinds, whose handlers are lists of operations, and a list of steps that a caller makes. The member
// that names an operation comes first. "as" keeps what it answers; "$name.member" is that value later, and "${u}" is a
// text that no other scenario has. expect is compared with the answer: an object may have more members than are
// wanted, "$any" is anything, "$none" nothing. error is the code of the error that the step must end with.
package conformance
