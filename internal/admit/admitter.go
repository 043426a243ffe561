package admit

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sourcegraph/conc/pool"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/wire"
)

const (
	holdTTL    = 10 * time.Second // a hold is good: as long as a grant, and as long again
	askTimeout = 1500 * time.Millisecond
	// releaseTimeout bounds the call that gives back what does not run, also when the caller has gone.
	releaseTimeout = 2 * time.Second
	// checkTimeout is for all partitions of suspects together: what is certain does not wait for what is not.
	checkTimeout = 200 * time.Millisecond
	silence      = 5 * time.Second // for so long one that did not answer is not asked
	maxRoutes    = 16              // routes of one claim that are asked for at once
	maxAsked     = 64              // gates of one route, with those above them
)

// Engine is what an admitter needs of the server.
type Engine interface {
	Waker
	ClaimNext(ctx context.Context, req engine.ClaimRequest) (engine.ClaimReply, error)
	Admit(ctx context.Context, name string, at engine.Waiter, ttl time.Duration, look bool,
		holds []engine.Hold) (engine.Admitted, error)
	CheckHolds(ctx context.Context, partition uint16, holds []engine.Hold) ([]string, error)
	SettleGates(ctx context.Context, news []engine.News) (done []bool, wake []engine.Waiter, err error)
	ClaimGranted(ctx context.Context, partition uint16, session string, number uint64, grants []engine.Grant,
		measured []wire.ClaimGrantedRoute) ([]engine.Answer, []engine.Claim, error)
	ReleaseGrants(ctx context.Context, partition uint16, session string, grants []engine.GrantReturn,
		closings []engine.RouteClosing) error
}

// Config says whom an admitter asks. Engine is required.
type Config struct {
	Engine Engine
	// Logger receives what was granted and could not be given back, which comes back by itself. Default slog.Default().
	Logger *slog.Logger
	// OnAsked is told of every claim that was granted something: how many, how many of them run, and how long asking
	// took.
	OnAsked func(granted, admitted int, took time.Duration)
	// OnRefused is told of every route that was closed, why, and for how many grants. It is called from several
	// goroutines. Neither may block. Default: nobody is told.
	OnRefused func(r Refusal, grants int)
}

// Admitter claims work for a worker, and asks the gates of what has some. Nothing that a gate refuses, or that could
// not be asked, is claimed. Safe for concurrent use, but for claims of one partition, which come one after another.
type Admitter struct {
	cfg    Config
	grants grants
	silent silent
}

// New builds an admitter; it makes no call before the first claim.
func New(cfg Config) *Admitter {
	cfg.Logger = cmp.Or(cfg.Logger, slog.Default())
	if cfg.OnAsked == nil {
		cfg.OnAsked = func(int, int, time.Duration) {}
	}
	if cfg.OnRefused == nil {
		cfg.OnRefused = func(Refusal, int) {}
	}
	return &Admitter{cfg: cfg, grants: grants{by: map[uint16]int{}}, silent: silent{until: map[uint16]time.Time{}}}
}

// ClaimNext is the engine's, with the gates asked: Claims has what was granted and may run, Grants is empty. After an
// error of unknown outcome the number is repeated as ever, and answers what was granted as well. A repeat that asks
// for no work (no Subscription) gives grants back unasked. Reply.More is set when something was refused: the next
// claim finds the routes that are open.
func (g *Admitter) ClaimNext(ctx context.Context, req engine.ClaimRequest) (engine.ClaimReply, error) {
	req.Gates, req.MaxGrants = true, g.grants.most(req.Partition)
	reply, err := g.cfg.Engine.ClaimNext(ctx, req)
	if err != nil {
		return reply, err
	}
	if len(reply.Grants) == 0 {
		return reply, nil
	}
	began := time.Now()
	p := g.pass(req, reply)
	if req.Subscription == "" {
		p.giveUp()
	} else {
		p.ask(ctx)
	}
	claims, err := p.settle(ctx)
	if err != nil {
		return engine.ClaimReply{}, err
	}
	g.grants.passed(req.Partition, len(reply.Grants), len(claims))
	g.cfg.OnAsked(len(reply.Grants), len(claims), time.Since(began))
	reply.More = reply.More || len(claims) < len(reply.Grants)
	reply.Claims, reply.Grants, reply.Granted = append(reply.Claims, claims...), nil, true
	return reply, nil
}

// pass is what one claim was granted, on its way through the gates.
type pass struct {
	*Admitter
	req      engine.ClaimRequest
	repeated bool // gates may have admitted some of it before
	routes   []*routePass
}

// routePass are the grants of one route: those that may run, in order, and those that go back.
type routePass struct {
	id       uint64
	gates    []flowfabric.Gate
	known    bool
	wakes    uint64 // when it was granted: who was woken since stays open
	admitted []engine.Grant
	back     []engine.GrantReturn
	refusal  Refusal
	measured []string // what its gates said they measure, as "name=letters"
}

func (g *Admitter) pass(req engine.ClaimRequest, reply engine.ClaimReply) *pass {
	p := &pass{Admitter: g, req: req, repeated: reply.Duplicate}
	rows := map[uint64]engine.Route{}
	for _, row := range reply.Others {
		rows[row.ID] = row
	}
	by := map[uint64]*routePass{}
	for _, x := range reply.Grants {
		r := by[x.Route]
		if r == nil {
			row, known := rows[x.Route]
			r = &routePass{id: x.Route, wakes: x.Wakes, gates: row.Gates, known: known}
			by[x.Route] = r
			p.routes = append(p.routes, r)
		}
		r.admitted = append(r.admitted, x)
	}
	return p
}

func (p *pass) giveUp() {
	for _, r := range p.routes {
		r.refuse(0, true)
	}
}

// ask asks the gates of all routes.
func (p *pass) ask(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	asking := pool.New().WithMaxGoroutines(maxRoutes)
	for _, r := range p.routes {
		asking.Go(func() { p.askFor(ctx, r) })
	}
	asking.Wait()
}

// settle claims what was admitted, and gives the rest back. An error leaves everything to a repeat of the claim.
func (p *pass) settle(ctx context.Context) ([]engine.Claim, error) {
	var run []engine.Grant
	var measured []wire.ClaimGrantedRoute
	for _, r := range p.routes {
		run = append(run, r.admitted...)
		if len(r.admitted) > 0 {
			measured = append(measured, wire.ClaimGrantedRoute{Route: int(r.id), Meters: strings.Join(r.measured, ",")})
		}
	}
	var claims []engine.Claim
	if len(run) > 0 {
		answers, list, err := p.cfg.Engine.ClaimGranted(ctx, p.req.Partition, p.req.Session, p.req.Number, run,
			measured)
		if err != nil {
			return nil, err
		}
		claims = list
		p.woken(claims)
		p.lost(run, answers)
	}
	if err := p.release(ctx); err != nil {
		if len(claims) == 0 {
			return nil, err
		}
		p.cfg.Logger.Warn("flowfabric: work that gates refused was not released; its grant expires", "partition",
			p.req.Partition, "within", "5s", "error", err)
	}
	return claims, nil
}

// woken notes with claims how often their routes had been woken.
func (p *pass) woken(claims []engine.Claim) {
	for i := range claims {
		for _, r := range p.routes {
			if r.id == claims[i].Route {
				claims[i].Wakes = r.wakes
			}
		}
	}
}

// lost has the holds released of what was taken back meanwhile.
func (p *pass) lost(run []engine.Grant, answers []engine.Answer) {
	for i, a := range answers {
		if a.Err == nil {
			continue
		}
		for _, r := range p.routes {
			if r.id == run[i].Route {
				r.back = append(r.back, engine.GrantReturn{Grant: run[i], Reserved: true})
			}
		}
	}
}

// release gives back what does not run and closes routes, then asks again whether that is still right: a process that
// makes room between a refusal and the closing wakes nobody.
func (p *pass) release(ctx context.Context) error {
	var back []engine.GrantReturn
	var closings []engine.RouteClosing
	for _, r := range p.routes {
		back = append(back, r.back...)
		if r.refusal.For > 0 {
			closings = append(closings, engine.RouteClosing{Route: r.id, For: r.refusal.For, Why: r.refusal.Text(),
				Wakes: r.wakes})
			p.cfg.OnRefused(r.refusal, len(r.back))
		}
	}
	if len(back) == 0 {
		return nil
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	if err := p.cfg.Engine.ReleaseGrants(last, p.req.Partition, p.req.Session, back, closings); err != nil {
		return err
	}
	if ctx.Err() == nil {
		p.reconsider(last)
	}
	return nil
}

// reconsider opens routes again that were closed for want of room, if there is some now.
func (p *pass) reconsider(ctx context.Context) {
	var open []uint64
	for _, r := range p.routes {
		if r.refusal.For > 0 && p.roomNow(ctx, r) {
			open = append(open, r.id)
		}
	}
	if len(open) > 0 {
		_, _ = p.cfg.Engine.OpenRoutes(ctx, p.req.Partition, open) // else they open by themselves
	}
}

func (p *pass) roomNow(ctx context.Context, r *routePass) bool {
	if r.refusal.Kind != RefusedAmount && r.refusal.Kind != RefusedCap {
		return false // a window has room by time alone: then comes who was told so
	}
	back := make([]engine.Hold, len(r.back)) // the first one that was refused in front
	for i, x := range r.back {
		back[i] = engine.Hold{Execution: x.Execution, Epoch: x.Epoch}
	}
	a, err := p.cfg.Engine.Admit(ctx, r.refusal.Gate.Name(), engine.Waiter{Partition: p.req.Partition, Route: r.id},
		holdTTL, true, back)
	return err == nil && a.Why == ""
}

// refuse gives back all but the first n that had been admitted so far.
func (r *routePass) refuse(n int, reserved bool) {
	for _, x := range r.admitted[n:] {
		r.back = append(r.back, engine.GrantReturn{Grant: x, Reserved: reserved})
	}
	r.admitted = r.admitted[:n]
}

// close gives all but n back and remembers why. What refused last is what the others wait for, too.
func (r *routePass) close(n int, reserved bool, why Refusal) {
	r.refuse(n, reserved)
	why.For = min(why.For, longestPause)
	r.refusal = why
}

// askFor asks the gates of one route, in the order of names, then those above them, limits of keys last: who is refused
// for an amount has taken no slot then.
func (p *pass) askFor(ctx context.Context, r *routePass) {
	if !r.known {
		r.close(0, p.repeated, Refusal{Kind: RefusedUnknown, For: errorPause})
		return
	}
	reserved := p.repeated
	gates, named := slices.Clone(r.gates), 0
	slices.SortStableFunc(gates, func(a, b flowfabric.Gate) int { return cmp.Compare(rank(a), rank(b)) })
	for named < len(gates) && !isLimit(gates[named]) {
		named++
	}
	for i := 0; i < len(gates) && len(r.admitted) > 0; i++ {
		a := p.admit(ctx, r, gates[i])
		if a.parent != "" && !slices.Contains(gates, a.parent) && len(gates) < maxAsked {
			gates = slices.Insert(gates, named, a.parent)
			named++
		}
		if a.count < len(r.admitted) {
			r.close(a.count, reserved || a.perhaps, a.why)
		}
		reserved = reserved || a.held
	}
}

// rank puts limits of keys behind gates by name.
func rank(gate flowfabric.Gate) int {
	if isLimit(gate) {
		return 1
	}
	return 0
}

func isLimit(gate flowfabric.Gate) bool {
	_, _, limit := gate.Limit()
	return limit
}

// admission is what a gate says to the grants of a route.
type admission struct {
	count   int             // so many may go on
	held    bool            // it holds something of them
	perhaps bool            // it perhaps holds something of the others
	parent  flowfabric.Gate // the one above it
	why     Refusal
}

// admit asks one gate, and once more if suspects turned out to be gone.
func (p *pass) admit(ctx context.Context, r *routePass, gate flowfabric.Gate) admission {
	holds := make([]engine.Hold, len(r.admitted))
	for i, x := range r.admitted {
		holds[i] = engine.Hold{Execution: x.Execution, Epoch: x.Epoch}
	}
	ask := func() (engine.Admitted, error) {
		return p.cfg.Engine.Admit(ctx, gate.Name(), engine.Waiter{Partition: p.req.Partition, Route: r.id}, holdTTL,
			false, holds)
	}
	a, err := ask()
	first := a.Count
	if err == nil && len(a.Suspects) > 0 {
		if freed := p.clear(ctx, gate.Name(), a.Suspects); freed {
			a, err = ask()
		}
	}
	if err != nil {
		why := failed(ctx, gate, err)
		return admission{held: true, perhaps: why.Kind != RefusedNotFound, why: why}
	}
	if !isLimit(gate) {
		r.measured = append(r.measured, gate.Name()+"="+a.Meters)
	}
	out := admission{count: a.Count, held: strings.Contains(a.Meters, "h"), parent: flowfabric.Gate(a.Parent)}
	if a.Count < len(holds) {
		out.perhaps, out.why = a.Count < first, full(gate, a)
	}
	return out
}

// clear asks the partitions of suspects whether they are still held, tells the gate, and wakes who waits for what
// that frees. A partition that does not answer in time leaves its suspects as they are.
func (p *pass) clear(ctx context.Context, gate string, suspects []string) (freed bool) {
	by := map[uint16][]engine.Hold{}
	for _, text := range suspects {
		if h, err := engine.ParseHold(text); err == nil && !p.silent.is(h.Execution.Partition()) {
			by[h.Execution.Partition()] = append(by[h.Execution.Partition()], h)
		}
	}
	news := p.checkHolds(ctx, gate, by)
	if len(news) == 0 {
		return false
	}
	done, waiters, err := p.cfg.Engine.SettleGates(ctx, news)
	if err != nil {
		return false
	}
	_, _ = wake(ctx, p.cfg.Engine, waiters) // else they open by themselves
	return slices.Contains(done, true)
}

// checkHolds asks all partitions at once.
func (p *pass) checkHolds(ctx context.Context, gate string, by map[uint16][]engine.Hold) (news []engine.News) {
	timed, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	var mu sync.Mutex
	asking := pool.New()
	for partition, holds := range by {
		asking.Go(func() {
			answers, err := p.cfg.Engine.CheckHolds(timed, partition, holds)
			if err != nil || len(answers) != len(holds) {
				if ctx.Err() == nil {
					p.silent.note(partition)
				}
				return
			}
			mu.Lock()
			defer mu.Unlock()
			for i, h := range holds {
				news = append(news, engine.News{Gate: gate, Execution: h.Execution, Epoch: h.Epoch, What: answers[i]})
			}
		})
	}
	asking.Wait()
	return news
}

// failed is a gate that is not there, or could not be asked: nothing runs. That the caller went away closes nothing.
func failed(ctx context.Context, gate flowfabric.Gate, err error) Refusal {
	switch {
	case errors.Is(err, denied.NoGate):
		return Refusal{Kind: RefusedNotFound, Gate: gate, For: missingPause}
	case errors.Is(ctx.Err(), context.Canceled):
		return Refusal{}
	}
	return Refusal{Kind: RefusedError, Gate: gate, For: errorPause}
}
