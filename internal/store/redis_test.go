package store_test

import (
	"testing"

	"github.com/flowfabric/flowfabric-go/internal/store"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
)

// Package testserver imports this one through the embedded server, so the tests inside the package cannot import it.
func init() {
	store.StartRedis = func(t testing.TB) string { return testserver.Redis(t) }
}
