package admin_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/flow"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/trail"
	"github.com/flowfabric/flowfabric-go/schedule"
)

// Whoever changes something is in the audit trail with it, once, and what changed nothing is not.
func TestEveryChangeIsInTheTrail(t *testing.T) {
	onServers(t, func(ctx context.Context, t *testing.T, c *client.Client, e *engine.Engine) {
		a := admin.New(c)
		anna, why := flowfabric.By("anna"), flowfabric.Reason("the tide turned")
		ended := submit(ctx, t, c, "ebb").ID()
		growing := flow.New("shore", flow.Unsealed())
		flow.Add(growing, "only", handler.Define[int, int]("nobody"), 1)
		f, err := client.SubmitFlow(ctx, c, growing)
		must.No(t, err)
		finish(ctx, t, e, ended, "wet")
		id := submit(ctx, t, c, "tides").ID()
		ctx = trail.Acting(ctx, trail.Actor{From: "api 192.0.2.7"})
		weight, name := 3, "llm"
		gate := admission.Gate{Name: name, Limits: map[string]admission.Limit{"tokens": {Hard: 10}}}
		cases := []struct {
			want string
			do   func() error
		}{
			{"set priority execution " + id.String() + " (7)", func() error {
				return a.SetPriority(ctx, id, 7, anna, why)
			}},
			{"set tags execution " + id.String() + " (team.colour, without team.size)", func() error {
				return a.SetTags(ctx, id, map[string]string{"team.colour": "red"}, []string{"team.size"}, anna, why)
			}},
			{"hold execution " + id.String(), func() error { return a.Hold(ctx, id, anna, why) }},
			{"unhold execution " + id.String(), func() error { return a.Unhold(ctx, id, anna, why) }},
			{"cancel execution " + id.String(), func() error { return c.Execution(id).Cancel(ctx, anna, why) }},
			{"replay execution " + ended.String(), func() error {
				return a.Replay(ctx, ended, admin.Replay{Force: true}, anna, why)
			}},
			{"set lane default (paused, weight 3)", func() error {
				return a.SetLane(ctx, "default", admin.LaneChange{State: flowfabric.LanePaused, Weight: &weight},
					anna, why)
			}},
			{"create gate llm", func() error { return a.PutGate(ctx, gate, flowfabric.IfNew(), anna, why) }},
			{"adjust gate llm (tokens +5)", func() error {
				_, err := a.AdjustUsage(ctx, name, map[string]int64{"tokens": 5}, anna, why)
				return err
			}},
			{"raise gate llm (tokens +5)", func() error {
				_, err := a.RaiseLimits(ctx, name, map[string]int64{"tokens": 5}, flowfabric.ExecutionID{}, anna, why)
				return err
			}},
			{"attach scope everywhere (gate llm)", func() error {
				return a.AttachGates(ctx, admission.Scope{}, []flowfabric.Gate{flowfabric.Gate(name)}, anna, why)
			}},
			{"detach scope everywhere", func() error { return a.DetachGates(ctx, admission.Scope{}, nil, anna, why) }},
			{"reset gate llm", func() error {
				_, _, err := a.ResetUsage(ctx, name, false, anna, why)
				return err
			}},
			{"remove gate llm", func() error {
				_, err := a.RemoveGate(ctx, name, anna, why)
				return err
			}},
			{"create gate calls", func() error {
				return a.PutGate(ctx, admission.Gate{Name: "calls", Concurrency: 2}, flowfabric.IfNew(), anna, why)
			}},
			{"remove gate calls", func() error {
				_, err := a.RemoveGate(ctx, "calls", anna, why)
				return err
			}},
			{"put schedule nightly (" + "write_article, every 1h0m0s from 1970-01-01T00:00:00Z)", func() error {
				spec := schedule.Every(time.Hour, time.Time{})
				_, err := client.DeclareSchedule("nightly", spec, handler.Define[[]byte, []byte]("write_article"),
					[]byte("1")).Put(ctx, c, anna, why)
				return err
			}},
			{"pause schedule nightly", func() error { return a.PauseSchedule(ctx, "nightly", anna, why) }},
			{"resume schedule nightly", func() error { return a.ResumeSchedule(ctx, "nightly", anna, why) }},
			{"remove schedule nightly", func() error {
				_, err := a.RemoveSchedule(ctx, "nightly", anna, why)
				return err
			}},
			{"set tags flow " + f.ID().String() + " (team.colour)", func() error {
				return a.SetFlowTags(ctx, f.ID(), map[string]string{"team.colour": "red"}, nil, anna, why)
			}},
			{"seal flow " + f.ID().String(), func() error { return f.Seal(ctx, anna, why) }},
			{"cancel executions namespace=default state=waiting", func() error {
				_, err := a.Bulk(ctx, admin.Filter{Namespace: "default", States: []flowfabric.PublicState{
					flowfabric.Waiting}}, admin.BulkAction{Cancel: true}, admin.BulkOptions{}, anna, why)
				return err
			}},
		}
		for i, x := range cases {
			if err := x.do(); err != nil {
				t.Fatalf("%s: %v", x.want, err)
			}
			page, err := a.TrailPage(ctx, admin.TrailQuery{}, "", 0)
			if err != nil || len(page.Items) != i+1 {
				t.Fatalf("%s: %d entries, want %d: %v, %v", x.want, len(page.Items), i+1, page, err)
			}
			if !slices.ContainsFunc(page.Items, func(c admin.Change) bool {
				_, said, _ := strings.Cut(c.String(), "Z ")
				return said == x.want+", by anna from api 192.0.2.7: the tide turned"
			}) {
				t.Errorf("the trail says %v, want %q", page.Items, x.want)
			}
		}
		before, err := a.TrailPage(ctx, admin.TrailQuery{}, "", 0)
		if err != nil || len(before.Items) != len(cases) {
			t.Fatalf("%d entries, %v, want %d", len(before.Items), err, len(cases))
		}
		for _, x := range cases[4:5] { // done already
			must.No(t, x.do())
		}
		if err := a.SetPriority(ctx, id, 8, anna); !errors.Is(err, flowfabric.ErrTerminal) {
			t.Fatal(err)
		}
		if after, err := a.TrailPage(ctx, admin.TrailQuery{}, "", 0); err != nil ||
			len(after.Items) != len(before.Items) {
			t.Errorf("%d entries after calls that changed nothing, %v", len(after.Items), err)
		}

		var pages []admin.Change
		for cursor := ""; ; {
			page, err := a.TrailPage(ctx, admin.TrailQuery{On: "execution", By: "anna"}, cursor, 2)
			must.No(t, err)
			pages = append(pages, page.Items...)
			if cursor = page.Cursor; cursor == "" {
				break
			}
		}
		var actions []string
		for _, x := range pages {
			actions = append(actions, x.Action)
		}
		slices.Sort(actions) // what was done in one millisecond has no order across partitions
		if want := []string{"cancel", "hold", "replay", "set priority", "set tags", "unhold"}; !slices.Equal(actions,
			want) {
			t.Errorf("by anna: %q, want %q", actions, want)
		}
		if of := pages[slices.IndexFunc(pages, func(c admin.Change) bool { return c.Action == "cancel" })]; of.Why !=
			"the tide turned" || of.Name != id.String() || of.By != "anna" {
			t.Errorf("%+v", of)
		}
		if page, err := a.TrailPage(ctx, admin.TrailQuery{Until: before.Items[len(before.Items)-1].At}, "",
			0); err != nil || len(page.Items) != 0 {
			t.Errorf("before the first: %+v, %v", page, err)
		}
		if _, err := a.TrailPage(ctx, admin.TrailQuery{}, "x", 0); !errors.Is(err, flowfabric.ErrInvalidInput) {
			t.Errorf("a cursor of nobody: %v", err)
		}

		history, err := a.History(ctx, id)
		must.No(t, err)
		var lines []string
		for _, h := range history {
			if h.From != "" {
				lines = append(lines, h.Kind+" "+h.By)
			}
			if h.From != "" && h.From != "api 192.0.2.7" {
				t.Errorf("%s", h)
			}
		}
		if want := []string{"priority anna", "tagged anna", "held anna", "unheld anna",
			"cancelled anna"}; !slices.Equal(lines, want) {
			t.Errorf("history of who came from where: %q, want %q", lines, want)
		}
	})
}
