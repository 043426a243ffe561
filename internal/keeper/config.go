package keeper

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/limits"
)

// Engine is what a keeper needs of the server.
type Engine interface {
	// ClaimNext asks one partition for work; see [engine.ClaimRequest] for how numbers count.
	ClaimNext(ctx context.Context, req engine.ClaimRequest) (engine.ClaimReply, error)
	// RenewSession extends a session and returns the notices after generation processed.
	RenewSession(ctx context.Context, partition uint16, session string, ttl time.Duration,
		processed uint64) (engine.Renewal, error)
	// SessionHeld lists what the server holds under a session.
	SessionHeld(ctx context.Context, partition uint16, session string) ([]engine.Held, error)
	// CloseSession ends an empty session; denied.SessionHeld when it is not empty.
	CloseSession(ctx context.Context, partition uint16, session string) error
	// ReadExecution tells the epoch and the attempt of what is held but not run here.
	ReadExecution(ctx context.Context, id flowfabric.ExecutionID) (engine.Snapshot, error)
	// ReleaseExecution hands it back.
	ReleaseExecution(ctx context.Context, fence flowfabric.Fence) (already bool, err error)
	// RevokeLease gives up what was handed back too often: the tick requeues it, and that counts a reclaim.
	RevokeLease(ctx context.Context, id flowfabric.ExecutionID, session string) (already bool, err error)
}

// Config says for whom a keeper keeps. Engine and Instance are required.
type Config struct {
	Engine Engine
	// Claim is made for every claim. Default Engine.ClaimNext.
	Claim func(ctx context.Context, req engine.ClaimRequest) (engine.ClaimReply, error)
	// Instance is the worker instance that sessions are minted for: 1..48 bytes, unique at any moment.
	Instance string
	// Version is that of the application: the ids of sessions have its mark. Default none.
	Version string
	// TTL is the lease time of every session: 1 s .. 1 h. Default 30 s.
	TTL time.Duration
	// Logger receives lost sessions, failing renewals and orphans. Default slog.Default().
	Logger *slog.Logger
	// Context is what every hold's context derives from. Default context.Background(). It should outlive the wish to
	// stop, so that running work can be drained.
	Context context.Context
	// Clock is read for every question of trust. Default [SystemClock].
	Clock Clock

	// OnTickOverdue is told that a reply said the partition's timers are not being tended.
	OnTickOverdue func(partition uint16)
	// OnRenew is told the outcome of every renewal call; err is nil on success.
	OnRenew func(partition uint16, err error)
	// OnLost is told of every hold that was taken away, with the cause its context ended with. These
	// functions are called from the keeper's goroutines and must neither block nor call the keeper.
	OnLost func(execution flowfabric.ExecutionID, cause error)
	// OnSessionLost is told of every session that existed on the server and ended against this keeper's will:
	// [lostTrust], [lostLate], [lostWrite], or the code of the server's answer (see flowfabric.CodeOf). It is called
	// like OnLost.
	OnSessionLost func(partition uint16, cause string)
}

func (cfg Config) withDefaults() Config {
	if cfg.Claim == nil {
		cfg.Claim = cfg.Engine.ClaimNext
	}
	cfg.TTL = cmp.Or(cfg.TTL, limits.DefaultLeaseTTL)
	cfg.Logger = cmp.Or(cfg.Logger, slog.Default())
	if cfg.Context == nil {
		cfg.Context = context.Background()
	}
	if cfg.Clock == nil {
		cfg.Clock = SystemClock
	}
	if cfg.OnTickOverdue == nil {
		cfg.OnTickOverdue = func(uint16) {}
	}
	if cfg.OnRenew == nil {
		cfg.OnRenew = func(uint16, error) {}
	}
	if cfg.OnLost == nil {
		cfg.OnLost = func(flowfabric.ExecutionID, error) {}
	}
	if cfg.OnSessionLost == nil {
		cfg.OnSessionLost = func(uint16, string) {}
	}
	return cfg
}

// maxTold is how many notices that took nothing away a hold remembers for who listens later.
const maxTold = 16

const (
	// failureLimit is how many renewals in a row may fail before a lease counts as unhealthy.
	failureLimit = 3
	// maxCalls bounds the renewals and closes under way at once. It is above the default partition count,
	// so that calls stuck on one dead node never hold up those to the others.
	maxCalls = 128
	// maxTurn bounds how long the keeper's loop sleeps while it holds something: a jump of the wall clock
	// does not wake timers, only looking does.
	maxTurn = time.Second
	minWait = 50 * time.Millisecond
	// A hold ends when two looks miss it, ttl/3 apart within these bounds: a settling call is repeated more often
	// than that.
	minConfirm, maxConfirm = 3 * time.Second, 10 * time.Second
	// maxGarbled is how many answers to one claim may be unreadable before its session is given up.
	maxGarbled = 3
)

// margin is how long before the server's expiry trust ends.
func margin(ttl time.Duration) time.Duration { return max(ttl/10, minWait) }
