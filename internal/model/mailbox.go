package model

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/flowfabric/flowfabric-go/internal/limits"
)

// receiptStep begins the names of the steps that keep what was received.
const receiptStep = unit + "m:"

// mailboxWait is what Wait.Only is for who waits for a message.
const mailboxWait = "M" + unit

// Message is what a sender says.
type Message struct{ ID, Mailbox, Key, By, Payload string }

func mailboxName(name string) bool {
	return len(name) >= 1 && len(name) <= limits.MaxMailbox &&
		strings.IndexFunc(name, func(r rune) bool { return r < 0x20 || r > 0x7e }) < 0
}

// heads lists what waits in a mailbox, "" for all, the first that came first: up to most, and no more than 128 KiB
// but for the first.
func (x *Execution) heads(box string, most int) (all []string) {
	bytes := 0
	for _, text := range x.Box {
		if p := strings.SplitN(text, unit, 3); box != "" && p[1] != box {
			continue
		}
		if len(all) == most || len(all) > 0 && bytes+len(text) > 128<<10 {
			break
		}
		all, bytes = append(all, text), bytes+len(text)
	}
	return all
}

// awaits tells whether the execution is suspended until a message of a mailbox comes.
func (x *Execution) awaits(box string) bool {
	return x.suspended() && x.Suspension.Only == mailboxWait+box
}

// Send puts a message into a mailbox.
func (p *Partition) Send(id string, m Message) Reply {
	if r, shut := p.enter(); shut {
		return r
	}
	if !uuid(id) || !mailboxName(m.Mailbox) || !uuid(m.ID) || len(m.Key) > limits.MaxIdempotencyKey ||
		len(m.By) > limits.MaxSignalSource {
		return answer("invalid_input")
	}
	if len(m.Payload) > limits.MaxMessage {
		return answer("payload_too_large")
	}
	x := p.Executions[id]
	if x == nil {
		return p.missing(id)
	}
	mark := "s" + m.ID
	if m.Key != "" {
		mark = "k" + m.Key
	}
	if first, known := x.Marks[mark]; known {
		return answer(Already, number(first), number(len(x.Box)))
	}
	if x.terminal() {
		return answer("target_not_signalable", string(x.Code))
	}
	text := strings.Join([]string{number(x.Sent + 1), m.Mailbox, number(p.Now), m.By, "json", m.Payload}, unit)
	if len(x.Box) >= limits.MaxMessages || len(strings.Join(x.Box, ""))+len(text) > limits.MaxMessageBytes {
		return answer("mailbox_full")
	}
	x.Sent++
	x.Box, x.Marks = append(slices.Clip(x.Box), text), maps.Clone(x.Marks)
	if x.Marks == nil {
		x.Marks = map[string]int{}
	}
	x.Marks[mark] = x.Sent
	maps.DeleteFunc(x.Marks, func(_ string, n int) bool { return n <= x.Sent-limits.KnownMessages })
	waiting := number(len(x.Box))
	if x.awaits(m.Mailbox) {
		p.resume(x, ending{reason: "resumed", cause: "message", delay: x.Suspension.Delay})
	}
	return answer(OK, number(x.Sent), waiting)
}

// Receive hands messages to the holder and records that it did.
func (p *Partition) Receive(id string, f Fence, name, box string, most int, why string) Reply {
	if r, shut := p.enter(); shut {
		return r
	}
	if code := incomplete(id, f); code != "" {
		return answer(code)
	}
	if len(name) < 1 || len(name) > 125 || !mailboxName(box) || most < 1 || most > limits.MaxReceived ||
		len(why) > 32 || strings.Trim(why, "abcdefghijklmnopqrstuvwxyz_") != "" {
		return answer("invalid_input")
	}
	x, refused, holder := p.refuse(id, f)
	if !holder {
		return refused
	}
	if stored, ok := x.Steps[receiptStep+name]; ok {
		return answer(Already, stored)
	}
	list := x.heads(box, most)
	if len(list) == 0 && why == "" {
		return answer(OK, "")
	}
	value := why
	if len(list) > 0 {
		value = ""
	}
	for _, text := range list {
		value += unit + strconv.Itoa(len(text)) + ":" + text
	}
	total := len(receiptStep+name) + len(value)
	for k, v := range x.Steps {
		total += len(k) + len(v)
	}
	if total > limits.MaxStepTotal || len(x.Steps) >= limits.MaxSteps {
		return answer("step_limit_exceeded")
	}
	x.Box = slices.DeleteFunc(slices.Clone(x.Box), func(text string) bool { return slices.Contains(list, text) })
	x.record(receiptStep+name, value)
	if a := x.attempt(); a.Run == f.Epoch {
		a.Recorded = a.Sequence
		x.cover(receiptStep + name)
	}
	return answer(OK, value)
}

// Messages lists what nobody has received.
func (p *Partition) Messages(id string) Reply {
	if r, shut := p.enter(); shut {
		return r
	}
	if !uuid(id) {
		return answer("invalid_input")
	}
	x := p.Executions[id]
	if x == nil {
		return p.missing(id)
	}
	list := x.heads("", limits.MaxReceived)
	return answer(OK, append([]string{number(x.Sent), number(len(x.Box)), number(len(strings.Join(x.Box, ""))),
		number(len(list))}, list...)...)
}

// missing is what readers are told of an execution that is not there.
func (p *Partition) missing(id string) Reply {
	if t, ok := p.Tombstones[id]; ok {
		return answer("result_purged", string(t.Code))
	}
	return answer("execution_not_found")
}
