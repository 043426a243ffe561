package admission_test

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/client"
	_ "github.com/flowfabric/flowfabric-go/embedded" // serves embedded://
)

// A budget for each tenant: who would pass its hard limit is refused, and nothing of that report is counted. A
// handler reports with handler.Task.Spend instead.
func Example() {
	ctx := context.Background()
	c, err := client.Connect(ctx, client.Config{URL: "embedded://", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	a := admin.New(c)
	err = a.PutGate(ctx, admission.Gate{
		Name:   "acme",
		Reset:  flowfabric.Millis(24 * time.Hour),
		Limits: map[string]admission.Limit{"tokens": {Hard: 1000, Soft: 800}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for i, tokens := range []int64{700, 200, 200} {
		r, err := a.ReportUsage(ctx,
			admission.Usage{Gate: "acme", Key: fmt.Sprint("report-", i), Amounts: map[string]int64{"tokens": tokens}})
		fmt.Println(r.Verdict, err)
	}
	b, err := a.GetGate(ctx, "acme")
	fmt.Println(b.Used["tokens"], err)
	// Output:
	// OK <nil>
	// SOFT_BREACH <nil>
	// HARD_BREACH <nil>
	// 900 <nil>
}
