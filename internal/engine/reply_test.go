package engine

import (
	"context"
	"errors"
	"maps"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/wire"
	"github.com/flowfabric/flowfabric-go/stream"
	"github.com/flowfabric/flowfabric-go/suspend"
)

var (
	sampleID    = mint.ID(3)
	sampleFence = flowfabric.Fence{Execution: sampleID, Session: "w~1", Claim: 1, Epoch: 1}
	sampleClaim = ClaimRequest{Partition: 3, Session: "w~1", Number: 1, TTL: time.Second, Max: 1}
)

// caller makes one call of a function.
type caller struct {
	function string
	call     func(context.Context, *Engine) error
}

func init() {
	callers = append(callers, flowCallers...)
	maps.Copy(good, goodFlows)
}

// callers makes one call of every function that decodes more than an envelope.
var callers = []caller{
	{"ff_claim_next", func(ctx context.Context, e *Engine) error {
		_,
			err := e.ClaimNext(ctx, sampleClaim)
		return err
	}},
	{"ff_read_execution",
		func(ctx context.Context, e *Engine) error { _, err := e.ReadExecution(ctx, sampleID); return err }},
	{"ff_create_execution", func(ctx context.Context, e *Engine) error {
		out, err := e.CreateExecutions(ctx, 3, []NewExecution{{ID: sampleID}})
		return firstError(err, out, func(c Created) error { return c.Err })
	}},
	{"ff_complete_execution", func(ctx context.Context, e *Engine) error {
		out, _, err := e.CompleteExecutions(ctx, 3, []Completion{{Fence: sampleFence}}, &sampleClaim)
		return firstError(err, out, func(s Settled) error { return s.Err })
	}},
	{"ff_session_renew", func(ctx context.Context, e *Engine) error {
		_, err := e.RenewSession(ctx, 3, "w~1", time.Second, 0)
		return err
	}},
	{"ff_append_frames", func(ctx context.Context, e *Engine) error {
		_, err := e.AppendFrames(ctx, sampleFence, 1, []stream.Frame{{}})
		return err
	}},
	{"ff_rewind_execution", func(ctx context.Context, e *Engine) error {
		_, err := e.RewindExecution(ctx, sampleID, Rewind{Step: "s"})
		return err
	}},
	{"ff_read_attempt_stream", func(ctx context.Context, e *Engine) error {
		_, err := e.ReadAttemptStream(ctx, sampleID, 1)
		return err
	}},
	{"ff_set_lane", func(ctx context.Context, e *Engine) error {
		return e.SetLane(ctx, wire.SetLane{Namespace: "n", Lane: "l", State: "paused"})[3].Err
	}},
	{"ff_set_feed", func(ctx context.Context, e *Engine) error {
		return e.setFeed(ctx, 3, FeedWish{Ends: true, Keep: time.Hour}).Err
	}},
	{"ff_audit_executions", func(ctx context.Context, e *Engine) error {
		_, _, err := e.AuditExecutions(ctx, 3, true, []uuid.UUID{ids.UUID(sampleID)})
		return err
	}},
	{"ff_audit_index", func(ctx context.Context, e *Engine) error {
		_, _, _, err := e.AuditIndex(ctx, 3, true, IndexPage{Index: "delayed", Limit: 1})
		return err
	}},
	{"ff_audit_keys", func(ctx context.Context, e *Engine) error {
		_, err := e.AuditKeys(ctx, 3, true, []AuditedKey{{Area: "i", ID: ids.UUID(sampleID).String()}})
		return err
	}},
	{"ff_audit_flows", func(ctx context.Context, e *Engine) error {
		_, _, err := e.AuditFlows(ctx, 3, true, []AuditedFlow{{ID: ids.UUID(sampleID)}})
		return err
	}},
	{"ff_audit_routes", func(ctx context.Context, e *Engine) error {
		_, _, err := e.AuditRoutes(ctx, 3, true, RouteCount{}, nil)
		return err
	}},
	{"ff_list_lanes", func(ctx context.Context, e *Engine) error { return e.Lanes(ctx)[3].Err }},
	{"ff_read_queues", func(ctx context.Context, e *Engine) error { _, err := e.Queues(ctx, 3, "", 0); return err }},
	{"ff_list_executions", func(ctx context.Context, e *Engine) error {
		_, err := e.ListExecutions(ctx, 3, ListQuery{Index: IndexEnded, Limit: 1, Tags: true})
		return err
	}},
	{"ff_describe_partition",
		func(ctx context.Context, e *Engine) error { _, err := e.DescribePartition(ctx, 3); return err }},
	{"ff_put_schedule", func(ctx context.Context, e *Engine) error {
		_, err := e.PutSchedule(ctx, SchedulePut{Name: "s"})
		return err
	}},
	{"ff_fire_schedule", func(ctx context.Context, e *Engine) error {
		_, err := e.FireSchedule(ctx, Firing{Name: "s"})
		return err
	}},
	{"ff_pause_schedule", func(ctx context.Context, e *Engine) error {
		_, _, err := e.PauseSchedule(ctx, "s", true, nil)
		return err
	}},
	{"ff_list_schedules", func(ctx context.Context, e *Engine) error {
		_, err := e.Schedules(ctx, 3, ScheduleQuery{})
		return err
	}},
	{"ff_tick", func(ctx context.Context, e *Engine) error { _, err := e.Tick(ctx, 3, "w", false); return err }},
	{"ff_poll", func(ctx context.Context, e *Engine) error { _, _, err := e.Poll(ctx, []uint16{3}); return err }},
	{"ff_fail_execution", func(ctx context.Context, e *Engine) error {
		_, err := e.FailExecution(ctx, sampleFence, Failure{Category: "x"})
		return err
	}},
	{"ff_session_held", func(ctx context.Context, e *Engine) error {
		_,
			err := e.SessionHeld(ctx, 3, "w~1")
		return err
	}},
	{"ff_change_priority", func(ctx context.Context, e *Engine) error {
		_, _, err := e.ChangePriority(ctx, sampleID, 5)
		return err
	}},
	{"ff_set_delay", func(ctx context.Context, e *Engine) error {
		_, err := e.SetDelay(ctx, sampleID, DelayChange{})
		return err
	}},
	{"ff_purge_execution",
		func(ctx context.Context, e *Engine) error { _, err := e.PurgeExecution(ctx, sampleID, 0); return err }},
	{"ff_forward_ring", func(ctx context.Context, e *Engine) error {
		_, err := e.ForwardRing(ctx, 3,
			"ab")
		return err
	}},
	{"ff_read_history", func(ctx context.Context, e *Engine) error {
		_,
			err := e.ReadHistory(ctx, sampleID)
		return err
	}},
	{"ff_read_steps", func(ctx context.Context, e *Engine) error { _, err := e.Steps(ctx, sampleID); return err }},
	{"ff_delay_execution", func(ctx context.Context, e *Engine) error {
		_, err := e.DelayExecution(ctx, sampleFence, time.Second, "")
		return err
	}},
	{"ff_continue_execution", func(ctx context.Context, e *Engine) error {
		_, err := e.ContinueExecution(ctx, sampleFence, []byte("{}"))
		return err
	}},
	{"ff_create_pending_waitpoint", func(ctx context.Context, e *Engine) error {
		_, err := e.CreatePendingWaitpoint(ctx, sampleFence, "", Minted{}, time.Second)
		return err
	}},
	{"ff_suspend_execution", func(ctx context.Context, e *Engine) error {
		_, err := e.SuspendExecution(ctx, sampleFence, Suspension{})
		return err
	}},
	{"ff_deliver_signal", func(ctx context.Context, e *Engine) error {
		_, err := e.DeliverSignal(ctx, sampleID, flowfabric.UUID{}, "", suspend.SentSignal{})
		return err
	}},
	{"ff_approve_waitpoint", func(ctx context.Context, e *Engine) error {
		_, err := e.ApproveWaitpoint(ctx, sampleID, "key", suspend.SentSignal{})
		return err
	}},
	{"ff_reissue_token", func(ctx context.Context, e *Engine) error {
		_, err := e.ReissueToken(ctx, sampleID, Minted{})
		return err
	}},
	{"ff_set_token_keys", func(ctx context.Context, e *Engine) error {
		return firstError(nil, e.RotateTokenKey(ctx, suspend.TokenKey{}, 0, false),
			func(k suspend.KeyRotated) error { return k.Err })
	}},
	{"ff_list_token_keys", func(ctx context.Context, e *Engine) error {
		return firstError(nil, e.TokenKeys(ctx), func(k suspend.PartitionKeys) error { return k.Err })
	}},
	{"ff_read_question", func(ctx context.Context, e *Engine) error {
		_, err := e.ReadQuestion(ctx, sampleID, flowfabric.UUID{}, "")
		return err
	}},
	{"ff_read_suspension",
		func(ctx context.Context, e *Engine) error { _, err := e.ReadSuspension(ctx, sampleID); return err }},
	{"ff_read_signals", func(ctx context.Context, e *Engine) error {
		_, _, err := e.ReadSignals(ctx, sampleID, flowfabric.UUID{}, 0)
		return err
	}},
	{"ff_explain_execution",
		func(ctx context.Context, e *Engine) error { _, err := e.Explain(ctx, sampleID); return err }},
	{"ff_register_worker", func(ctx context.Context, e *Engine) error {
		_, err := e.RegisterWorker(ctx, Registration{Instance: "w", Token: "t", TTL: time.Second})
		return err
	}},
	{"ff_list_versions", func(ctx context.Context, e *Engine) error { return e.Versions(ctx)[3].Err }},
	{"ff_list_workers", func(ctx context.Context, e *Engine) error { return e.Workers(ctx)[3].Err }},
	{"ff_list_sessions",
		func(ctx context.Context, e *Engine) error { _, err := e.PartitionSessions(ctx, 3); return err }},
}

// What the replies about suspensions hold: ids, a stored signal, a resumption by it, and a closed waitpoint.
const (
	sampleUUID   = "00000000-0000-4000-8000-000000000001"
	sampleSignal = sampleUUID + "\x1f" + sampleUUID +
		"\x1fkey\x1fgo\x1f\x1fweb\x1fme\x1f\x1f\x1f5\x1f6\x1fjson\x1fappended_to_waitpoint\x1f7\x1f3\x1f1"
	samplePoint = "c\x1fkey\x1fk1\x1fd\x1fn\x1f5\x1f6\x1f7\x1f" + sampleUUID + "\x1f1\x1f1\x1f8\x1f9\x1fresumed\x1f1" +
		"\x1forder.paid"
)

var sampleResume = "it\x1fsignal\x1f" + sampleUUID + "\x1f5\x1f6\x1f" + sampleUUID + "\x1f\x1f\x1f1\x1f" +
	strconv.Itoa(len(sampleSignal)) + ":" + sampleSignal

func firstError[T any](err error, items []T, of func(T) error) error {
	for _, x := range items {
		if err == nil {
			err = of(x)
		}
	}
	return err
}

// good holds for each function a reply it must understand, slot by slot.
var good = map[string][]string{
	"ff_claim_next": {"OK", "0", "0", "1", "0", "0", "0", "4", "1", "4", "default\x1fdefault\x1fk\x1fgpu\x1f", "1",
		ids.UUID(sampleID).String() + " 0 1700000000000 initial 4 7 1700000000000 1700000000001 0 0 1000 0 3 1 1 1 1",
		"in", "1", "a.b", "c", "1", "s", "v", sampleResume, "0", "0"},
	"ff_read_execution": {"OK", "1700000000000", "default\x1fdefault\x1fk\x1f\x1f", "1", "1700000030000", "0", "", "",
		"0", "4", "state", "A1", "route", "4", "created_at", "1700000000000", "policy",
		"3,0,1000,60000,2000,1,100,10,0", "3", "0", "initial\x1f1\x1f2\x1fended_failure\x1fio\x1fw~1\x1f4\x1f1\x1f1",
		"0r", "boom", "progress",
		"0\x1f3\x1f\x1fhalf", "1", "a.b", "c"},
	"ff_create_execution":   {"OK", "1", "+R1f"},
	"ff_complete_execution": {"OK", "1", "+", "1", "1", "OK", "0", "0", "0", "0", "0", "0", "4", "0", "0", "0", "0"},
	"ff_session_renew":      {"OK", "0", "3", "0", "1", ids.UUID(sampleID).String() + " 5 cancelled"},
	"ff_append_frames":      {"OK", "1700000000000-1", "1", "1", "2", "1"},
	"ff_read_attempt_stream": {"OK", "1", "2", "3", "2", "1-1", "1", "1-0", "0", "0", "", "1", "A1", "3", "4", "2", "1",
		"1-0", "retry", "5", "0", "", "", "0", "7", "0", "", "", "", "", "0", "1700000000000", "anna", ""},
	"ff_tick":               {"OK", "1", "0", "1000", "0", "0", "0", "0", "0", "0", "0", "0", "0", "0", "0", "0"},
	"ff_poll":               {"OK", "3", "1", "1", "2", "1"},
	"ff_fail_execution":     {"OK", "retry", "1700000001000", "1700000000000"},
	"ff_session_held":       {"OK", "1", "1", "1", ids.UUID(sampleID).String(), "1"},
	"ff_delay_execution":    {"OK", "1700000001000"},
	"ff_continue_execution": {"OK", "1"},
	"ff_change_priority":    {"OK", "0", "5"},
	"ff_rewind_execution":   {"OK", "2", "1", "s"},
	"ff_set_delay":          {"OK"},
	"ff_purge_execution":    {"OK", "0"},

	"ff_create_pending_waitpoint": {"OK", sampleUUID, "key", "k1", "n", "1700000000000"},
	"ff_suspend_execution": {"OK", "satisfied", sampleUUID, "1700000000000", sampleResume, "k1", "12", "1", sampleUUID,
		"key", "k1", "n"},
	"ff_deliver_signal":    {"OK", sampleUUID, "appended_to_waitpoint", "a"},
	"ff_approve_waitpoint": {"OK", sampleUUID, "appended_to_waitpoint", "a"},
	"ff_reissue_token":     {"OK", sampleUUID, "key"},
	"ff_set_token_keys":    {"OK", "rotated", "k1", "2", "3"},
	"ff_list_token_keys":   {"OK", "k1", "1", "k1", "0123456789abcdef", "0", "2", "1700000000000"},
	"ff_read_question":     {"OK", `{"title":"a"}`, "c", sampleSignal, "key", "7000"},
	"ff_read_suspension": {"OK", "R1i", "", sampleResume, "4", "id", sampleUUID, "created_at", "5", "signals", "1",
		"cause", "signal", "2", sampleUUID, "pay 1.1", sampleUUID, "", "1", sampleUUID, samplePoint, "7000"},
	"ff_read_signals": {"OK", "1", "1", sampleSignal},

	"ff_forward_ring": {"OK", "1"},
	"ff_set_lane":     {"OK", "paused", "60", "1"},
	"ff_set_feed":     {"OK", "cl", "1700000000000", "7"},
	"ff_list_lanes": {"OK", "", "1", "default", "default", "paused", "60", "1700000000000", "anna", "1", "2", "60000",
		"3"},
	"ff_read_queues": {"OK", "1700000000000", "", "1", "4", "default\x1fdefault\x1fk\x1fgpu\x1f", "paused", "2",
		"1700000000000", "5", "3"},
	"ff_list_executions": {"OK", "1700000000000", "1", "0", "0", "1", sampleUUID, "1700000000000", "T2", "4", "5", "1",
		"2", "3", "1", "retry", "io", "w~1", "7", "8", "", "9", "1", "2", "", "", "", "", "disk full", "1", "a.b", "c",
		"1",
		"4", "default\x1fdefault\x1fk\x1fgpu\x1f", "0"},
	"ff_describe_partition": {"OK", "1700000000000", "1", "1", "slot move", "1700000000000", "w", "0", "1700000000000",
		"7", "all 5", "1", "2", "3", "4", "8", "1", "5", "2", "6", "3", "7", "4", "8", "5", "9", "6", "10", "7", "11",
		"8", "12", "4", "1", "2", "3", "4", "5", "6", "7", "8", "9", "1", "2", "3", "4", "5", "6", "7", "8", "9",
		"3", "1", "2", "3", "4", "5", "6", "6", "1", "2", "3", "4", "5", "6"},
	"ff_put_schedule":   {"OK", "1700000000000", "1700000001000"},
	"ff_fire_schedule":  {"OK", "refused", "lane_closed l is draining", "1700000001000"},
	"ff_pause_schedule": {"OK", "1700000000000"},
	"ff_list_schedules": {"OK", "1700000000000", "0", "1", "s", "5", "4", "1700000001000", "1700000000000", sampleUUID,
		"7", "2", "1", "2", "2", "late", "1", "3", "me", "4", "you", "1", "2", "me", "9", "{}", sampleUUID, "in", "1",
		"late", "2"},
	"ff_audit_executions": {"OK", "1700000000000", "1", "R1f", "1", "1699999999999", "1", "missing", "q:1", "x",
		"nowhere", "1"},
	"ff_audit_index": {"OK", "17 x", "1", "1", "phantom", "delayed", "x", "at 17", "0"},
	"ff_audit_keys":  {"OK", "1", "orphan", "i", "x", "gone", "-"},
	"ff_audit_flows": {"OK", "1", "100", "7", "1 2", "1", "count", "fw:x", "mw", "1", "0"},
	"ff_audit_routes": {"OK", "1700000000000", "1", "2", "1", "", "1", "1", "5", "1", "count", "routeuse", "1", "5",
		"1"},
	"ff_read_history": {"OK", "5", "state", "T2", "created_at", "1", "attempts", "2", "ended_at", "9", "claimed_at",
		"7", "1", "0", "initial\x1f1\x1f2\x1fended_failure\x1fio\x1fw~1\x1f4\x1f1\x1f1", "2",
		"priority\x1f3\x1f0\x1f4\x1fw~1\x1f0 5\x1fme",
		"replayed\x1f4\x1f0\x1f4\x1fw~1\x1fme\x1fT2 3 io keep why so"},
	"ff_read_steps": {"OK", "1", "charge", "0", "1700000000000", "12", "3", "1", "ship", "1", "1700000000000", "7",
		"no truck"},
	"ff_explain_execution": {"OK", "1700000000000", "default\x1fdefault\x1fk\x1fgpu\x1f", "0", "0", "", "paused", "60",
		"1700000000000", "anna", "-1", "0", "0", "0", "0", "w", "1700000000000", "1", "0", "7", "state", "S1", "route",
		"4", "created_at", "1", "attempts", "1", "epoch", "5", "suspension_deadline", "9", "last_release", "u,5,0,x",
		"1", "0", "initial\x1f1\x1f2\x1fended_failure\x1fio\x1fw~1\x1f4\x1f1\x1f1", "3", "id", sampleUUID, "condition",
		"L\x1f1\x1f1\x1fgo", "n1", "1", "1", sampleUUID, samplePoint, "2", "st", "F1", "nn", "2", "3", "1", sampleUUID,
		"up", "A1",
		"1700000000000", "gate q cap", "2", "1700000000000", "anna", "why"},
	"ff_register_worker": {"OK", "renewed", "1700000030000", "4"},
	"ff_list_versions":   {"OK", "1", "1.4", "1700000000000"},
	"ff_list_workers": {"OK", "1700000000000", "", "1", "w", "1700000030000", "1700000000000", "1690000000000", "3",
		"2", "1", "why",
		`{"kinds":["k"]}`},
	"ff_list_sessions": {"OK", "1700000000000", "", "1", "w~1", "1700000030000", "0", "", "3"},
}

func TestGoodReplies(t *testing.T) {
	e, f := openFake(t)
	for _, c := range callers {
		f.answer(func(string) string { return envelope(1, good[c.function]...) })
		if err := c.call(t.Context(), e); err != nil {
			t.Errorf("%s: %v", c.function, err)
		}
	}
}

// A reply that is cut short, or has a slot of another type, is an error that says where; nothing is made up.
func TestHostileReplies(t *testing.T) {
	e, f := openFake(t)
	for _, c := range callers {
		slots := good[c.function]
		check := func(what, reply string) {
			t.Helper()
			f.answer(func(string) string { return reply })
			err := c.call(t.Context(), e)
			if !errors.Is(err, denied.Reply) || !strings.Contains(err.Error(), c.function) {
				t.Errorf("%s, %s: %v", c.function, what, err)
			}
		}
		needed := len(slots)
		if c.function == "ff_append_frames" || c.function == "ff_delay_execution" ||
			c.function == "ff_continue_execution" {
			needed-- // what was appended is not read; nor is the instant
		}
		for n := 1; n < needed; n++ {
			check("cut short", envelope(1, slots[:n]...))
		}
		for n := 1; n < needed; n++ {
			items := []string{integer(1)}
			for _, s := range slots {
				items = append(items, bulk(s))
			}
			for what, odd := range map[string]string{"nil": nilReply, "array": array(), "map": "%0\r\n"} {
				broken := append([]string(nil), items...)
				broken[n+1] = odd
				check(what, array(broken...))
			}
		}
		check("nothing", nilReply)
		check("an empty array", array())
		check("status alone", array(integer(1)))
		check("a text", bulk("OK"))
		check("a number", integer(1))
		check("status as array", array(array(), bulk("OK")))
		check("status as word", array(bulk("yes"), bulk("OK")))
		check("a code that is no text", array(integer(0), array()))
	}
}

// A count that promises more than the reply holds must not allocate for it, nor loop.
func TestLyingCounts(t *testing.T) {
	e, f := openFake(t)
	for _, c := range callers {
		for i := range good[c.function] {
			for _, lie := range []string{"-1", "9223372036854775807", "1000000000", "x", "", "1.5", "+1",
				"999999999999999999999"} {
				slots := append([]string(nil), good[c.function]...)
				slots[i] = lie
				answered := false
				f.answer(func(function string) string {
					if function != c.function || answered { // ff_session_held asks again while more is promised
						return envelope(0, "lease_expired")
					}
					answered = true
					return envelope(1, slots...)
				})
				err := c.call(t.Context(), e)
				if !answered {
					t.Fatalf("%s: another call came first", c.function)
				}
				if err != nil && denied.ClassOf(err) == 0 {
					t.Errorf("%s, slot %d is %q: %v has no class", c.function, i, lie, err)
				}
			}
		}
	}
}

func TestRefusals(t *testing.T) {
	e, f := openFake(t)
	for name, c := range map[string]struct {
		reply    string
		sentinel error
		slot     string
	}{
		"code":              {envelope(0, "stale_lease"), denied.StaleLease, ""},
		"code and detail":   {envelope(0, "execution_not_active", "T1", "5", "0", "c,5,0,"), denied.NotActive, "T1"},
		"unknown code":      {envelope(0, "brand_new", "x"), denied.Reply, "x"},
		"detail is no text": {array(integer(0), bulk("invalid_input"), integer(5)), flowfabric.ErrInvalidInput, ""},
		"detail is nil": {array(integer(0), bulk("invalid_input"), nilReply, bulk("x")),
			flowfabric.ErrInvalidInput, ""},
		"NOAUTH": {"-NOAUTH Authentication required.\r\n", flowfabric.ErrAuth, ""},
		"NOPERM": {"-NOPERM this user has no permissions\r\n", flowfabric.ErrAuth, ""},
		"OOM": {"-OOM command not allowed when used memory > 'maxmemory'.\r\n",
			flowfabric.ErrOutOfMemory, ""},
		"LOADING": {"-LOADING Redis is loading the dataset in memory\r\n", flowfabric.ErrTransport, ""},
		"READONLY": {"-READONLY You can't write against a read only replica.\r\n", flowfabric.ErrTransport,
			""},
		"CLUSTERDOWN":         {"-CLUSTERDOWN The cluster is down\r\n", flowfabric.ErrTransport, ""},
		"script error":        {"-ERR user_function:12: attempt to index a nil value\r\n", denied.Script, ""},
		"unknown function":    {"-ERR Function not found\r\n", denied.Script, ""},
		"wrong type of a key": {"-WRONGTYPE Operation against a key\r\n", denied.Script, ""},
	} {
		f.answer(func(function string) string {
			if function == "ff_version" {
				return envelope(1, "OK", protocol, "999999", "h")
			}
			return c.reply
		})
		_, err := e.ReleaseExecution(t.Context(), sampleFence)
		if !errors.Is(err, c.sentinel) {
			t.Errorf("%s: %v, want %v", name, err, c.sentinel)
			continue
		}
		typed, ok := errors.AsType[*flowfabric.Error](err)
		if c.slot != "" && (!ok || denied.Slot(typed, 0) != c.slot || typed.Op != "ff_release_execution") {
			t.Errorf("%s: detail %+v", name, typed)
		}
	}
}

// An id or partition that this deployment does not have is refused before anything is sent.
func TestForeignPartitions(t *testing.T) {
	e, f := openFake(t)
	f.answer(func(string) string { t.Error("something was sent"); return nilReply })
	id := mint.ID(4)
	fence := flowfabric.Fence{Execution: id, Session: "w~1", Claim: 1, Epoch: 1}
	ctx := t.Context()
	for name, call := range map[string]func() error{
		"create":   func() error { _, err := e.CreateExecutions(ctx, 4, []NewExecution{{ID: id}}); return err },
		"misplace": func() error { _, err := e.CreateExecutions(ctx, 2, []NewExecution{{ID: sampleID}}); return err },
		"zero id":  func() error { _, err := e.CreateExecutions(ctx, 0, []NewExecution{{}}); return err },
		"none":     func() error { _, err := e.CreateExecutions(ctx, 0, nil); return err },
		"too many": func() error { _, err := e.CreateExecutions(ctx, 0, make([]NewExecution, 101)); return err },
		"claim":    func() error { _, err := e.ClaimNext(ctx, ClaimRequest{Partition: 4}); return err },
		"complete": func() error {
			_, _,
				err := e.CompleteExecutions(ctx, 4, []Completion{{Fence: fence}}, nil)
			return err
		},
		"mixed": func() error {
			_, _,
				err := e.CompleteExecutions(ctx, 3, []Completion{{Fence: fence}}, nil)
			return err
		},
		"read":       func() error { _, err := e.ReadExecution(ctx, id); return err },
		"result":     func() error { _, _, err := e.ReadResult(ctx, id, 1); return err },
		"frames":     func() error { _, err := e.ReadFrames(ctx, id, 1, stream.Cursor{}, 1); return err },
		"limit":      func() error { _, err := e.ReadFrames(ctx, sampleID, 1, stream.Cursor{}, 10001); return err },
		"no limit":   func() error { _, err := e.ReadFrames(ctx, sampleID, 1, stream.Cursor{}, 0); return err },
		"no frames":  func() error { _, err := e.ReadFrames(ctx, sampleID, 0, stream.Cursor{}, 1); return err },
		"no runs":    func() error { _, err := e.ReadRuns(ctx, sampleID, 0, stream.Cursor{}, 1); return err },
		"no summary": func() error { _, err := e.ReadSummary(ctx, sampleID, 0); return err },

		"renew":   func() error { _, err := e.RenewSession(ctx, 4, "w~1", time.Second, 0); return err },
		"poll":    func() error { _, _, err := e.Poll(ctx, []uint16{0, 4}); return err },
		"no poll": func() error { _, _, err := e.Poll(ctx, nil); return err },
		"tick":    func() error { _, err := e.Tick(ctx, 65535, "w", false); return err },
		"listen":  func() error { return e.Subscribe(ctx, 4, []string{"c"}, nil, nil) },
		"no ear":  func() error { return e.Subscribe(ctx, 3, nil, nil, nil) },
	} {
		if err := call(); !errors.Is(err, flowfabric.ErrInvalidInput) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzReply: whatever a server answers, a caller gets a value or one of our errors. Slots are separated by the
// record separator; a slot of one control character is a nil, an array or a number.
func FuzzReply(f *testing.F) {
	const separator = "\x1e"
	for i, c := range callers {
		f.Add(uint8(i), true, strings.Join(good[c.function], separator))
	}
	f.Add(uint8(0), false, "stale_lease"+separator+"\x01"+separator+"x")
	f.Add(uint8(1), true, "OK"+separator+"\x02"+separator+"\x03")
	e, server := openFake(f)
	f.Fuzz(func(t *testing.T, caller uint8, ok bool, text string) {
		items := []string{integer(0)}
		if ok {
			items[0] = integer(1)
		}
		for slot := range strings.SplitSeq(text, separator) {
			switch slot {
			case "\x01":
				items = append(items, nilReply)
			case "\x02":
				items = append(items, array(bulk("x")))
			case "\x03":
				items = append(items, integer(7))
			default:
				items = append(items, bulk(slot))
			}
		}
		calls := 0
		server.answer(func(string) string {
			if calls++; calls > 1 {
				return envelope(0, "lease_expired")
			}
			return array(items...)
		})
		if err := callers[int(caller)%len(callers)].call(context.Background(), e); err != nil &&
			denied.ClassOf(err) == 0 {
			t.Fatalf("%v has no class", err)
		}
	})
}

// A poll reads answers that name places.
func TestPollAnswers(t *testing.T) {
	e, f := openFake(t)
	for _, c := range []struct {
		slots   []string
		workers int
		ready   int
		fails   bool
	}{
		{[]string{"OK", "5", "1", "1", "2", "1"}, 5, 2, false}, {[]string{"OK", "5", "0"}, 5, 0, false},
		{[]string{"OK", "5", "1", "2", "2", "1"}, 0, 0, true}, {[]string{"OK", "5", "1", "0", "2", "1"}, 0, 0, true},
		{[]string{"OK", "5", "2", "1", "0", "0"}, 0, 0, true},
	} {
		f.answer(func(string) string { return envelope(1, c.slots...) })
		states, workers, err := e.Poll(t.Context(), []uint16{3})
		if c.fails != errors.Is(err, denied.Reply) || !c.fails && (err != nil || workers != c.workers) {
			t.Errorf("%v: %d workers, %v", c.slots, workers, err)
		}
		if want := (PollState{Partition: 3, Ready: c.ready, TickOverdue: c.ready > 0}); !c.fails && states[0] != want {
			t.Errorf("%v: %+v, want %+v", c.slots, states, want)
		}
	}
}
