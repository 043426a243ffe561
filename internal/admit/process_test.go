package admit_test

import (
	"context"
	"crypto/tls"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/wire"
)

type tlsConfig = tls.Config

func (p *process) ClaimNext(ctx context.Context, req engine.ClaimRequest) (reply engine.ClaimReply, err error) {
	var r engine.ClaimReply
	err = p.around("ClaimNext", func() (e error) { r, e = p.Engine.ClaimNext(ctx, req); return e })
	if err == nil {
		reply = r
	}
	return reply, err
}

func (p *process) Admit(ctx context.Context, name string, at engine.Waiter, ttl time.Duration, look bool,
	holds []engine.Hold) (a engine.Admitted, err error) {
	err = p.around("Admit",
		func() (e error) {
			a, e = p.Engine.Admit(ctx, name, at, ttl, look, holds)
			return e
		})
	return a, err
}

func (p *process) CheckHolds(ctx context.Context, partition uint16,
	holds []engine.Hold) (answers []string, err error) {
	err = p.around("CheckHolds", func() (e error) { answers, e = p.Engine.CheckHolds(ctx, partition, holds); return e })
	return answers, err
}

func (p *process) ClaimGranted(ctx context.Context, partition uint16, session string, number uint64,
	grants []engine.Grant,
	measured []wire.ClaimGrantedRoute) (answers []engine.Answer, claims []engine.Claim, err error) {
	err = p.around("ClaimGranted", func() (e error) {
		answers, claims, e = p.Engine.ClaimGranted(ctx, partition, session, number, grants, measured)
		return e
	})
	return answers, claims, err
}

func (p *process) ReleaseGrants(ctx context.Context, partition uint16, session string, grants []engine.GrantReturn,
	closings []engine.RouteClosing) error {
	return p.around("ReleaseGrants", func() error {
		return p.Engine.ReleaseGrants(ctx, partition, session, grants, closings)
	})
}

func (p *process) OpenRoutes(ctx context.Context, partition uint16, routes []uint64) (waiting []bool, err error) {
	err = p.around("OpenRoutes",
		func() (e error) { waiting, e = p.Engine.OpenRoutes(ctx, partition, routes); return e })
	return waiting, err
}

func (p *process) ReadOutbox(ctx context.Context, partition uint16,
	after string) (entries []engine.OutboxEntry, total int, err error) {
	err = p.around("ReadOutbox",
		func() (e error) { entries, total, e = p.Engine.ReadOutbox(ctx, partition, after); return e })
	return entries, total, err
}

func (p *process) TrimOutbox(ctx context.Context, partition uint16, ids []string) (left int, err error) {
	err = p.around("TrimOutbox", func() (e error) { left, e = p.Engine.TrimOutbox(ctx, partition, ids); return e })
	return left, err
}

func (p *process) SettleGates(ctx context.Context,
	news []engine.News) (done []bool, wake []engine.Waiter, err error) {
	var w []engine.Waiter
	err = p.around("SettleGates", func() (e error) { done, w, e = p.Engine.SettleGates(ctx, news); return e })
	if err == nil {
		wake = w
	}
	return done, wake, err
}

func (p *process) ReportUsage(ctx context.Context, u admission.Usage) (r admission.Reported, err error) {
	err = p.around("ReportUsage", func() (e error) { r, e = p.Engine.ReportUsage(ctx, u); return e })
	return r, err
}

func (p *process) complete(ctx context.Context, fence flowfabric.Fence) error {
	return p.around("CompleteExecutions", func() error {
		settled, _, err := p.CompleteExecutions(ctx, fence.Execution.Partition(), []engine.Completion{{Fence: fence}},
			nil)
		if err == nil {
			err = settled[0].Err
		}
		return err
	})
}

func (p *process) fail(ctx context.Context, fence flowfabric.Fence) error {
	return p.around("FailExecution", func() error {
		_, err := p.FailExecution(ctx, fence, engine.Failure{Category: "test", Permanent: true})
		return err
	})
}
