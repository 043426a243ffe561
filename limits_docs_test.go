package flowfabric_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	ff "github.com/flowfabric/flowfabric-go"
)

// The page of limits says what the code says, line by line.
func TestLimitsDocs(t *testing.T) {
	text, err := os.ReadFile("docs/limits.md")
	if err != nil {
		t.Fatal(err)
	}
	bytes := func(n int) string {
		switch {
		case n%(1<<20) == 0:
			return fmt.Sprintf("%d MiB", n>>20)
		case n%(1<<10) == 0:
			return fmt.Sprintf("%d KiB", n>>10)
		}
		return fmt.Sprintf("%d bytes", n)
	}
	const day = 24 * time.Hour
	want := map[string]string{
		"input or result of an execution": bytes(ff.MaxPayload), "tags of an execution": fmt.Sprint(ff.MaxTags),
		"key of a tag": bytes(ff.MaxTagKey), "value of a tag": bytes(ff.MaxTagValue), "name of a namespace, lane, kind or worker": bytes(ff.MaxName),
		"idempotency key":                       bytes(ff.MaxIdempotencyKey),
		"required capabilities of an execution": fmt.Sprint(ff.MaxCapabilities), "required capabilities, joined": bytes(ff.MaxCapabilityBytes),
		"priority":                            fmt.Sprintf("0 to %d", ff.MaxPriority),
		"delay, deadline, timeout, retention": fmt.Sprintf("%d years", int(ff.MaxDelay/(365*day))),
		"pause between retries":               fmt.Sprintf("%d days", int(ff.MaxBackoff/day)),
		"lease time":                          fmt.Sprintf("%.0f s to %.0f h", ff.MinLeaseTTL.Seconds(), ff.MaxLeaseTTL.Hours()),
		"steps of an execution":               fmt.Sprint(ff.MaxSteps),
		"value of a step":                     bytes(ff.MaxStepBytes),
		"values of all steps of an execution": bytes(ff.MaxStepTotal),
		"frame":                               bytes(ff.MaxFrame),
		"frames kept per attempt, unless set otherwise": fmt.Sprint(ff.DefaultRetention),
		"summary document":                  bytes(ff.MaxSummary),
		"levels of a summary document":      fmt.Sprint(ff.MaxSummaryDepth),
		"payload of a signal":               bytes(ff.MaxSignal),
		"open waitpoints of an execution":   fmt.Sprint(ff.MaxOpenWaitpoints),
		"waitpoints of one wait":            fmt.Sprint(ff.MaxBoundWaitpoints),
		"signals buffered for an execution": fmt.Sprint(ff.MaxBufferedSignals),
		"nodes of a flow":                   fmt.Sprint(ff.MaxFlowMembers),
		"dependencies of a flow":            fmt.Sprint(ff.MaxFlowEdges),
		"budgets of an execution":           fmt.Sprint(ff.MaxBudgets),
		"quotas of an execution":            fmt.Sprint(ff.MaxQuotas),
		"dimensions of a budget":            fmt.Sprint(ff.MaxDimensions),
		"definition of a schedule":          bytes(ff.MaxSchedule),
		"executions of one call":            fmt.Sprint(ff.MaxBatch),
		"routes of a partition: combinations of namespace, lane, kind, capabilities, budgets and quotas": fmt.Sprint(ff.MaxRoutes),
		"execution partitions, unless set otherwise at the first start":                                  fmt.Sprint(ff.DefaultExecutionPartitions),
	}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, " | ")
		if len(cells) != 2 || strings.HasPrefix(line, "| What") {
			continue
		}
		what, limit := strings.TrimPrefix(cells[0], "| "), strings.TrimSuffix(strings.TrimSpace(cells[1]), " |")
		if want[what] != limit {
			t.Errorf("%s: the page says %s, the code %q", what, limit, want[what])
		}
		delete(want, what)
	}
	for what := range want {
		t.Errorf("the page says nothing of: %s", what)
	}
}
