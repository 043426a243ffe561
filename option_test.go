package flowfabric_test

import (
	"reflect"
	"slices"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/flow"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/option"
)

// The type of each option has the markers of the places where it means something, and no other: the compiler refuses
// it elsewhere.
func TestWhereOptionsAreAccepted(t *testing.T) {
	places := []struct {
		name string
		want reflect.Type
	}{
		{"define", reflect.TypeFor[handler.DefineOption]()},
		{"submit", reflect.TypeFor[client.SubmitOption]()},
		{"schedule", reflect.TypeFor[client.ScheduleOption]()},
		{"node", reflect.TypeFor[flow.NodeOption]()},
		{"flow", reflect.TypeFor[flow.Option]()},
		{"submit flow", reflect.TypeFor[client.FlowOption]()},
		{"schedule flow", reflect.TypeFor[client.ScheduleFlowOption]()},
		{"attach", reflect.TypeFor[client.AttachOption]()},
		{"signal", reflect.TypeFor[client.SignalOption]()},
		{"approve", reflect.TypeFor[client.ApproveOption]()},
	}
	work := []string{"define", "submit", "schedule", "node"}
	shared := []string{"define", "submit", "schedule", "node", "flow", "submit flow", "schedule flow"}
	start := []string{"submit", "node"}
	for name, x := range map[string]struct {
		option any
		want   []string
	}{
		"Priority":     {flowfabric.Priority, work},
		"Lane":         {flowfabric.Lane, work},
		"Timeout":      {flowfabric.Timeout, work},
		"Deadline":     {flowfabric.Deadline, work},
		"Retries":      {flowfabric.Retries, work},
		"Retention":    {flowfabric.Retention, work},
		"Capabilities": {flowfabric.Capabilities, work},
		"Tags":         {flowfabric.Tags, shared},
		"Gates":        {flowfabric.Gates, shared},
		"Delay":        {flowfabric.Delay, start},
		"DelayUntil":   {flowfabric.DelayUntil, start},
		"DeadlineAt":   {flowfabric.DeadlineAt, start},
		"Creator":      {flowfabric.Creator, []string{"submit", "schedule", "node", "submit flow", "schedule flow"}},
		"Namespace": {flowfabric.Namespace,
			[]string{"submit", "schedule", "submit flow", "schedule flow", "attach"}},
		"IdempotencyKey": {flowfabric.IdempotencyKey, []string{"submit", "submit flow", "signal", "approve"}},
	} {
		var got []string
		for _, p := range places {
			if reflect.TypeOf(x.option).Out(0).Implements(p.want) {
				got = append(got, p.name)
			}
		}
		if !slices.Equal(got, x.want) {
			t.Errorf("%s is accepted by %v, want %v", name, got, x.want)
		}
	}
}

// Of two options that say the same thing the later one counts, also of two that say it differently.
func TestALaterOptionWins(t *testing.T) {
	at := time.Now()
	for name, x := range map[string]struct {
		options []any
		want    flowfabric.Start
	}{
		"one kind": {[]any{flowfabric.Priority(1), flowfabric.Priority(0)},
			flowfabric.Start{}},
		"instant": {[]any{flowfabric.Delay(time.Hour), flowfabric.DelayUntil(at)},
			flowfabric.Start{DelayUntil: at}},
		"delay": {[]any{flowfabric.DelayUntil(at), flowfabric.Delay(time.Hour)},
			flowfabric.Start{Delay: flowfabric.Millis(time.Hour)}},
		"instant to end": {[]any{flowfabric.Deadline(time.Hour), flowfabric.DeadlineAt(at)},
			flowfabric.Start{DeadlineAt: at}},
		"deadline": {[]any{flowfabric.DeadlineAt(at), flowfabric.Deadline(time.Hour)},
			flowfabric.Start{Deadline: flowfabric.Millis(time.Hour)}},
		"gates": {[]any{flowfabric.Gates("a", "q"), flowfabric.Gates("b")},
			flowfabric.Start{Names: []string{"b"}}},
	} {
		var got flowfabric.Start
		for i, o := range x.options {
			must.No(t, option.Apply(&got, i, o))
		}
		if !reflect.DeepEqual(got, x.want) {
			t.Errorf("%s: %+v, want %+v", name, got, x.want)
		}
	}
	if option.Apply(&flowfabric.Start{}, 0, nil) == nil || option.Apply(&flowfabric.Start{}, 0,
		flowfabric.By("anna")) == nil {
		t.Error("nil, or By, was taken for an option of an execution")
	}
}
