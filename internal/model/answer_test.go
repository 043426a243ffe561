package model_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/model"
)

// prose lists the errors whose slots are text for people.
var prose = []string{"invalid_input", "invalid_policy", "invalid_capabilities", "invalid_tag_key", "payload_too_large",
	"summary_too_large", "too_many_routes", "stale_lease", "replay_not_allowed", "invalid_resume_condition",
	"step_limit_exceeded", "mailbox_full", "partition_missing", "partition_frozen", "protocol_mismatch"}

// decode reads what a call was answered into the words of the model.
func decode(c call, status int64, code string, slots []string) (r model.Reply, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%s answered %d %s %q: %v", c.Kind, status, code, slots, p)
		}
	}()
	switch {
	case status == 0:
		return refusal(code, slots), nil
	case c.Kind == "create":
		return item(slots[1], model.Duplicate), nil
	case c.Kind == "complete" || c.Kind == "complete and claim":
		r = item(slots[1], model.Already)
		if slots[2] == "1" {
			next := claimReply(c, slots[3] == "1", slots[4], slots[5:])
			r.Next = &next
		}
		return r, nil
	case c.Kind == "claim":
		return claimReply(c, true, code, slots), nil
	}
	r = model.Reply{Code: code}
	if c.Kind == "suspend" && slots[3] != "" {
		slots[3] = sorted(slots[3])
	}
	for i, s := range slots {
		if !slices.Contains(kinds[c.Kind].drop, i) {
			r.Slots = append(r.Slots, s)
		}
	}
	return r, nil
}

func refusal(code string, slots []string) model.Reply {
	if slices.Contains(prose, code) || len(slots) == 0 {
		return model.Reply{Code: code}
	}
	return model.Reply{Code: code, Slots: slots}
}

// item reads the answer to one item of a batch: +text, =text or -code detail.
func item(text, again string) model.Reply {
	code := model.OK
	switch text[0] {
	case '-':
		code, detail, found := strings.Cut(text[1:], " ")
		if !found {
			return refusal(code, nil)
		}
		return refusal(code, strings.Split(detail, " "))
	case '=':
		code = again
	case '~':
		code = model.Replaced
	}
	if len(text) == 1 {
		return model.Reply{Code: code}
	}
	return model.Reply{Code: code, Slots: []string{text[1:]}}
}

// claimReply reads the answer of a claim.
func claimReply(c call, ok bool, code string, slots []string) model.Reply {
	if !ok {
		return refusal(code, slots)
	}
	rows, _ := strconv.Atoi(slots[7])
	r := model.Reply{Code: code, Slots: []string{slots[0], slots[1], slots[2], slots[3], slots[6], slots[7]}}
	w := &walk{slots: slots[8+2*rows:]}
	for range w.number() {
		r.Claims = append(r.Claims, w.claim(c.Claim))
	}
	if grants, others := w.number(), w.number(); grants != 0 || others != 0 || len(w.slots) > 0 {
		panic("grants, or slots are left")
	}
	return r
}

// sorted puts the signals of a resumption, which come in no order, into theirs.
func sorted(blob string) string {
	parts := strings.SplitN(blob, "\x1f", 10)
	if len(parts) < 10 {
		return blob
	}
	var signals []string
	for rest := parts[9]; rest != ""; {
		size, tail, _ := strings.Cut(rest, ":")
		n, err := strconv.Atoi(size)
		if err != nil {
			panic(err)
		}
		signals = append(signals, tail[:n])
		rest = strings.TrimPrefix(tail[n:], "\x1f")
	}
	slices.Sort(signals)
	out := strings.Join(parts[:9], "\x1f")
	for _, s := range signals {
		out += "\x1f" + strconv.Itoa(len(s)) + ":" + s
	}
	return out
}

// walk takes slots from the front.
type walk struct{ slots []string }

func (w *walk) next() string {
	s := w.slots[0]
	w.slots = w.slots[1:]
	return s
}

func (w *walk) number() int {
	n, err := strconv.Atoi(w.next())
	if err != nil {
		panic(err)
	}
	return n
}

func (w *walk) pairs() map[string]string {
	m := map[string]string{}
	for range w.number() {
		k := w.next()
		m[k] = w.next()
	}
	return m
}

// claim reads the header (id attempt epoch type route priority created claimed retries reclaims timeleft deadlinein
// sequence input tags steps resume) and what follows it.
func (w *walk) claim(q model.ClaimRequest) model.Claim {
	h := strings.Fields(w.next())
	n := func(i int) int64 {
		v, err := strconv.ParseInt(h[i], 10, 64)
		if err != nil {
			panic(err)
		}
		return v
	}
	kind, counts, _ := strings.Cut(h[3], "/")
	c := model.Claim{ID: h[0], Fence: model.Fence{Session: q.Session, Claim: q.Number, Epoch: uint64(n(2)),
		Attempt: int(n(1))},
		Type: flowfabric.AttemptType(kind), Route: int(n(4)), Priority: int(n(5)), Created: n(6), Claimed: n(7),
		Retries: int(n(8)), Reclaims: int(n(9)), TimeLeft: n(10), DeadlineIn: n(11), Sequence: uint64(n(12)),
		Input: n(13) != 0,
		Tags:  map[string]string{}, Steps: map[string]string{}}
	continues, takes, _ := strings.Cut(counts, "/")
	c.Continues, _ = strconv.Atoi(continues) // none is 0
	c.Takes, _ = strconv.Atoi(takes)
	if n(13) == 1 {
		w.next()
	}
	if n(14) == 1 {
		c.Tags = w.pairs()
	}
	if n(15) == 1 {
		c.Steps = w.pairs()
		for name, value := range c.Steps {
			if strings.HasPrefix(name, "\x1fa:") {
				c.Steps[name] = sorted(value)
			}
		}
	}
	if n(16) == 1 {
		c.Resume = sorted(w.next())
	}
	return c
}
