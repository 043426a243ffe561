// Package crash holds the tests that kill and stop real worker processes: SIGKILL in the middle of streaming, and
// SIGSTOP past the lease. The test binary runs itself as the worker.
package crash
