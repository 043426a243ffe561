//go:build !race

package race

// Enabled is whether the race detector watches this build.
const Enabled = false
