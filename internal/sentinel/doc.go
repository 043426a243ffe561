// Package sentinel has tests on a primary that Sentinels watch: it dies, hangs or is replaced under load, and workers
// and clients go on with the one that the Sentinels name next.
package sentinel
