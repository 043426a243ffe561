package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/sourcegraph/conc"
	"github.com/sourcegraph/conc/pool"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/limits"
)

const (
	saveWithin = 10 * time.Second // of the first event that was read, the place is saved
	saveAfter  = 1000             // events
	readAtOnce = 16               // executions
	lookEvery  = 15 * time.Second // at gates
	keepEvery  = 30 * time.Second // the relay is looked after
	again      = 5 * time.Second  // after trouble
	keepRelay  = 30 * 24 * time.Hour
)

// place is how far the relay has come: the input of its execution.
type place struct {
	Cursor string `json:"cursor"` // of the feed; "" is from now on
}

var relay = handler.Define[place, struct{}]("ff.webhook.relay", flowfabric.Retries(1000), handler.MaxReclaims(10_000),
	flowfabric.Priority(limits.MaxPriority), handler.MaxReplays(1000), handler.NoSchema(),
	flowfabric.Retention(keepRelay))

// Config holds what webhooks need.
type Config struct {
	Endpoints Endpoints
	Admin     *admin.Admin
	Logger    *slog.Logger
	// Stop ends when the process is to stop: the relay then saves its place at once.
	Stop context.Context
}

// Webhooks relays events to endpoints, and delivers. Make it with [New]; it is safe for concurrent use.
type Webhooks struct {
	Config
	endpoints Endpoints
	client    *client.Client
	def       *handler.Definition[Delivery, Receipt]
	every     time.Duration // a look at gates
	most      int           // events until the place is saved
}

// New makes webhooks.
func New(cfg Config) *Webhooks {
	return &Webhooks{Config: cfg, endpoints: cfg.Endpoints, client: cfg.Admin.Client(), def: deliveries(retry),
		every: lookEvery, most: saveAfter}
}

// Bindings are for a worker of [Namespace] that has the capabilities of the endpoints.
func (w *Webhooks) Bindings() []handler.Binding {
	return []handler.Binding{handler.Bind(relay, w.relay), handler.Bind(w.def, w.deliver)}
}

// Keep looks after the relay until ctx ends: there is one, and it has not ended.
func (w *Webhooks) Keep(ctx context.Context) error {
	for {
		if err := w.keep(ctx); err != nil && ctx.Err() == nil {
			w.Logger.Error("flowfabric: webhooks: the relay cannot be looked after", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(keepEvery):
		}
	}
}

// keep submits the relay, which there is under its key. One that has ended goes on where it was.
func (w *Webhooks) keep(ctx context.Context) error {
	x, err := client.Submit(ctx, w.client, relay, place{}, flowfabric.Namespace(Namespace),
		flowfabric.IdempotencyKey("relay"))
	if err != nil || !x.Duplicate() {
		return err
	}
	s, err := x.Get(ctx)
	if err != nil || s.EndedAt.IsZero() {
		return err
	}
	w.Logger.Warn("flowfabric: webhooks: the relay had ended and is replayed", "execution", x.ID().String(), "state",
		string(s.State.Public))
	return w.Admin.Replay(ctx, x.ID(), admin.Replay{Force: true})
}

// relay is the handler of the relay: it reads on from its place, until it is time to save the new one.
func (w *Webhooks) relay(ctx context.Context, t *handler.Task, from place) (struct{}, error) {
	feed, err := w.Admin.Subscribe(ctx, admin.SubscribeOptions{Ends: true, Leases: w.endpoints.wanted(typeWaiting),
		From: from.Cursor})
	if from.Cursor != "" && errors.Is(err, flowfabric.ErrInvalidInput) {
		t.Logger().Error("webhooks: the place in the feed is of another store; events may be missing", "error", err)
		return struct{}{}, handler.Continue(place{})
	}
	if err != nil {
		return struct{}{}, w.later(ctx, t, err)
	}
	if from.Cursor == "" { // what happens from now on is not to be missed
		return struct{}{}, handler.Continue(place{feed.Cursor()})
	}
	if err := w.window(ctx, t, feed); err != nil {
		return struct{}{}, w.later(ctx, t, err)
	}
	return struct{}{}, handler.Continue(place{feed.Cursor()})
}

// later tries again from the same place.
func (w *Webhooks) later(ctx context.Context, t *handler.Task, err error) error {
	if ctx.Err() != nil {
		return err
	}
	t.Logger().Warn("webhooks: trouble, the relay tries again from the same place", "error", err)
	return handler.Delay(again)
}

// window relays what the feed tells until its place should be saved: soon after the first event, or when the process
// stops. It returns when all deliveries of these events are stored.
func (w *Webhooks) window(ctx context.Context, t *handler.Task, feed *admin.Subscription) error {
	open, shut := context.WithCancel(ctx)
	defer shut()
	defer context.AfterFunc(w.Stop, shut)()
	work := pool.New().WithErrors().WithFirstError().WithMaxGoroutines(readAtOnce)
	var looking conc.WaitGroup
	if w.endpoints.wanted(typeExhausted) {
		looking.Go(func() { w.watchGates(open, t) })
	}
	defer looking.Wait()
	defer shut()
	n := 0
	for e, err := range feed.Events(open) {
		switch {
		case errors.Is(err, flowfabric.ErrFeedGap), errors.Is(err, flowfabric.ErrCorrupt):
			t.Logger().Error("webhooks: events are missing", "error", err)
			continue
		case open.Err() != nil && err != nil:
			return work.Wait()
		case err != nil:
			return errors.Join(work.Wait(), err)
		}
		if n++; n == 1 {
			defer time.AfterFunc(saveWithin, shut).Stop()
		} else if n == w.most {
			shut()
		}
		if e.Kind == "end" || e.State == flowfabric.Suspended {
			work.Go(func() error { return w.tell(ctx, e) })
		}
	}
	return work.Wait()
}

// tell submits the deliveries of one event.
func (w *Webhooks) tell(ctx context.Context, e flowfabric.FeedEvent) error {
	h, err := w.read(ctx, e)
	if h == nil || err != nil {
		return err
	}
	for _, endpoint := range w.endpoints {
		if !endpoint.wants(h.event, h.snap) {
			continue
		}
		said := h.said
		if endpoint.Details {
			h.details(&said)
		}
		if err := w.submit(ctx, endpoint, h.id, message{h.event, h.at, said}, flowfabric.Tags(map[string]string{
			"webhook.endpoint": endpoint.name, "webhook.event": h.event, "webhook.execution": said.ID.String(),
			"webhook.namespace": said.Namespace})); err != nil {
			return err
		}
	}
	return nil
}

// read reads what there is to say of an event; nil is nothing: it is about our own work, the execution is purged, or
// the wait is over or asks nobody.
func (w *Webhooks) read(ctx context.Context, e flowfabric.FeedEvent) (*happening, error) {
	x := w.client.Execution(e.Execution)
	s, err := x.Get(ctx)
	if err != nil || s.Namespace == Namespace {
		return nil, unlessGone(err)
	}
	if e.Kind == "end" {
		return ended(e, &s), nil
	}
	r, err := x.Suspension(ctx)
	if err != nil || !asks(e, &r) {
		return nil, unlessGone(err)
	}
	return waiting(e, &s, &r), nil
}

func unlessGone(err error) error {
	if errors.Is(err, denied.NoExecution) || errors.Is(err, flowfabric.ErrResultPurged) {
		return nil
	}
	return err
}

// submit stores one delivery. One that is there under the key says the same, or said it first.
func (w *Webhooks) submit(ctx context.Context, e *endpoint, event string, m message,
	opts ...client.SubmitOption) error {
	body, err := json.Marshal(m)
	if err != nil {
		return err
	}
	d := Delivery{Endpoint: e.name, ID: idOf(event, e.name), Body: body}
	d.Seal = seal(e.secrets[0], d)
	_, err = client.Submit(ctx, w.client, w.def, d, append([]client.SubmitOption{flowfabric.Namespace(Namespace),
		flowfabric.Key{Text: d.ID, Window: w.remembered(m)}, flowfabric.Capabilities(capability(e.name)),
		flowfabric.LimitKey(capability(e.name), flowfabric.Limit{Concurrency: atOnce})}, opts...)...)
	if errors.Is(err, flowfabric.ErrConflict) {
		return nil
	}
	return err
}

// remembered is for how long the same event makes no other delivery: a budget that is used up is seen again and again
// until its period ends.
func (w *Webhooks) remembered(m message) time.Duration {
	const year = 365 * 24 * time.Hour
	b, ok := m.Data.(budget)
	switch {
	case !ok:
		return 24 * time.Hour // as long as the feed is kept
	case b.NextReset.IsZero():
		return year
	}
	return min(max(b.NextReset.Sub(m.At).Truncate(time.Millisecond), 0)+time.Hour, year)
}

// watchGates looks at budgets now and then: the feed does not tell of them.
func (w *Webhooks) watchGates(ctx context.Context, t *handler.Task) {
	for {
		if err := w.lookAtGates(ctx); err != nil && ctx.Err() == nil {
			t.Logger().Warn("webhooks: budgets cannot be read", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(w.every):
		}
	}
}

func (w *Webhooks) lookAtGates(ctx context.Context) error {
	gates, err := w.Admin.Gates(ctx)
	if err != nil {
		return err
	}
	now := time.Now()
	for _, g := range gates {
		for _, dimension := range g.Exhausted {
			id, m := exhausted(&g, dimension, now)
			for _, e := range w.endpoints {
				if !slices.Contains(e.Events, typeExhausted) || !passes(e.Gates, g.Name) {
					continue
				}
				if err := w.submit(ctx, e, id, m, flowfabric.Tags(map[string]string{"webhook.endpoint": e.name,
					"webhook.event": typeExhausted, "webhook.gate": g.Name})); err != nil {
					return fmt.Errorf("gate %s: %w", g.Name, err)
				}
			}
		}
	}
	return nil
}
