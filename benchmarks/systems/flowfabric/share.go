package flowfabric

import (
	"context"
	"fmt"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/benchmarks/driver"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/internal/limits"
)

// SubmitFor implements [driver.Sharer]: a tenant is a namespace.
func (s *store) SubmitFor(ctx context.Context, tenant string, priority int, payloads [][]byte) error {
	_, err := client.SubmitMany(ctx, s.client, definition, payloads, flowfabric.Namespace(tenant),
		flowfabric.Priority(priority))
	return err
}

// Weigh implements [driver.Sharer].
func (s *store) Weigh(ctx context.Context, tenant string, weight int) error {
	return admin.New(s.client).SetLane(ctx, limits.DefaultLane, admin.LaneChange{Namespace: tenant, Weight: &weight})
}

// Age implements [driver.Sharer].
func (s *store) Age(ctx context.Context, tenant string, step time.Duration) error {
	return admin.New(s.client).SetLane(ctx, limits.DefaultLane,
		admin.LaneChange{Namespace: tenant, Ageing: (*flowfabric.Millis)(&step)})
}

// WorkForAll implements [driver.Sharer].
func (s *store) WorkForAll(ctx context.Context, w driver.Worker) (stop func() error, err error) {
	return s.work(ctx, w, handling(w), "*")
}

// Gate implements [driver.Gater].
func (s *store) Gate(ctx context.Context, budgets, quotas []string) error {
	for _, name := range budgets {
		limits := map[string]admission.Limit{"uses": {Hard: 1 << 50}}
		if err := admin.New(s.client).PutBudget(ctx, admission.Budget{Name: name, Limits: limits}, 0); err != nil {
			return err
		}
	}
	for _, name := range quotas {
		if err := admin.New(s.client).PutQuota(ctx, admission.Quota{Name: name, Cap: 100_000}, 0); err != nil {
			return err
		}
	}
	return nil
}

// SubmitGated implements [driver.Gater].
func (s *store) SubmitGated(ctx context.Context, budgets, quotas []string, payloads [][]byte) error {
	_, err := client.SubmitMany(ctx, s.client, definition, payloads, flowfabric.Budgets(budgets...),
		flowfabric.Quotas(quotas...))
	return err
}

// Report implements [driver.Gater].
func (s *store) Report(ctx context.Context, budget, key string) error {
	r, err := admin.New(s.client).ReportUsage(ctx,
		admission.Usage{Budget: budget, Key: key, Amounts: map[string]int64{"uses": 1}})
	if err == nil && !r.Applied {
		err = fmt.Errorf("the report was not applied: %s", r.Verdict)
	}
	return err
}
