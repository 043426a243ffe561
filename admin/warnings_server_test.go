package admin_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
)

// Who pauses a lane that nobody has, which may be a slip, is told; so is who crosses a soft limit from outside of
// executions.
func TestWarningsOfAClient(t *testing.T) {
	ctx, cancel := testwait.Context(t, t.Context())
	defer cancel()
	var log bytes.Buffer
	c, err := client.Connect(ctx, client.Config{CallTimeout: time.Hour, SubmitTimeout: time.Hour,
		URL: testserver.Embedded(t), Partitions: 2, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	must.No(t, err)
	defer c.Close()
	said := func(do func() error) string {
		log.Reset()
		if err := do(); err != nil {
			t.Error(err)
		}
		return log.String()
	}
	const unknown = "it has no work and no worker serves it"
	if text := said(func() error {
		return admin.New(c).SetLane(ctx, "btach", admin.LaneChange{State: flowfabric.LanePaused})
	}); !strings.Contains(text, unknown) || !strings.Contains(text, "lane=btach") {
		t.Errorf("a lane that nobody has: %q", text)
	}
	submit(ctx, t, c, "batch", flowfabric.Lane("batch"))
	if text := said(func() error {
		return admin.New(c).SetLane(ctx, "batch", admin.LaneChange{State: flowfabric.LanePaused})
	}); text != "" {
		t.Errorf("a lane with work: %q", text)
	}
	if text := said(func() error {
		return admin.New(c).SetLane(ctx, "batch", admin.LaneChange{Namespace: "blue", State: flowfabric.LanePaused})
	}); !strings.Contains(text, unknown) {
		t.Errorf("of another namespace: %q", text)
	}
	if text := said(func() error {
		return admin.New(c).SetLane(ctx, "btach", admin.LaneChange{State: flowfabric.LaneActive})
	}); text != "" {
		t.Errorf("a lane that is active again: %q", text)
	}
	if text := said(func() error {
		return admin.New(c).SetLane(ctx, "later", admin.LaneChange{Retention: everyOutcome(time.Hour)})
	}); text != "" {
		t.Errorf("a retention said in advance: %q", text)
	}
	if err := admin.New(c).PutGate(ctx,
		admission.Gate{Name: "acme", Limits: map[string]admission.Limit{"tokens": {Soft: 5}}}); err != nil {
		t.Fatal(err)
	}
	for i, want := range []bool{false, true, false} { // once a period
		text := said(func() error {
			_, err := admin.New(c).ReportUsage(ctx,
				admission.Usage{Gate: "acme", Key: string(rune('a' + i)), Amounts: map[string]int64{"tokens": 4}})
			return err
		})
		if strings.Contains(text, "above the soft limit of a gate") != want {
			t.Errorf("report %d: %q", i, text)
		}
	}
}
