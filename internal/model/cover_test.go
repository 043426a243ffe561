package model_test

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/flowfabric/flowfabric-go/internal/contract"
	"github.com/flowfabric/flowfabric-go/internal/model"
)

// coverage counts what the random calls reached, so that a call, an answer or a move that is never generated fails.
type coverage struct {
	sync.Mutex
	answers map[string]int // "function code"
	kinds   map[string]int
	moves   map[string]int
}

func newCoverage() *coverage {
	return &coverage{answers: map[string]int{}, kinds: map[string]int{}, moves: map[string]int{}}
}

func (c *coverage) called(x call, r model.Reply) {
	c.Lock()
	defer c.Unlock()
	c.kinds[x.Kind]++
	c.answers[kinds[x.Kind].function+" "+r.Code]++
	if r.Next != nil {
		c.answers["ff_claim_next "+r.Next.Code]++
	}
}

func (c *coverage) moved(from, to model.Code) {
	c.Lock()
	defer c.Unlock()
	c.moves[string(from+" "+to)]++
}

// beyond lists by function what the model does not know: limits that take thousands of calls, token keys, and flows,
// which have an oracle of their own (flow_oracle_test.go).
var beyond = map[string]string{
	"ff_create_pending_waitpoint": "waitpoint_limit_exceeded step_limit_exceeded hmac_secret_not_initialized",
	"ff_suspend_execution":        "signal_limit_exceeded step_limit_exceeded hmac_secret_not_initialized",
	"ff_close_waitpoint":          "waitpoint_not_pending", // whoever holds waits on nothing
	"ff_purge_execution":          "flow_open",
	"ff_replay_execution":         "flow_cancelled resolution_pending",
	"ff_rewind_execution":         "flow_cancelled resolution_pending step_limit_exceeded key_taken",
	"ff_set_tags":                 "flow_not_found",
	"ff_mark_dead":                "worker_not_found",
	"ff_list_lanes":               "invalid_input",        // it takes nothing but the protocol
	"ff_send_message":             "corrupt mailbox_shut", // talk, which has scenarios of its own
	"ff_record_step":              "turn_stopped",
	"ff_read_messages":            "corrupt",
	"ff_receive_messages":         "step_limit_exceeded",
	"ff_deliver_signal":           "token_expired hmac_secret_not_initialized signal_limit_exceeded corrupt",
}

// tooFar are the answers that only the tour reaches for certain.
var tooFar = []string{"step_conflict", "summary_version_conflict", "frame_sequence_gap",
	"waitpoint_not_pending", "waitpoint_not_found", "invalid_policy", "invalid_capabilities",
	"invalid_resume_condition", "summary_too_large", "step_limit_exceeded", "too_many_routes",
	"pending_waitpoint_expired", "waitpoint_key_mismatch", "suspension_changed",
	"kid_not_current", "waitpoint_already_exists", "key_taken", "mailbox_full", "stream_closed",
	"REPLACED"}

// itemCodes are errors that an item of a batch answers; the headers list those of whole calls.
var itemCodes = map[string]string{
	"ff_create_execution": "invalid_capabilities invalid_policy invalid_tag_key payload_too_large idempotency_conflict lane_closed too_many_routes DUPLICATE REPLACED",
	"ff_complete_execution": "payload_too_large execution_not_found execution_not_active lease_revoked lease_expired stale_lease fence_required " +
		"partial_fence ALREADY_SATISFIED",
}

// answers lists what a function may answer.
func answers(h contract.Function) []string {
	all := slices.Concat([]string{model.OK}, h.Errors, strings.Fields(itemCodes[h.Name]))
	return slices.DeleteFunc(all, func(code string) bool {
		return slices.Contains(strings.Fields(beyond[h.Name]), code)
	})
}

// modelled lists the functions that the model has.
func modelled() (all []contract.Function) {
	for _, h := range contract.Functions() {
		for _, k := range kinds {
			if k.function == h.Name {
				all = append(all, h)
				break
			}
		}
	}
	return all
}

// verifyRandom fails for every kind of call and every error that random calls did not reach.
func (c *coverage) verifyRandom(t *testing.T) {
	t.Helper()
	for k := range kinds {
		if c.kinds[k] == 0 {
			t.Errorf("no random call was %q", k)
		}
	}
	reached := map[string]bool{}
	for pair := range c.answers {
		_, code, _ := strings.Cut(pair, " ")
		reached[code] = true
	}
	for _, h := range modelled() {
		for _, code := range answers(h) {
			if !reached[code] && !slices.Contains(tooFar, code) {
				t.Errorf("no random call was answered %s", code)
			}
		}
	}
	c.log(t, "random calls")
}

// verify fails for every legal move that the tour did not make, and for every answer of a modelled function that it
// did not get.
func (c *coverage) verify(t *testing.T) {
	t.Helper()
	for from, all := range model.Legal {
		for _, to := range all {
			if c.moves[string(from+" "+to)] == 0 {
				t.Errorf("nothing ever moved from %q to %q", from, to)
			}
		}
	}
	for _, h := range modelled() {
		for _, code := range answers(h) {
			if c.answers[h.Name+" "+code] == 0 {
				t.Errorf("%s never answered %s", h.Name, code)
			}
		}
	}
	c.log(t, "calls of the tour")
}

func (c *coverage) log(t *testing.T, what string) {
	t.Helper()
	total := 0
	for _, n := range c.kinds {
		total += n
	}
	byCode := map[string]int{}
	for pair, n := range c.answers {
		_, code, _ := strings.Cut(pair, " ")
		byCode[code] += n
	}
	t.Logf("%d %s, %d pairs of function and answer, %d moves; answers: %v", total, what, len(c.answers), len(c.moves),
		byCode)
}
