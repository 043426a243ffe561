package store

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// asChild makes the program of the tests a process that works on a folder: see kill_test.go.
const asChild = "FLOWFABRIC_TEST_STORE"

func TestMain(m *testing.M) {
	if plan := os.Getenv(asChild); plan != "" {
		os.Exit(child(plan))
	}
	goleak.VerifyTestMain(m)
}
