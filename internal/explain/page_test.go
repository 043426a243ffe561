package explain

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/timeline"
	"github.com/flowfabric/flowfabric-go/internal/valid"
	"github.com/flowfabric/flowfabric-go/internal/wire"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// The examples of docs/how-to/why.md are made of these facts by the code that explains real ones;
// internal/conformance holds that code against servers. FLOWFABRIC_GOLDEN=write writes the page anew.

var (
	noon   = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	sample = mint.Join(3, uuid.MustParse("019cb000-0000-7000-8000-000000000001"))
)

// in is an execution in a state, as it is often found.
func in(code codes.Code, change func(f *engine.Facts)) engine.Facts {
	state, _ := codes.Project(code)
	f := engine.Facts{Now: noon, Ahead: -1, TickOwner: "writer-1", TickWake: noon.Add(time.Second)}
	f.ID, f.State, f.Code = sample, state.State, code
	f.Route = engine.Route{ID: 4, Namespace: "default", Lane: "default", Kind: "write-article"}
	f.Lane = engine.Lane{ListLanesLane: wire.ListLanesLane{Namespace: "default", Lane: "default", State: "active"}}
	f.Policy = flowfabric.Policy{Retry: valid.DefaultRetry(), MaxReclaims: 10, MaxReplays: 10}
	f.CreatedAt = noon.Add(-time.Hour)
	if state.AttemptState != "pending_first_attempt" && state.AttemptState != "none" {
		f.Attempts, f.AttemptType, f.Session, f.Epoch = 1, flowfabric.AttemptInitial, "writer-1~0a1b2c", 7
		f.ClaimedAt = noon.Add(-time.Minute)
	}
	switch {
	case state.Eligibility == "eligible_now":
		f.Ahead, f.Queued, f.Ready = 0, 1, true
	case state.Eligibility == "not_eligible_until_time":
		f.DelayUntil = noon.Add(2 * time.Minute)
	case code == codes.Active:
		f.HolderAlive, f.LeaseExpiresAt = true, noon.Add(20*time.Second)
	case code == codes.LeaseExpired:
		f.LeaseExpiresAt = noon.Add(-300 * time.Millisecond)
	case state.LifecyclePhase == "suspended":
		f.OpenWaitpoints, f.Satisfied = 1, map[int]int{}
		f.Suspension = &suspend.Record{Reason: state.BlockingReason, Name: "approve", CreatedAt: noon.Add(-time.Hour),
			Behaviour: "fail", Condition: "L\x1f1\x1f1\x1f",
			Waitpoints: []suspend.Waitpoint{{Key: "approve", State: "active"}}}
	case state.Terminal():
		f.EndedAt, f.PurgeAt = noon.Add(-time.Hour), noon.Add(14*24*time.Hour-time.Hour)
		if state.Public == flowfabric.Completed {
			f.PurgeAt = noon.Add(23 * time.Hour)
		}
	}
	if change != nil {
		change(&f)
	}
	return f
}

// lost is the record of an attempt that ended so.
func lost(category, reason string) []engine.AttemptRecord {
	return []engine.AttemptRecord{{Index: 1, State: "ended_failure", Category: flowfabric.Category(category),
		Message: reason}}
}

func failing(f *engine.Facts) {
	f.Retries, f.Failure.Category, f.AttemptLog = 2, "handler_error", lost("handler_error", "the model is overloaded")
	f.Attempts, f.AttemptLog[0].Index = 2, 2
}

func reviewed(behaviour string) func(*engine.Facts) {
	return func(f *engine.Facts) {
		f.Suspension.Behaviour, f.TimeoutAt = behaviour, noon.Add(47*time.Hour)
	}
}

func writer(instance string, caps ...string) flowfabric.Worker {
	return flowfabric.Worker{Instance: instance, Alive: true, Reported: 64,
		WorkerInfo: flowfabric.WorkerInfo{Namespaces: []string{"default"}, Lanes: []string{"default"},
			Kinds: []string{"write-article"}, Capabilities: caps, Concurrency: 64}}
}

// stuck is a writer whose slots are all taken by handlers that ignore the end of their context.
func stuck(instance string) flowfabric.Worker {
	w := writer(instance)
	w.Stuck = w.Concurrency
	return w
}

// gated gives it two gates.
func gated(f *engine.Facts) {
	f.Route.Gates = []flowfabric.Gate{flowfabric.Gate("acme"), flowfabric.Gate("openai")}
}

// granting has a worker ask its gates for so long.
func granting(left time.Duration) func(*engine.Facts) {
	return func(f *engine.Facts) {
		gated(f)
		f.GrantedTo, f.GrantEnds, f.Ahead, f.Ready = "writer-1~0a1b2c", noon.Add(left), -1, false
	}
}

// shutting closes its route for so long.
func shutting(why string, left time.Duration) func(*engine.Facts) {
	return func(f *engine.Facts) {
		gated(f)
		f.ClosedWhy, f.ClosedUntil, f.Ready = why, noon.Add(left), false
	}
}

// member makes it one of a flow that is open, which depends on three others.
func member(f *engine.Facts) {
	f.Node, f.Group = "join", &engine.GroupRecord{Policy: codes.AllOf, Total: 3, Pending: true}
	f.Flow = &engine.FlowRecord{FlowSummary: flowfabric.FlowSummary{State: flowfabric.FlowOpen,
		ID: flowfabric.FlowID(mint.Join(3, uuid.MustParse("019cb000-0000-7000-8000-000000000002")))}}
}

// others are nodes and their codes.
func others(pairs ...string) (out []engine.Other) {
	for i := 0; i < len(pairs); i += 2 {
		state := codes.Shown(codes.Code(pairs[i+1]))
		out = append(out, engine.Other{ID: sample, Node: pairs[i], State: state})
	}
	return out
}

// example is one explanation of the page.
type example struct {
	facts   engine.Facts
	err     error // instead of facts
	workers crew
}

var examples = map[string]example{
	WhyNotFound:         {err: denied.New("", "execution_not_found")},
	WhyPurged:           {err: denied.New("", "result_purged", "T1", fmt.Sprint(noon.Add(24*time.Hour).UnixMilli()))},
	WhyPartitionFrozen:  {err: denied.New("", "partition_frozen", "ff:{fp:3}", "moving slot 7")},
	WhyPartitionMissing: {err: denied.New("", "partition_missing", "ff:{fp:3}")},

	WhyWaitingNext: {facts: in("R1f", nil),
		workers: crew{live: []flowfabric.Worker{writer("writer-1"), writer("writer-2")}}},
	WhyWaitingBehind: {facts: in("R1f", func(f *engine.Facts) { f.Ahead, f.Queued = 12, 40 }),
		workers: crew{live: []flowfabric.Worker{writer("writer-1")}}},
	WhyWaitingStuck:    {facts: in("R1f", nil), workers: crew{live: []flowfabric.Worker{stuck("writer-1")}}},
	WhyWaitingNoWorker: {facts: in("R1t", func(f *engine.Facts) { failing(f) })},
	WhyWaitingNoCapability: {facts: in("R1f", func(f *engine.Facts) { f.Route.Capabilities = []string{"eu", "gpu"} }),
		workers: crew{live: []flowfabric.Worker{writer("writer-1", "arm"), writer("writer-2", "gpu")}}},
	WhyWaitingUnregistered: {
		facts: in("R1p", func(f *engine.Facts) { f.Waiters, f.Subscriptions, f.Replays = 2, 1, 1 })},
	WhyWaitingUnlisted: {facts: in("R1f", nil), workers: crew{err: errors.New("partition 9: partition_frozen")}},
	WhyLanePaused: {facts: in("R1i", func(f *engine.Facts) {
		f.Released = engine.ReleasedBack
		f.Lane.State, f.Lane.Since, f.Lane.By = string(flowfabric.LanePaused), noon.Add(-time.Hour), "anna"
	})},
	WhyLaneDisabled: {facts: in("R1r", func(f *engine.Facts) {
		f.Reclaims, f.AttemptLog = 1, lost("lease_expired", "")
		f.Lane.State, f.Lane.Since, f.Lane.By = string(flowfabric.LaneDisabled), noon.Add(-time.Hour), "anna"
	})},
	WhyNotQueued:  {facts: in("R1f", func(f *engine.Facts) { f.Ahead = -1 })},
	WhyNotOffered: {facts: in("R1f", func(f *engine.Facts) { f.Ready = false })},

	WhyGranted:  {facts: in("G1f", granting(4*time.Second))},
	WhyGrantDue: {facts: in("G1t", func(f *engine.Facts) { failing(f); granting(-100 * time.Millisecond)(f) })},
	WhyWaitingAmount: {facts: in("R1f", shutting("gate acme amount tokens 1000000 1000000", 21*time.Second)),
		workers: crew{live: []flowfabric.Worker{writer("writer-1")}}},
	WhyWaitingRate: {facts: in("R1f", shutting("gate openai rate", 1800*time.Millisecond)),
		workers: crew{live: []flowfabric.Worker{writer("writer-1")}}},
	WhyWaitingSlot: {facts: in("R1i", func(f *engine.Facts) {
		shutting("gate openai cap", 700*time.Millisecond)(f)
		f.Released, f.Outbox, f.Slots = engine.ReleasedSuspended, 2, 20
	}), workers: crew{live: []flowfabric.Worker{writer("writer-1")}}},
	WhyNoGate: {facts: in("R1f", shutting("gate_not_found acme", 20*time.Second)),
		workers: crew{live: []flowfabric.Worker{writer("writer-1")}}},
	WhyUnavailable: {facts: in("R1f", shutting("unavailable gate openai", time.Minute)),
		workers: crew{live: []flowfabric.Worker{writer("writer-1")}}},
	WhyCheckDue: {facts: in("R1f", shutting("gate openai rate", -300*time.Millisecond))},
	WhyExecutionHeld: {facts: in("R4f", func(f *engine.Facts) {
		f.HeldAt, f.HeldBy, f.HoldReason = noon.Add(-10*time.Minute), "anna", "the tenant asked for it"
	})},

	WhyDelayed:         {facts: in("R2af", nil)},
	WhyDebounced:       {facts: in("R2af", func(f *engine.Facts) { f.KeyHeld, f.Replaced = "until_claimed", 3 })},
	WhyDelayedByWorker: {facts: in("R2ai", nil)},
	WhyWaitingTurn: {facts: in("R2ai", func(f *engine.Facts) {
		f.Released, f.Service = engine.ReleasedDelayed, "openai/gpt-5"
		f.Turn = engine.Turn{Place: 12, Waiting: 40, Retry: 8 * time.Second,
			Wants: map[string]int64{"requests": 1, "tokens": 4000}}
	})},
	WhyRetryBackoff: {facts: in("R2b", failing)},
	WhyReclaimBackoff: {facts: in("R2r", func(f *engine.Facts) {
		f.Attempts, f.Reclaims, f.AttemptLog = 3, 3, lost("lease_expired", "")
		f.AttemptLog[0].Index = 3
	})},
	WhyResumeDelay: {facts: in("R2c", func(f *engine.Facts) {
		f.Suspension, f.ResumedBy = &suspend.Record{Trigger: "operator"}, "anna"
	})},
	WhyDelayDue: {facts: in("R2af", func(f *engine.Facts) { f.DelayUntil = noon.Add(-200 * time.Millisecond) })},

	WhyFlowStaging: {facts: in("R3f", func(f *engine.Facts) { member(f); f.Flow.State = flowfabric.FlowStaging })},
	WhyAwaitingOthers: {facts: in("R3f", func(f *engine.Facts) {
		member(f)
		f.Group.Policy, f.Group.K, f.Group.Succeeded = codes.Quorum, 2, 1
		f.Open, f.Others = 2, others("fetch", "A1", "parse", "R3f")
	})},
	WhyAwaitingReplay: {facts: in("R3p", func(f *engine.Facts) {
		member(f)
		f.Group.Succeeded, f.Open, f.Others = 2, 1,
			others("fetch", "T2")
	})},
	WhyAwaitingKids: {facts: in("S8", func(f *engine.Facts) {
		member(f)
		f.Suspension.Condition, f.Suspension.Name, f.Suspension.Waitpoints = "K", "pages", nil
		f.OpenWaitpoints = 0
		f.Wait = &engine.WaitRecord{Mode: string(engine.WaitAll), Total: 5, Succeeded: 2, Others: 1, Pending: true}
		f.Open, f.Others = 2, others("page-4", "A1", "page-5", "S8")
		f.Asks = []engine.Asked{{ID: sample.Child("pages", "page-5"), Path: []string{"page-5", "print 2.1"},
			Keys: []string{"approve 1.1 pay"}}}
	})},
	WhyAwaitingBacklog: {facts: in("R3f", func(f *engine.Facts) {
		member(f)
		f.Group.Pending, f.Group.Satisfied,
			f.Flow.Backlog = false, true, 3
	})},
	WhyFlowCancelled: {facts: in("R3f", func(f *engine.Facts) {
		member(f)
		f.Flow.State, f.Flow.Policy, f.Flow.Cancelled, f.Flow.Reason = flowfabric.FlowCancelled, flowfabric.CancelAll,
			noon.Add(-time.Second), "too late"
	})},

	WhyActive: {facts: in("A1", func(f *engine.Facts) {
		f.Progress = engine.Progress{Percent: new(40), Message: "second chapter", At: noon.Add(-5 * time.Second)}
		f.AttemptTimeoutAt, f.DeadlineAt = noon.Add(9*time.Minute), noon.Add(time.Hour)
	})},
	WhyAttemptTimeoutDue: {facts: in("A1", func(f *engine.Facts) { f.AttemptTimeoutAt = noon.Add(-time.Second) })},
	WhyLeaseExpired:      {facts: in("A2", nil)},
	WhyHolderDead: {facts: in("A2",
		func(f *engine.Facts) { f.LeaseExpiresAt, f.DeclaredDead = noon.Add(20*time.Second), "host replaced" })},
	WhyRevoked: {facts: in("A3", nil)},
	WhyReclaimsExhausted: {
		facts: in("A2", func(f *engine.Facts) { f.Attempts, f.Reclaims, f.Policy.MaxReclaims = 4, 3, 3 })},

	WhyAwaitingSignal: {facts: in("S1", nil)},
	WhyAwaitingApproval: {facts: in("S2", func(f *engine.Facts) {
		reviewed("escalate")(f)
		f.Suspension.Condition, f.Satisfied, f.OpenWaitpoints = "C\x1f2\x1fw\x1fapproved\x1f1\x1f2\x1f3",
			map[int]int{1: 1}, 3
		f.Suspension.Waitpoints = []suspend.Waitpoint{{Key: "anna", State: "active"}, {Key: "ben", State: "active"},
			{Key: "cleo", State: "active"}}
	})},
	WhyAwaitingCallback: {facts: in("S3", reviewed("auto_resume_with_timeout_signal"))},
	WhyAwaitingTool:     {facts: in("S4", reviewed("fail"))},
	WhyPausedByOperator: {facts: in("S5", func(f *engine.Facts) {
		f.Suspension.Reason, f.Suspension.Condition, f.Suspension.Waitpoints,
			f.OpenWaitpoints = "waiting_for_operator_review", "O", nil, 0
	})},
	WhyPausedByPolicy: {facts: in("S6", reviewed("auto_resume"))},
	WhyAwaitingBudget: {
		facts: in("S7", func(f *engine.Facts) { reviewed("cancel")(f); f.Suspension.Reason = "paused_by_budget" })},
	WhySuspensionTimeoutDue: {facts: in("S2",
		func(f *engine.Facts) { reviewed("expire")(f); f.TimeoutAt = noon.Add(-400 * time.Millisecond) })},
	WhyDeadlineDue: {
		facts: in("R1f", func(f *engine.Facts) { f.DeadlineAt = noon.Add(-100 * time.Millisecond) })},

	WhyCompleted: {facts: in("T1", nil)},
	WhyFailedNoRetries: {facts: in("T2", func(f *engine.Facts) {
		failing(f)
		f.Retries, f.Policy.Retry.MaxRetries, f.Attempts, f.AttemptLog[0].Index = 0, 0, 1, 1
	})},
	WhyFailedRetriesExhausted: {
		facts: in("T2", func(f *engine.Facts) { failing(f); f.Retries, f.Attempts, f.AttemptLog[0].Index = 3, 4, 4 })},
	WhyFailedNotRetried: {
		facts: in("T2", func(f *engine.Facts) {
			failing(f)
			f.Policy.Retry.Categories = []flowfabric.Category{"attempt_timeout"}
		})},
	WhyFailedPermanent: {facts: in("T2", failing)},
	WhyFailedReclaimsExhausted: {facts: in("T2", func(f *engine.Facts) {
		f.Failure.Category, f.AttemptLog, f.Reclaims = "max_reclaims_exceeded", lost("lease_expired", ""), 3
		f.Attempts, f.AttemptLog[0].Index = 4, 4
	})},
	WhyFailedWaitTimeout: {facts: in("T2", func(f *engine.Facts) { f.Failure.Category = "suspension_timeout" })},
	WhyCancelled: {facts: in("T3n", func(f *engine.Facts) {
		f.CancelSource, f.CancelReason = engine.CancelOperator, "the article is no longer wanted"
	})},
	WhyCancelledWaitTimeout: {facts: in("T3", func(f *engine.Facts) { f.CancelSource = timeline.CancelTimeout })},
	WhyExpiredDeadline: {
		facts: in("T4", func(f *engine.Facts) { f.DeadlineAt, f.Replays = noon.Add(-time.Hour-time.Second), 10 })},
	WhyExpiredAttemptTimeout: {facts: in("T4", func(f *engine.Facts) {
		f.Failure.Category, f.Policy.AttemptTimeout = "attempt_timeout", flowfabric.Millis(10*time.Minute)
	})},
	WhyExpiredWaitTimeout: {facts: in("T4", func(f *engine.Facts) { f.Failure.Category = "suspension_timeout" })},
	WhySkipped:            {facts: in("T5n", nil)},
}

// explained is what the library says of an example.
func explained(t *testing.T, reason string) flowfabric.Explanation {
	base, late := strings.CutSuffix(reason, overdue)
	x, ok := examples[base]
	if !ok {
		t.Fatalf("%s has no example", reason)
	}
	var out flowfabric.Explanation
	var err error
	if x.err != nil {
		out, err = gone(sample, x.err)
	} else {
		if late {
			x.facts.TickOverdue, x.facts.TickWake, x.facts.TickOwner = true, noon.Add(-time.Minute), ""
		}
		out = explain(x.facts, x.workers)
	}
	if err != nil || out.Reason != reason || out.ID != sample {
		t.Fatalf("the example of %s is one of %s: %v, %v", reason, out.Reason, out, err)
	}
	return out
}

func TestPageOfExplanations(t *testing.T) {
	const page, begin, end = "../../docs/how-to/why.md", "<!-- examples: written by TestPageOfExplanations -->\n",
		"<!-- end of examples -->\n"
	var made strings.Builder
	for _, reason := range Causes() {
		e := explained(t, reason)
		state := ""
		if e.State != "" {
			state = fmt.Sprintf(" (%s)", e.State)
		}
		fmt.Fprintf(&made, "- **`%s`**%s: %s *%s*\n", reason, state, e.Sentence, e.Next)
	}
	raw, err := os.ReadFile(page)
	must.No(t, err)
	head, rest, ok := strings.Cut(string(raw), begin)
	_, tail, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s lacks its marks", page)
	}
	want := head + begin + made.String() + "\n" + end + tail
	if os.Getenv("FLOWFABRIC_GOLDEN") == "write" {
		must.No(t, os.WriteFile(page, []byte(want), 0o644))
		return
	}
	if want != string(raw) {
		t.Errorf(
			"%s is not what the library says; FLOWFABRIC_GOLDEN=write go test ./internal/explain -run TestPageOfExplanations writes it",
			page)
	}
}

// An error that explains nothing stays one.
func TestErrorsThatExplainNothing(t *testing.T) {
	for _, err := range []error{flowfabric.ErrTransport, denied.New("", "protocol_mismatch"),
		denied.New("", "corrupt")} {
		if got, same := gone(sample, err); !errors.Is(same, err) || got.Reason != "" {
			t.Errorf("%v: %v, %v", err, got, same)
		}
	}
}

// inside are words that only this library's own code and documents of its design know.
var inside = regexp.MustCompile(`(?i)\b(routes?|grants?|granted|rung|rings?|backlog|outbox|notices?|index|` +
	`registry|filed|closed|closes)\b`)

// Every text that a sentence is made of is in the words of those who read it, not only those of the examples.
func TestSentencesAreInWordsOfTheirReaders(t *testing.T) {
	files, err := filepath.Glob("*.go")
	must.No(t, err)
	texts := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		must.No(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			if x, ok := n.(*ast.BasicLit); ok && x.Kind == token.STRING && strings.Contains(x.Value, " ") {
				texts++
				if word := inside.FindString(x.Value); word != "" {
					t.Errorf("%s says %q: %s", name, word, x.Value)
				}
			}
			return true
		})
	}
	if texts < 100 {
		t.Errorf("%d texts were looked at", texts)
	}
}
