package source

import (
	"context"
	"log/slog"
	"time"

	"github.com/flowfabric/flowfabric-go/internal/engine"
)

// ListenerConfig says what a listener listens for. Engine, Name and Sources are required.
type ListenerConfig struct {
	Engine Engine
	// Name is who is rung: that of the instance, 1..48 bytes, before the first "~" of its sessions.
	Name string
	// Sources are told of what is heard. It is called for each message, and must be quick.
	Sources func() []*Source
	Logger  *slog.Logger
	// PollEvery is how often a poll is made at most. Default 1 s.
	PollEvery time.Duration
	// Window is how long the process may go without an answer of the server: it polls at least twice as often. Default
	// none.
	Window time.Duration
	// PollIdle has polls made even while no source has room: they are how overdue timers are heard of.
	PollIdle bool

	// These functions are called from the listener's goroutines and must not block. All are optional.

	OnWake    func(what string, n int)                   // "routes", "lost", "timers", "work", "urgent", "forwarded"
	OnConnect func(partition uint16)                     // its doorbell is heard, or heard again
	OnLost    func(partition uint16)                     // leases there were lost: renew, to be told which
	OnTimers  func(partition uint16)                     // an earlier timer was set
	OnPoll    func(answered bool, missed int, err error) // partitions that became hot by it
	OnOverdue func(partition uint16)                     // nobody tends its timers
	// Alert has polls made more often for a while after a partition's timers became overdue: this process can tend
	// them.
	Alert bool
}

// Engine is what a listener asks of the server.
type Engine interface {
	Partitions() uint16
	Cluster() bool
	Subscribe(ctx context.Context, partition uint16, channels []string, ready func(),
		fn func(channel, message string)) error
	Poll(ctx context.Context, partitions []uint16) (states []engine.PollState, workers int, err error)
	ForwardRing(ctx context.Context, partition uint16, subscription string) (heard int, err error)
}

// Listener hears where there is work, for the sources of one process: [Listener.Listen], [Listener.Poll] and
// [Listener.Forward] run at the same time, each until its context ends.
type Listener struct {
	cfg      ListenerConfig
	bell     *doorbell
	polls    *poller
	forwards *forwarder
}

// NewListener makes a listener; it makes no call.
func NewListener(cfg ListenerConfig) *Listener {
	if cfg.PollEvery == 0 {
		cfg.PollEvery = pollEvery
	}
	if cfg.OnWake == nil {
		cfg.OnWake = func(string, int) {}
	}
	if cfg.OnPoll == nil {
		cfg.OnPoll = func(bool, int, error) {}
	}
	for _, f := range []*func(uint16){&cfg.OnConnect, &cfg.OnLost, &cfg.OnTimers, &cfg.OnOverdue} {
		if *f == nil {
			*f = func(uint16) {}
		}
	}
	return &Listener{cfg: cfg, bell: newDoorbell(&cfg), polls: newPoller(&cfg), forwards: newForwarder(&cfg)}
}

// Add has the listener forward the rings that a source cannot follow. The source is among ListenerConfig.Sources.
func (l *Listener) Add(s *Source) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.onOwed = l.forwards.poke
}

// Listen keeps the doorbells' subscriptions alive until ctx ends.
func (l *Listener) Listen(ctx context.Context) { l.bell.listen(ctx) }

// Heard is closed once all doorbells were heard.
func (l *Listener) Heard() <-chan struct{} { return l.bell.first }

// Healthy reports that every doorbell is heard: a ring can be relied on.
func (l *Listener) Healthy() bool { return l.bell.healthy() }

// Poll makes polls until ctx ends.
func (l *Listener) Poll(ctx context.Context) { l.polls.keep(ctx) }

// Late is how many partitions have overdue timers, as heard last.
func (l *Listener) Late() int { return int(l.polls.late.Load()) }

// Forward forwards rings that cannot be followed here, until ctx ends.
func (l *Listener) Forward(ctx context.Context) { l.forwards.keep(ctx) }

// Leave has all rings forwarded from now on: nothing more is claimed here.
func (l *Listener) Leave() { l.forwards.leave() }

// Recheck has rings forwarded that may have lost the room that they were kept for.
func (l *Listener) Recheck() { l.forwards.poke() }
