// Package race tells tests whether the race detector watches them. Some that are ten times slower under it, and alone
// in what they do, run their full counts without it (make test runs both).
package race
