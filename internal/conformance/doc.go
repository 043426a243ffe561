// Package conformance is the one suite that every supported server runs: the scenarios of every guarantee, and two
// properties of the whole library: an error reply leaves the keyspace byte-identical, and a repeated write changes
// nothing. It has tests only.
//
// A server is named by its [Server] value with the features it has; what a server lacks is skipped by name. Every
// scenario gets a partition of its own and moves its clock, which stands still otherwise (clock_pin of the root),
// instead of sleeping. After every step the whole partition is read and held against the invariants X1–X6 and I1–I6
// of the layout (check_test.go).
//
//	go test ./internal/conformance                                    # embedded, Redis, a cluster of one
//	FLOWFABRIC_SOAK=100000 go test -run /fuzz ./internal/conformance  # long random sequences
//	FLOWFABRIC_SEED=42 …                                              # repeat one of them
package conformance
