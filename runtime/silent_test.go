package runtime

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/kindschema"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// silent is a store in memory that can fall silent: from then on no call is answered before its context ends, and
// the driver behaves as it does in front of a peer that is gone without a word. Until then the executions it was
// given are handed out once.
type silent struct {
	store   // nil: what a test does not expect panics
	cluster bool
	count   uint16
	fleet   int // workers that are registered, as polls are told

	mu      sync.Mutex
	gone    bool
	work    []engine.Claim
	held    []engine.Held // handed out, and not settled
	polls   []polled
	overdue map[uint16]time.Time // since when a partition's tick is overdue
	ticks   map[uint16]time.Time // when a tick was first made after that
	closed  chan struct{}
	once    sync.Once
	hung    bool // a tick that is handed back is not answered
	hanging chan struct{}

	names    map[string]enrolled // registered instances
	noting   error               // what the registry answers instead, if anything
	enrolled chan engine.Registration
}

// enrolled is a registration; one without a token was left.
type enrolled struct {
	token   string
	expires time.Time
}

type polled struct {
	at         time.Time
	partitions []uint16
}

const (
	driverNotices = 7 * time.Second // until the driver drops a connection whose peer does not answer
	driverCloses  = time.Second     // and how long it waits for an answer to the end of one
)

func newSilent(count uint16, work int) *silent {
	s := &silent{count: count, overdue: map[uint16]time.Time{}, ticks: map[uint16]time.Time{},
		closed: make(chan struct{}), hanging: make(chan struct{}), names: map[string]enrolled{},
		enrolled: make(chan engine.Registration, 1000)}
	for range work {
		fence := flowfabric.Fence{Execution: mint.ID(0), Epoch: 1}
		s.work = append(s.work, engine.Claim{Route: 1, Fence: fence, Input: []byte(`"x"`)})
	}
	return s
}

func (s *silent) fallSilent() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gone = true
}

// answer blocks while there is nobody to answer.
func (s *silent) answer(ctx context.Context) error {
	s.mu.Lock()
	gone := s.gone
	s.mu.Unlock()
	if !gone {
		return ctx.Err()
	}
	select {
	case <-ctx.Done():
	case <-s.closed:
	}
	return fmt.Errorf("%w: silence", flowfabric.ErrTransport)
}

func (s *silent) Partitions() uint16 { return s.count }
func (s *silent) Cluster() bool      { return s.cluster }

// TokenKeys tells that nobody signs tokens here.
func (s *silent) TokenKeys(context.Context) []suspend.PartitionKeys { return nil }
func (s *silent) Evicting(context.Context) []engine.EvictionPolicy  { return nil }

// Close takes its time when the server is silent; a second one does nothing.
func (s *silent) Close() {
	s.once.Do(func() {
		s.mu.Lock()
		gone := s.gone
		s.mu.Unlock()
		if gone {
			time.Sleep(driverCloses)
		}
		close(s.closed)
	})
}

// Subscribe ends its subscription on the server before it returns.
func (s *silent) Subscribe(ctx context.Context, _ uint16, _ []string, ready func(),
	_ func(channel, message string)) error {
	ready()
	<-ctx.Done()
	// timed: virtual time
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), driverNotices)
	defer cancel()
	return s.answer(ctx)
}

func (s *silent) ClaimNext(ctx context.Context, q engine.ClaimRequest) (engine.ClaimReply, error) {
	s.mu.Lock()
	if s.gone {
		select {
		case s.hanging <- struct{}{}:
		default:
		}
	}
	s.mu.Unlock()
	if err := s.answer(ctx); err != nil {
		return engine.ClaimReply{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	reply := engine.ClaimReply{Table: 1,
		Routes: []engine.Route{{ID: 1, Namespace: "default", Lane: "default", Kind: "k"}}, Registered: true}
	if q.Subscription != "" && q.Partition == 0 && len(s.work) > 0 {
		n := min(q.Max, len(s.work))
		reply.Claims, s.work = s.work[:n], s.work[n:]
		for i := range reply.Claims {
			f := &reply.Claims[i].Fence
			f.Session, f.Claim = q.Session, q.Number
			s.held = append(s.held, engine.Held{Execution: f.Execution, Claim: f.Claim})
		}
		reply.Registered = false
	}
	return reply, nil
}

func (s *silent) SetSubscription(ctx context.Context, _ uint16, _ engine.Subscription) (string, error) {
	return "aa", s.answer(ctx)
}

func (s *silent) Poll(ctx context.Context, partitions []uint16) ([]engine.PollState, int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.polls = append(s.polls, polled{now, partitions})
	if s.gone {
		s.mu.Unlock()
		defer s.mu.Lock()
		return nil, 0, s.answer(ctx)
	}
	states, workers := make([]engine.PollState, len(partitions)), 0
	for i, p := range partitions {
		since, dead := s.overdue[p]
		_, taken := s.ticks[p]
		states[i] = engine.PollState{Partition: p, TickOverdue: dead && !taken && !now.Before(since)}
		workers += (s.fleet + int(s.count-1-p)) / int(s.count)
	}
	return states, workers, nil
}

func (s *silent) Tick(ctx context.Context, p uint16, _ string, release bool) (engine.TickReply, error) {
	if release && s.hung {
		<-ctx.Done()
		return engine.TickReply{}, flowfabric.ErrTransport
	}
	if err := s.answer(ctx); err != nil {
		return engine.TickReply{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	since, dead := s.overdue[p]
	if _, taken := s.ticks[p]; dead && !taken {
		// timed: virtual time
		if time.Now().Before(since) {
			return engine.TickReply{}, nil // somebody else's
		}
		s.ticks[p] = time.Now()
	}
	return engine.TickReply{Owner: true, Idle: true}, nil
}

// AskTick finds that the owner listens.
func (s *silent) AskTick(ctx context.Context, p uint16, owner string) (engine.TickReply, error) {
	return s.Tick(ctx, p, owner, false)
}

func (s *silent) RenewSession(ctx context.Context, _ uint16, _ string, _ time.Duration,
	_ uint64) (engine.Renewal, error) {
	return engine.Renewal{}, s.answer(ctx)
}

func (s *silent) SessionHeld(ctx context.Context, _ uint16, _ string) ([]engine.Held, error) {
	if err := s.answer(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.held), nil
}

// ReadExecution is asked about what a session holds and nobody runs. It says that another session has it by now, so
// that it is left alone.
func (s *silent) ReadExecution(ctx context.Context, id flowfabric.ExecutionID) (engine.Snapshot, error) {
	return engine.Snapshot{Snapshot: flowfabric.Snapshot{ID: id}}, s.answer(ctx)
}

// settled forgets an execution that was handed out.
func (s *silent) settled(id flowfabric.ExecutionID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = slices.DeleteFunc(s.held, func(h engine.Held) bool { return h.Execution == id })
}

func (s *silent) CloseSession(ctx context.Context, _ uint16, _ string) error { return s.answer(ctx) }

func (s *silent) ReleaseExecution(ctx context.Context, f flowfabric.Fence) (bool, error) {
	err := s.answer(ctx)
	if err == nil {
		s.settled(f.Execution)
	}
	return false, err
}

func (s *silent) CompleteExecutions(
	ctx context.Context, _ uint16, items []engine.Completion, _ *engine.ClaimRequest,
) ([]engine.Settled, *engine.ClaimReply, error) {
	err := s.answer(ctx)
	for _, x := range items {
		if err == nil {
			s.settled(x.Fence.Execution)
		}
	}
	return make([]engine.Settled, len(items)), nil, err
}

func (s *silent) PutSchemas(ctx context.Context, _ string, _ map[string]kindschema.Pair) error {
	return s.answer(ctx)
}

func (s *silent) NoteTimes(ctx context.Context, _, _ string, _ uint64, _ []engine.Times) error {
	return s.answer(ctx)
}

func (s *silent) RegisterWorker(ctx context.Context, q engine.Registration) (engine.Registered, error) {
	if err := s.answer(ctx); err != nil {
		return engine.Registered{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case s.enrolled <- q:
	default:
	}
	if s.noting != nil {
		return engine.Registered{}, s.noting
	}
	now, old := time.Now(), s.names[q.Instance]
	alive := old.expires.After(now)
	if alive && old.token != q.Token {
		return engine.Registered{}, denied.New("ff_register_worker", "instance_in_use",
			strconv.FormatInt(old.expires.UnixMilli(), 10), strconv.FormatInt(old.expires.Sub(now).Milliseconds(), 10))
	}
	s.names[q.Instance] = enrolled{q.Token, now.Add(q.TTL)}
	return engine.Registered{Renewed: alive, ExpiresAt: now.Add(q.TTL)}, nil
}

func (s *silent) LeaveWorker(ctx context.Context, instance, token string) (bool, error) {
	if err := s.answer(ctx); err != nil {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.names[instance].token != token {
		return true, nil
	}
	delete(s.names, instance)
	return false, nil
}

// called is the oldest registration that no test has looked at; empty when there is none.
func (s *silent) called() (q engine.Registration) {
	select {
	case q = <-s.enrolled:
	default:
	}
	return q
}

// enrol registers another process under a name, as if it were there for a ttl from now.
func (s *silent) enrol(instance, token string, ttl time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.names[instance] = enrolled{token, time.Now().Add(ttl)}
}

// owner is whose a name is now.
func (s *silent) owner(instance string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.names[instance]; e.expires.After(time.Now()) {
		return e.token
	}
	return ""
}

// note lets the registry answer err, or work again.
func (s *silent) note(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noting = err
}

// worker is a worker on the silent store; handle is its only handler.
func (s *silent) worker(cfg Config, handle func(ctx context.Context) error) *Worker {
	cfg.URL = "redis://silent"
	cfg.Logger = cmp.Or(cfg.Logger, quiet)
	w, err := New(cfg, handler.Bind(handler.Define[string, string]("k"),
		func(ctx context.Context, _ *handler.Task, _ string) (string, error) {
			return "", handle(ctx)
		}))
	if err != nil {
		panic(err)
	}
	w.open = func(context.Context, Config) (store, func(), error) { return s, s.Close, nil }
	return w
}
