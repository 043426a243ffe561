package conformance

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
)

// goldenFile says what every function does to an execution in every state, one line each: state, function, answer,
// state after. It is read by people: a change of a line is a change of the contract. FLOWFABRIC_GOLDEN=write makes it
// anew.
const goldenFile = "testdata/transitions.txt"

var goldenScenarios = []scenario{
	{name: "every function answers in every state as the golden file records", run: func(w *env) {
		var table, want bytes.Buffer
		stored, err := os.ReadFile(goldenFile)
		w.no(err)
		rows, n := strings.SplitAfter(string(stored), "\n"), 0
		w.quiet = true
		for _, code := range reachable {
			for i, name := range slices.Concat(goldenCalls, memberCalls) {
				n++
				if n%max(1, w.srv.Share) != 0 { // elsewhere all of them are run
					continue
				}
				if at := slices.IndexFunc(rows, func(r string) bool {
					return strings.HasPrefix(r, fmt.Sprintf("%-4s %-28s ", code, name))
				}); at >= 0 {
					want.WriteString(rows[at])
				}
				w.reset()
				w.hands, w.members = true, i >= len(goldenCalls)
				x := w.state(code, deadline(24*time.Hour), timeout(12*time.Hour))
				c := w.goldenCall(name, x)
				before := w.digest()
				a := w.fcall(c.name, c.args...)
				if refused(c.name, a) && w.digest() != before {
					w.Errorf("%s of %s was refused and changed:\n%s", name, code, difference(before, w.digest()))
				}
				if bad := w.violations(w.dump()); len(bad) > 0 {
					w.Errorf("%s of %s broke:\n%s", name, code, strings.Join(bad, "\n"))
				}
				fmt.Fprintf(&table, "%-4s %-28s %-26s %s\n", code, name, w.goldenAnswer(c, a), w.stateOf(x.id))
			}
		}
		if os.Getenv("FLOWFABRIC_GOLDEN") == "write" {
			w.no(os.WriteFile(goldenFile, table.Bytes(), 0o644))
			return
		}
		if got := table.String(); got != want.String() {
			w.Fatalf("the table has changed:\n%s", difference(want.String(), got))
		}
		if w.srv.Share <= 1 && table.Len() != len(stored) {
			w.Fatalf("%d bytes of the table are about nothing", len(stored)-table.Len())
		}
	}},
}

// stateOf is the state code of an execution as it is stored now.
func (w *env) stateOf(id flowfabric.ExecutionID) string {
	code := w.core(id)["s"]
	if code == "" {
		return "gone"
	}
	return code
}

// goldenCalls are the calls that concern an execution, in every form that a state can tell apart.
var goldenCalls = []string{
	"create again", "create with another payload", "claim by another", "claim again", "complete", "fail",
	"fail for good", "fail as a timeout", "delay", "delay by nothing", "continue", "release", "cancel as owner",
	"cancel by an operator", "cancel by a flow", "step", "progress", "append", "append in modes", "renew",
	"close the session", "session held", "revoke", "revoke another's", "mark dead", "priority", "run now", "set delay",
	"tags", "replay", "replay forced", "rewind", "fork", "purge", "read", "read history", "read stream", "tick",
	"pass ring",
	"open a waitpoint", "close a waitpoint", "suspend", "suspend again", "deliver", "deliver without token", "approve",
	"resume", "stop", "reissue a token", "read suspension", "read signals", "send", "receive", "read messages",
	"claim with gates", "claim what is granted", "return the grant", "ask about the hold", "pause", "unpause",
}

// memberCalls are calls that concern a member of a flow; what they are made about is one.
var memberCalls = []string{
	"make children", "wait for others", "be awaited", "flow", "stage again", "stage another",
	"seal", "grow", "cancel all", "cancel pending", "flow only", "flow replay", "flow replay forced", "drain",
	"read inputs",
}

// goldenCall is one of them, made by the holder where there was one.
func (w *env) goldenCall(name string, x placed) call {
	w.Helper()
	f := x.fence
	if x.worker == nil {
		f = flowfabric.Fence{Execution: x.id, Session: "w1~1", Claim: 1, Epoch: 1}
	}
	id := ids.UUID(x.id).String()
	fenced := func(function string, more ...string) call {
		return call{function, slices.Concat([]string{proto}, fenceArgs(f), more)}
	}
	operator := func(function string, more ...string) call {
		return call{function, slices.Concat([]string{proto, id}, more)}
	}
	again := func(digest string) call {
		item := w.item()
		item.ID, item.Digest = x.id, digest
		return call{"ff_create_execution", createArgs(item)}
	}
	flow := x.flow
	if flow.IsZero() {
		flow = flowfabric.FlowID(x.id) // there is none
	}
	about := func(function string, more ...string) call {
		return call{function, slices.Concat([]string{proto, ids.UUID(flow).String()}, more)}
	}
	staging := func(node string) call {
		m := engine.FlowMember{NewExecution: w.item(), Node: node}
		m.ID = flow.Member(node)
		return call{"ff_flow_stage", wireStage(flow, m)}
	}
	switch name {
	case "create again":
		return again("")
	case "create with another payload":
		w.editRecord(ids.UUID(x.id), func(f fields) { f["pd"] = "d1" })
		return again("d2")
	case "claim by another":
		k := w.worker("w2")
		k.nothingYet()
		return call{"ff_claim_next", claimArgs(k.request(1))}
	case "claim again":
		k := x.worker
		if k == nil {
			k = w.worker("w2")
			k.nothingYet()
			return call{"ff_claim_next", claimArgs(k.request(1))}
		}
		q := k.request(1)
		q.Number = f.Claim
		return call{"ff_claim_next", claimArgs(q)}
	case "complete":
		return call{"ff_complete_execution", slices.Concat([]string{proto, "1"}, fenceArgs(f), []string{"result", "0"})}
	case "fail":
		return fenced("ff_fail_execution", "x", "reason", "0", "", "", "0")
	case "fail for good":
		return fenced("ff_fail_execution", "x", "reason", "1", "", "", "0")
	case "fail as a timeout":
		return fenced("ff_fail_execution", "attempt_timeout", "", "0", "", "", "0")
	case "delay":
		return fenced("ff_delay_execution", "+1000", "")
	case "delay by nothing":
		return fenced("ff_delay_execution", "+0", "")
	case "continue":
		return fenced("ff_continue_execution", "next")
	case "release":
		return fenced("ff_release_execution")
	case "cancel as owner":
		return fenced("ff_cancel_execution", "owner")
	case "cancel by an operator":
		return operator("ff_cancel_execution", "", "", "", "", "operator_override")
	case "cancel by a flow":
		return operator("ff_cancel_execution", "", "", "", "", "flow_cascade")
	case "step":
		return fenced("ff_record_step", "step", "value", "0", "")
	case "progress":
		return fenced("ff_update_progress", "50", "half")
	case "append":
		return fenced("ff_append_frames", "2", "1", "d", "token", "", "", "", "1", "x")
	case "append in modes":
		return fenced("ff_append_frames", "2", "2", "l5000", "token", "", "", "", "1", "x", "s", "summary", "json", "",
			"", "1", "{}", "0", "{}", "64")
	case "renew":
		return call{"ff_session_renew", []string{proto, f.Session, "30000", "0"}}
	case "close the session":
		return call{"ff_session_close", []string{proto, f.Session}}
	case "session held":
		return call{"ff_session_held", []string{proto, f.Session, "0"}}
	case "revoke":
		return operator("ff_revoke_lease", "", request.String())
	case "revoke another's":
		return operator("ff_revoke_lease", "w9~9", request.String())
	case "mark dead":
		return call{"ff_mark_dead", []string{protoOf("", "reason"), "session", f.Session}}
	case "priority":
		return operator("ff_change_priority", "5")
	case "run now":
		return operator("ff_set_delay", "0", request.String(), "")
	case "set delay":
		return operator("ff_set_delay", "5000", request.String(), "")
	case "tags":
		return operator("ff_set_tags", "execution", "1", "a.b", "c", "0")
	case "replay":
		return operator("ff_replay_execution", "11111111-1111-1111-1111-111111111111", "keep", "0")
	case "replay forced":
		return operator("ff_replay_execution", "11111111-1111-1111-1111-111111111111", "drop", "1")
	case "rewind":
		return operator("ff_rewind_execution", "11111111-1111-1111-1111-111111111111", "step", "0", "utf8", "x")
	case "fork":
		return operator("ff_fork_execution", "55555555-5555-5555-5555-555555555555", "", "0", "")
	case "purge":
		return operator("ff_purge_execution", "86400000")
	case "read":
		return operator("ff_read_execution")
	case "read history":
		return operator("ff_read_history")
	case "read stream":
		return operator("ff_read_attempt_stream", "1")
	case "tick":
		return call{"ff_tick", []string{proto, ticker, "0"}}
	case "pass ring":
		return call{"ff_forward_ring", []string{proto, "abc0"}}
	case "open a waitpoint":
		return fenced("ff_create_pending_waitpoint", wirePend("draft", minted("draft"))...)
	case "close a waitpoint":
		return fenced("ff_close_waitpoint", x.waitpoint.ID.String())
	case "suspend":
		return fenced("ff_suspend_execution", wireSuspend(suspension())...)
	case "suspend again":
		if x.suspension.Condition == "" { // it was never
			x.suspension = suspension(onPending(x.waitpoint))
			x.suspension.Bindings[0].Key = cmp.Or(x.waitpoint.Key, "none")
		}
		return fenced("ff_suspend_execution", wireSuspend(x.suspension)...)
	case "deliver":
		return call{"ff_deliver_signal", wireDeliver(x.id, x.token(), "go")}
	case "deliver without token":
		wrong := x.token()
		wrong.Digest = digestOf("a guess")
		return call{"ff_deliver_signal", wireDeliver(x.id, wrong, "go")}
	case "approve":
		return call{"ff_approve_waitpoint", wireApprove(x.id, cmp.Or(x.waitpoint.Key, "none"), "go")}
	case "send":
		return call{"ff_send_message", wireSend(x.id, "22222222-2222-2222-2222-222222222222")}
	case "receive":
		return fenced("ff_receive_messages", "user·1", "user", "1", "looked", "")
	case "read messages":
		return operator("ff_read_messages", "0", "10")
	case "resume":
		return call{"ff_resume_execution", wireResume(x.id, request.String())}
	case "stop":
		return operator("ff_stop_turn", request.String())
	case "reissue a token":
		return call{"ff_reissue_token", wireReissue(x.id, x.token())}
	case "read suspension":
		return operator("ff_read_suspension")
	case "make children":
		return fenced("ff_make_children", wireWait("other", "all", "cancel", w.child(x.id, "other", "c"))...)
	case "wait for others":
		return fenced("ff_wait_for_others", "others", "all", "run", "cancel", "1", elsewhere(x.id, "x"), "x", ".", "")
	case "be awaited":
		return call{"ff_note_waiters",
			[]string{proto, "1", "+", ids.UUID(x.id).String(), elsewhere(x.id, "waiter"), "1.0"}}
	case "flow":
		return about("ff_flow_describe")
	case "stage again":
		return staging("x")
	case "stage another":
		return staging("another")
	case "seal":
		return about("ff_flow_seal", "seal", "1", "0")
	case "grow":
		return about("ff_flow_seal", "grow", "1", "0")
	case "cancel all":
		return about("ff_flow_cancel", "cancel_all")
	case "cancel pending":
		return about("ff_flow_cancel", "cancel_pending")
	case "flow only":
		return about("ff_flow_cancel", "flow_only")
	case "flow replay":
		return about("ff_flow_replay", "11111111-1111-1111-1111-111111111111", "keep", "0", "1", id)
	case "flow replay forced":
		return about("ff_flow_replay", "11111111-1111-1111-1111-111111111111", "drop", "1", "1", id)
	case "drain":
		return call{"ff_flow_drain", []string{proto}}
	case "read inputs":
		return operator("ff_read_inputs", "1")
	case "claim with gates":
		k := w.worker("g2")
		k.gates = true
		k.nothingYet()
		return call{"ff_claim_next", granting(claimArgs(k.request(1)))}
	case "claim what is granted":
		session, grant := x.asking(f)
		return call{"ff_claim_granted", slices.Concat([]string{proto, session, "1"}, grantArgs(grant), []string{"0"})}
	case "return the grant":
		session, grant := x.asking(f)
		return call{"ff_release_grant",
			slices.Concat([]string{proto, session, "1"}, grantArgs(grant), []string{"0", "0"})}
	case "ask about the hold":
		_, grant := x.asking(f)
		return call{"ff_check_holds", slices.Concat([]string{proto, "1"}, grantArgs(grant))}
	case "pause":
		return operator("ff_hold_execution", "1")
	case "unpause":
		return operator("ff_hold_execution", "0")
	case "read signals":
		return operator("ff_read_signals", x.waitpoint.ID.String(), "0")
	}
	w.Fatalf("no call %q", name)
	return call{}
}

// asking is who has a grant of the execution, or else who held it last and under what.
func (x placed) asking(f flowfabric.Fence) (session string, grant engine.Grant) {
	if x.asker != nil {
		return x.asker.session, x.grant
	}
	return f.Session, engine.Grant{Execution: x.id, Epoch: f.Epoch}
}

// token is the waitpoint's, or one that nobody has.
func (x placed) token() engine.Minted {
	if x.waitpoint.Key == "" {
		return minted("none")
	}
	return x.waitpoint
}

// goldenAnswer is a reply's code and, of what else it says, the part that does not depend on time.
func (w *env) goldenAnswer(c call, a answer) string {
	switch code := outcome(c.name, a); {
	case c.name == "ff_claim_next" && code == "OK":
		claims := a.slots[8+2*number64(a.slots[7])]
		if a.slots[0] == "1" {
			return "OK again " + claims
		}
		if c.args[len(c.args)-1] == "32" && claims == "0" {
			return "OK grants " + a.slots[9+2*number64(a.slots[7])]
		}
		if claims == "0" {
			return "OK nothing"
		}
		return "OK " + strings.Fields(a.slots[9+2*number64(a.slots[7])])[3]
	case c.name == "ff_fail_execution" && a.status == 1, c.name == "ff_revoke_lease" && a.status == 1,
		c.name == "ff_session_held" && a.status == 1:
		return code + " " + a.slots[0]
	case slices.Contains([]string{"ff_suspend_execution", "ff_resume_execution"}, c.name) && a.status == 1:
		return code + " " + a.slots[0]
	case slices.Contains([]string{"ff_deliver_signal", "ff_approve_waitpoint"}, c.name) && a.status == 1:
		return code + " " + a.slots[1] + " " + a.slots[2]
	case slices.Contains([]string{"ff_claim_granted", "ff_release_grant", "ff_check_holds"}, c.name) && a.status == 1:
		return code + " " + a.slots[1]
	case c.name == "ff_read_suspension" && a.status == 1:
		told := "told nothing"
		if a.slots[2] != "" {
			told = "told"
		}
		return code + " " + told
	case c.name == "ff_flow_replay" && a.status == 1:
		return code + " " + a.slots[1]
	case slices.Contains([]string{"ff_make_children", "ff_flow_seal", "ff_flow_drain", "ff_read_inputs"}, c.name) &&
		a.status == 1:
		return code + " " + a.slots[0]
	case c.name == "ff_note_waiters" && a.status == 1:
		return code + " " + a.slots[1]
	case c.name == "ff_flow_cancel" && a.status == 1:
		return code + " " + a.slots[0] + " " + a.slots[2]
	case c.name == "ff_flow_describe" && a.status == 1:
		return code + " " + a.slots[slices.Index(a.slots, "st")+1]
	case c.name == "ff_tick":
		return code + " requeued " + a.slots[4]
	case c.name == "ff_read_attempt_stream" && a.status == 1:
		return strings.TrimSpace(code + " closed " + a.slots[7] + " " + a.slots[9])
	default:
		return code
	}
}

// request is one that the caller made up once, whatever happens to its calls.
var request = uuid.MustParse("11111111-1111-1111-1111-111111111111")
