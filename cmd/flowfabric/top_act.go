package main

import (
	"context"
	"fmt"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
)

// topExecutions is how many executions of each sort top shows to be chosen.
const topExecutions = 8

// topActs is what a person does in top: it chooses a row by keys, and acts on it after a question.
type topActs struct {
	app    *app
	source topSource
	queues []topQueue
	listed []admin.Listed // what runs, and what failed last
	row    int            // chosen: the queues first, then the executions
	asks   *topAsk
	said   string // what came of the last key
}

// topAsk is a question that waits for y.
type topAsk struct {
	text string
	do   func(ctx context.Context) error
}

// topKeys are told at the bottom.
const topKeys = "keys: j k or arrows choose · c cancel · r replay · p pause or resume the lane · q quit"

// look reads the executions of the next picture, whose queues are given.
func (t *topActs) look(ctx context.Context, queues []topQueue) error {
	t.queues, t.listed = queues, nil
	for _, f := range []struct {
		state  flowfabric.PublicState
		newest string
	}{{flowfabric.Active, "false"}, {flowfabric.Failed, "true"}} {
		found, err := t.source.executions(ctx, string(f.state), f.newest, topExecutions)
		if t.listed = append(t.listed, found.Items...); err != nil {
			return err
		}
	}
	t.row = max(0, min(t.row, t.rows()-1))
	return nil
}

func (t *topActs) rows() int { return len(t.queues) + len(t.listed) }

// key does what a key says. over tells that the person has had enough.
func (t *topActs) key(ctx context.Context, key byte) (over bool) {
	t.said = ""
	if asked := t.asks; asked != nil {
		if t.asks = nil; key != 'y' && key != 'Y' {
			t.said = "nothing was changed"
			return false
		}
		ctx, cancel := context.WithTimeout(ctx, t.app.timeout)
		defer cancel()
		t.said = "done: " + asked.text
		if err := asked.do(ctx); err != nil {
			t.said = "failed: " + message(err)
		}
		return false
	}
	switch key {
	case 'q':
		return true
	case 'j':
		t.row = max(0, min(t.row+1, t.rows()-1))
	case 'k':
		t.row = max(0, t.row-1)
	case 'c', 'r':
		t.aboutExecution(key)
	case 'p':
		t.aboutLane()
	}
	return false
}

func (t *topActs) aboutExecution(key byte) {
	if t.row < len(t.queues) || t.rows() == 0 {
		t.said = "choose an execution first"
		return
	}
	id := t.listed[t.row-len(t.queues)].ID
	if key == 'r' {
		t.asks = &topAsk{"replay " + id.String(), func(ctx context.Context) error { return t.source.replay(ctx, id) }}
		return
	}
	t.asks = &topAsk{"cancel " + id.String(), func(ctx context.Context) error { return t.source.cancel(ctx, id) }}
}

// aboutLane pauses the lane of the chosen row, or resumes it if it is anything but active.
func (t *topActs) aboutLane() {
	if t.rows() == 0 {
		t.said = "there is no lane"
		return
	}
	var namespace, lane string
	if t.row < len(t.queues) {
		namespace, lane = t.queues[t.row].Namespace, t.queues[t.row].Lane
	} else {
		x := t.listed[t.row-len(t.queues)]
		namespace, lane = x.Namespace, x.Lane
	}
	verb, to := "pause", flowfabric.LanePaused
	for _, q := range t.queues {
		if q.Namespace == namespace && q.Lane == lane && q.State != flowfabric.LaneActive {
			verb, to = "resume", flowfabric.LaneActive
		}
	}
	t.asks = &topAsk{fmt.Sprintf("%s lane %s of namespace %s", verb, lane, namespace), func(ctx context.Context) error {
		return t.source.setLane(ctx, namespace, lane, to)
	}}
}

// text writes the executions below the queues, and what the keys do.
func (t *topActs) text(p *page) {
	if len(t.listed) > 0 {
		p.WriteByte('\n')
		rows := make([][]any, len(t.listed))
		for i, x := range t.listed {
			rows[i] = append([]any{t.mark(len(t.queues) + i)}, listedRow(x)...)
		}
		p.table([]string{" ", "ID", "STATE", "LANE", "KIND", "PRIO", "ATTEMPTS", "CREATED", "DETAIL"}, rows)
	}
	switch {
	case t.asks != nil:
		p.say("\n%s? y does it, any other key does not", t.asks.text)
	case t.said != "":
		p.say("\n%s", t.said)
	default:
		p.say("\n%s", topKeys)
	}
}

// mark shows which row is chosen.
func (t *topActs) mark(row int) cell {
	if t != nil && row == t.row {
		return styled(bold, ">")
	}
	return styled(normal, " ")
}
