package conformance

import (
	"errors"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/trail"
)

var cancelScenarios = []scenario{
	{name: "a cancellation ends an execution in every state", run: func(w *env) {
		for _, code := range reachable {
			if code[0] == 'T' {
				continue
			}
			w.reset()
			x := w.state(code)
			w.cancel(x.id)
			want, attempt := codes.Code("T3"), "attempt_terminal"
			if x.worker == nil {
				want, attempt = "T3n", "none"
			}
			s := w.code(x.id, want)
			w.all(string(code), eq(s.State.Public, flowfabric.Cancelled), eq(s.Phase().AttemptState, attempt),
				eq(s.CancelledBy, ""), eq(s.CancelSource, engine.CancelOperator), eq(s.CancelReason, "told to"))
			if x.worker == nil {
				continue
			}
			last := s.AttemptLog[len(s.AttemptLog)-1]
			ended := "ended_cancelled"
			switch code {
			case "R1t", "R2b", "R1p":
				ended = "ended_failure" // its attempt was over before
			case "A3", "R1r", "R2r":
				ended = "interrupted_reclaimed"
			}
			same(w, string(code)+" attempt", last.State, ended)
			m, err := w.e.ReadAttemptStream(w.ctx, x.id, 1)
			w.no(err)
			same(w, string(code)+" stream", m.Closed, true)
			same(w, string(code)+" claimable", len(w.worker("w2").claim(10)), 0)
		}
	}},
	{name: "a cancellation needs the holder's fence or an operator, and is refused after the end", run: func(w *env) {
		x := w.state("A1")
		owner := func(f *flowfabric.Fence) error {
			_, err := w.e.CancelExecution(trail.As(w.ctx, "anna", "r"), x.id,
				engine.Cancellation{Source: engine.CancelOwner, Fence: f})
			return err
		}
		w.unchanged("no fence", func() { w.is(owner(nil), denied.FenceRequired) })
		stale := x.fence
		stale.Epoch--
		w.unchanged("a stale fence", func() { w.is(owner(&stale), denied.StaleLease) })
		partial := append([]string{proto}, fenceArgs(x.fence)...)
		for i := 2; i < 6; i++ {
			args := append([]string{}, partial...)
			args[i] = ""
			for _, source := range []string{"owner", "operator_override"} {
				w.unchanged("a partial fence", func() {
					same(w, "code", w.fcall("ff_cancel_execution", append(args, source)...).code,
						"partial_fence")
				})
			}
		}
		for _, source := range []string{"", "system", "OWNER"} {
			w.unchanged("a source "+source, func() {
				_, err := w.e.CancelExecution(w.ctx, x.id, engine.Cancellation{Source: source})
				w.is(err, flowfabric.ErrInvalidInput)
			})
		}
		w.reset()
		x = w.state("A2")
		w.unchanged("a lapsed owner", func() { w.is(owner(&x.fence), denied.LeaseExpired) })
		w.cancel(x.id) // the operator may
		w.reset()
		x = w.state("A1")
		w.no(owner(&x.fence))
		w.check()
		s := w.code(x.id, "T3")
		w.all("by", eq(s.CancelledBy, ""), eq(s.CancelSource, engine.CancelOwner), eq(s.Worker, "w1"))
		w.unchanged("again", func() {
			already, err := w.e.CancelExecution(w.ctx, x.id,
				engine.Cancellation{Source: engine.CancelOwner, Fence: &x.fence})
			w.no(err)
			same(w, "already", already, true)
			already, err = w.e.CancelExecution(w.ctx, x.id, engine.Cancellation{Source: engine.CancelOperator})
			w.no(err)
			same(w, "already", already, true)
		})
		for _, code := range []codes.Code{"T1", "T2", "T4", "T4n"} {
			w.reset()
			x = w.state(code)
			w.unchanged("an ended one", func() {
				_, err := w.e.CancelExecution(w.ctx, x.id, engine.Cancellation{Source: engine.CancelOperator})
				w.is(err, denied.NotActive)
				coded, _ := errors.AsType[*flowfabric.Error](err)
				same(w, "slot", denied.Slot(coded, 0), string(code))
			})
		}
		w.unchanged("an unknown one", func() {
			_, err := w.e.CancelExecution(w.ctx, mint.ID(w.p),
				engine.Cancellation{Source: engine.CancelOperator})
			w.is(err, flowfabric.ErrNotFound)
		})
	}},
	{name: "each end of an attempt or execution is published once on its channel", run: func(w *env) {
		x := w.create(retries(1))
		ear := w.listen(engine.EventChannel(x))
		k := w.worker("w1")
		f := k.one(x).Fence
		ear.silent()
		w.fail(f, "x")
		ear.hears("R2b 1")
		w.advance(limits.DefaultLeaseTTL)
		w.settleTime()
		ear.silent() // becoming claimable is no end of an attempt
		k = w.worker("w2")
		f = k.one(x).Fence
		w.release(f)
		ear.hears("R1i 2")
		k.one(x)
		w.advance(ttl)
		w.settleTime()
		ear.hears("R1r 2")
		f = w.worker("w3").one(x).Fence
		w.complete(f, "")
		ear.hears("T1 3")
		w.complete(f, "")
		ear.silent()
		n := w.create()
		other := w.listen(engine.EventChannel(n))
		_, err := w.e.CancelExecution(w.ctx, n, engine.Cancellation{Source: engine.CancelFlow})
		w.no(err)
		other.hears("T3n ")
	}},
}
