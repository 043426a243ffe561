module github.com/flowfabric/flowfabric-go/benchmarks

go 1.26.0

replace github.com/flowfabric/flowfabric-go => ../

require (
	github.com/flowfabric/flowfabric-go v0.0.0
	github.com/redis/rueidis v1.0.79
	github.com/sourcegraph/conc v0.3.0
)

require (
	github.com/cenkalti/backoff/v4 v4.3.0 // indirect
	github.com/google/uuid v1.6.0 // indirect
	go.uber.org/multierr v1.10.0 // indirect
	golang.org/x/sys v0.48.0 // indirect
)
