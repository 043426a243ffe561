package runtime

import (
	"context"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/embedded"
	"github.com/flowfabric/flowfabric-go/internal/admit"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/maintain"
	"github.com/flowfabric/flowfabric-go/internal/partmetrics"
	"github.com/flowfabric/flowfabric-go/internal/sealed"
	"github.com/flowfabric/flowfabric-go/internal/session"
	"github.com/flowfabric/flowfabric-go/internal/times"
	"github.com/flowfabric/flowfabric-go/internal/tokenkeys"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// store is the part of [engine.Engine] that a worker uses. Tests put faults in front of the real one.
type store interface {
	session.Engine
	maintain.Ticker
	tokenkeys.Seeder
	admit.Outbox
	jobStore
	claimStore
	partmetrics.Store
	registrar
	times.Store
	TokenKeys(ctx context.Context) []suspend.PartitionKeys
	Evicting(ctx context.Context) []engine.EvictionPolicy
	Close()
}

// settler is what ends an attempt, one way or another. Every call is fenced and may be repeated.
type settler interface {
	CompleteExecutions(ctx context.Context, partition uint16, items []engine.Completion,
		next *engine.ClaimRequest) ([]engine.Settled, *engine.ClaimReply, error)
	FailExecution(ctx context.Context, fence flowfabric.Fence, failure engine.Failure) (engine.FailOutcome, error)
	DelayExecution(ctx context.Context, fence flowfabric.Fence, delay time.Duration,
		service string) (already bool, err error)
	ContinueExecution(ctx context.Context, fence flowfabric.Fence, input []byte) (already bool, err error)
	ReleaseExecution(ctx context.Context, fence flowfabric.Fence) (already bool, err error)
	SuspendExecution(ctx context.Context, fence flowfabric.Fence, q engine.Suspension) (engine.Suspended, error)
	MakeChildren(ctx context.Context, fence flowfabric.Fence, q engine.ChildWait) (engine.MadeChildren, error)
	WaitForOthers(ctx context.Context, fence flowfabric.Fence, q engine.ChildWait) error
	CancelExecution(ctx context.Context, id flowfabric.ExecutionID,
		cancellation engine.Cancellation) (already bool, err error)
}

// open connects to the server of cfg. The function returned closes the connection and, for embedded://, gives
// the server back.
func open(ctx context.Context, cfg Config) (store, func(), error) {
	url, release, err := embedded.Resolve(ctx, cfg.URL, cfg.Logger)
	if err != nil {
		return nil, nil, err
	}
	e, err := engine.Open(ctx, engine.Config{
		URL: url, Username: cfg.Username, Password: cfg.Password, TLS: cfg.TLS, ClientName: "flowfabric-worker",
		DialTimeout: cfg.DialTimeout, CallTimeout: cfg.CallTimeout,
		Partitions: cfg.Partitions, CreateConfig: cfg.CreateConfig, Logger: cfg.Logger, OnCall: cfg.OnCall,
		Box: sealed.New(cfg.Cipher),
	})
	if err != nil {
		release()
		return nil, nil, err
	}
	return e, func() { e.Close(); release() }, nil
}
