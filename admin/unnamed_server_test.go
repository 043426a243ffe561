package admin_test

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
	"github.com/flowfabric/flowfabric-go/schedule"
)

// What is done without flowfabric.By is by the Creator of the client, and by nobody if there is none.
func TestWhatAnUnnamedClientDoesIsByNobody(t *testing.T) {
	for _, creator := range []string{"", "billing"} {
		t.Run("creator "+creator, func(t *testing.T) {
			ctx, cancel := testwait.Context(t, t.Context())
			defer cancel()
			c, err := client.Connect(ctx, client.Config{CallTimeout: time.Hour, SubmitTimeout: time.Hour,
				URL: testserver.Embedded(t), Creator: creator, Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			no := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			a := admin.New(c)
			x := submit(ctx, t, c, "tides")
			_, err = c.Execution(x.ID()).Send(ctx, "user", "hello")
			no(err)
			no(a.SetPriority(ctx, x.ID(), 7))
			no(c.Execution(x.ID()).Cancel(ctx))
			limits := map[string]admission.Limit{"tokens": {Hard: 10}}
			no(a.PutGate(ctx, admission.Gate{Name: "b", Limits: limits}, flowfabric.IfNew()))
			_, err = a.AdjustUsage(ctx, "b", map[string]int64{"tokens": 1})
			no(err)
			_, _, err = a.ResetUsage(ctx, "b", false)
			no(err)
			_, err = client.Schedule(ctx, c, "s", schedule.Every(time.Hour, time.Time{}),
				handler.Define[[]byte, []byte]("k"), nil)
			no(err)

			mail, err := c.Execution(x.ID()).Messages(ctx, 0)
			no(err)
			got := []string{"message " + mail.Messages[0].By}
			history, err := a.History(ctx, x.ID())
			no(err)
			for _, e := range history {
				got = append(got, strings.TrimSpace(e.Kind+" "+e.Source)+" "+e.By)
			}
			b, err := a.GetGate(ctx, "b")
			no(err)
			for _, e := range b.Audit {
				got = append(got, e.What+" "+e.By)
			}
			schedules, err := a.Schedules(ctx)
			no(err)
			no(a.Freeze(ctx, 1))
			got = append(got, "schedule "+schedules[0].By, "frozen: "+frozen(t, a))
			no(a.Thaw(ctx, 1))
			page, err := a.TrailPage(ctx, admin.TrailQuery{}, "", 0)
			no(err)
			for _, change := range page.Items {
				if change.By != creator {
					t.Errorf("the trail says %s", change)
				}
			}
			why := ""
			if creator != "" {
				why = "by " + creator
			}
			if want := fmt.Sprintf(strings.ReplaceAll("message %[1]s|created %[1]s|priority %[1]s|"+
				"cancelled operator_override %[1]s|ended operator_override %[1]s|created %[1]s|adjusted %[1]s|"+
				"period %[1]s|schedule %[1]s|frozen: %[2]s", "|", "\n"), creator,
				why); strings.Join(got, "\n") != want {
				t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), want)
			}
		})
	}
}

// frozen is why partition 1 is frozen.
func frozen(t *testing.T, a *admin.Admin) string {
	t.Helper()
	all, err := a.Partitions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return all[1].FrozenReason
}
