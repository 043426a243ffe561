package httpapi

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"slices"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/internal/apiv1"
	"github.com/flowfabric/flowfabric-go/internal/words"
	"github.com/flowfabric/flowfabric-go/stream"
)

// nothing is the body of a change that needs none.
type nothing struct{}

// bulkTime is how long one request of a bulk action works, about.
const bulkTime = 20 * time.Second

type bulkBody struct {
	Action   string `json:"action" jsonschema:"replay, cancel, purge, run_now, priority, hold or unhold"`
	Priority *int   `json:"priority,omitempty" jsonschema:"of action priority, which needs it: 0..9000, higher first"`
	admin.Replay
	kept
	admin.BulkOptions
	why
}

// action is what a bulk request does to each.
func (b *bulkBody) action(c *call) (admin.BulkAction, error) {
	switch {
	case b.Action == "priority" && b.Priority == nil:
		return admin.BulkAction{}, absent("/priority")
	case b.Action != "priority" && b.Priority != nil:
		return admin.BulkAction{}, invalid("/priority", "it belongs to action priority")
	case b.Action != "purge" && b.KeepMs != 0:
		return admin.BulkAction{}, invalid("/keep_ms", "it belongs to action purge")
	case b.Action != "replay" && b.Replay != (admin.Replay{}):
		return admin.BulkAction{}, invalid("/action", "from_scratch, from_step and force belong to replay")
	}
	switch b.Action {
	case "replay":
		return admin.BulkReplay(b.Replay), nil
	case "cancel":
		return admin.BulkCancel(), nil
	case "run_now":
		return admin.BulkRunNow(), nil
	case "priority":
		return admin.BulkPriority(*b.Priority), nil
	case "hold":
		return admin.BulkHold(), nil
	case "unhold":
		return admin.BulkUnhold(), nil
	case "purge":
		if !slices.Contains(root, c.who.Role) {
			return admin.BulkAction{}, &problem{Status: http.StatusForbidden, Code: "forbidden", Field: "/action",
				Detail: "purge wants an admin"}
		}
		return admin.BulkPurge(ms(b.KeepMs)), nil
	}
	return admin.BulkAction{},
		invalid("/action", "it is %.32q, want replay, cancel, purge, run_now, priority, hold or unhold", b.Action)
}

func (c *call) bulk(b *bulkBody) (r admin.BulkResult, err error) {
	f, err := c.filter(c.query())
	if err != nil {
		return r, err
	}
	if f.ErrorText != "" && c.h.cfg.Redact != nil {
		return r, invalid("error", "messages of failures are redacted here, so a bulk action cannot choose by them")
	}
	action, err := b.action(c)
	if err != nil {
		return r, err
	}
	ctx, cancel := context.WithTimeout(c.ctx(), bulkTime)
	defer cancel()
	r, err = c.h.admin.Bulk(ctx, f, action, b.BulkOptions, c.act(b.why)...)
	if err != nil && (c.ctx().Err() != nil || ctx.Err() == nil) {
		return r, err
	}
	for i, text := range r.Texts {
		r.Texts[i] = inMembers(text)
	}
	return r, nil
}

type transcript struct {
	Text     string         `json:"text" jsonschema:"the durable frames, one after the other"`
	Frames   []stream.Frame `json:"frames"`
	Lost     uint64         `json:"lost" jsonschema:"frames that were gone before they could be read"`
	Position string         `json:"position" jsonschema:"pass it to the events as after"`
	More     bool           `json:"more,omitempty" jsonschema:"this is the beginning, of about 4 MiB: what follows are its events after position"`
}

// maxTranscript is how many bytes of payloads are read for a transcript, about.
const maxTranscript = 4 << 20

func (c *call) transcript(id flowfabric.ExecutionID) (out transcript, err error) {
	s, err := c.h.client.Get(c.ctx(), id)
	if err != nil {
		return out, err
	}
	var t stream.Transcript
	size, more := 0, false
	for e, err := range c.h.client.Tail(c.ctx(), id, client.Stored()) {
		if err != nil {
			return out, err
		}
		if more = size >= c.h.most; more {
			break
		}
		t.Add(e)
		size += len(e.Frame.Payload)
	}
	shown := c.redactorOf(id, s.Route)
	out = transcript{Frames: []stream.Frame{}, Lost: t.Lost(), Position: string(t.Position()), More: more}
	var text []byte
	for _, f := range t.Frames() {
		f = shown.frame(f)
		if f.Mode == stream.ModeDurable {
			text = append(text, f.Payload...)
		}
		out.Frames = append(out.Frames, f)
	}
	out.Text = string(text)
	return out, nil
}

func (c *call) happenings() error {
	q := c.query()
	o := admin.SubscribeOptions{Ends: true, Leases: q.flag("leases"), Signals: q.flag("signals"), Lane: q.text("lane"),
		Kind: q.text("kind"), Tags: q.tags("tag")}
	field, text := "after", q.text("after")
	if last := c.r.Header.Get("Last-Event-ID"); last != "" {
		field, text = "Last-Event-ID", last
	}
	if text != "" {
		cursor, err := base64.RawURLEncoding.DecodeString(text)
		if err != nil {
			q.wrong(field, "it is no id of an event")
		}
		o.From = string(cursor)
	}
	if q.err != nil {
		return q.err
	}
	var err error
	if o.Namespace, err = c.namespace(q.text("namespace")); err != nil {
		return err
	}
	feed, err := c.h.admin.Subscribe(c.ctx(), o)
	if o.From != "" && errors.Is(err, flowfabric.ErrInvalidInput) {
		q.wrong(field, "%v", err)
		return q.err
	}
	if err != nil {
		return err
	}
	out := newEventWriter(c, eventMedia)
	defer out.close()
	told := time.Time{}
	for e, err := range feed.Events(c.ctx()) {
		if errors.Is(err, flowfabric.ErrFeedGap) {
			if out.emit("", "gap", problemText{err.Error()}) != nil {
				return nil
			}
			continue
		}
		if err != nil {
			out.end(err)
			return nil
		}
		id := ""
		if time.Since(told) >= time.Second { // it is long, and costs more than the event
			id, told = base64.RawURLEncoding.EncodeToString([]byte(feed.Cursor())), time.Now()
		}
		if out.emit(id, e.Kind, words.Blanked(e, "operator")) != nil {
			return nil
		}
	}
	return nil
}

type flowPage admin.Page[flowfabric.FlowSummary]

func (c *call) flows() (out flowPage, err error) {
	q := c.query()
	n, oldest := int(q.number("limit", 1, maxPage, defaultPage)), q.flag("oldest")
	if q.err != nil {
		return out, q.err
	}
	namespace, err := c.namespace(q.text("namespace"))
	if err != nil {
		return out, err
	}
	f := admin.FlowQuery{Namespace: namespace, Kind: q.text("kind"), Oldest: oldest}
	for _, state := range q.list("state") {
		f.States = append(f.States, flowfabric.FlowState(state))
	}
	page, err := c.h.admin.FlowsPage(c.ctx(), f, q.text("cursor"), n)
	page.Items = slices.DeleteFunc(append([]flowfabric.FlowSummary{}, page.Items...),
		func(x flowfabric.FlowSummary) bool { return x.ID.IsZero() || x.State == "" })
	return flowPage(page), err
}

// flowOf is the flow that the path names, if the principal may see it.
func (c *call) flowOf() (*client.Flow, flowfabric.FlowRecord, error) {
	id, err := flowfabric.ParseFlowID(c.r.PathValue("id"))
	if err != nil {
		return nil, flowfabric.FlowRecord{}, invalid("id", "%.80q is no id of a flow", c.r.PathValue("id"))
	}
	f := c.h.client.Flow(id)
	record, err := f.Describe(c.ctx())
	c.acting("", record.Namespace)
	if err == nil && !c.who.may(record.Namespace) ||
		errors.Is(err, flowfabric.ErrResultPurged) && len(c.who.Namespaces) > 0 {
		err = &problem{Status: http.StatusNotFound, Code: "flow_not_found",
			Detail: "the flow does not exist: it was never submitted, or it was purged"}
	}
	return f, record, err
}

func (c *call) flow() (s client.FlowSnapshot, err error) {
	f, _, err := c.flowOf()
	if err != nil {
		return s, err
	}
	return f.Snapshot(c.ctx())
}

func (c *call) graph() error {
	s, err := c.flow()
	if err != nil {
		return err
	}
	var text bytes.Buffer
	if err := s.Mermaid(&text); err != nil {
		return err
	}
	c.w.Header().Set("Content-Type", "text/vnd.mermaid")
	_, err = c.w.Write(text.Bytes())
	return err
}

type flowCancel struct {
	Policy string `json:"policy,omitempty" jsonschema:"cancel_all (default), cancel_pending or flow_only"`
	why
}

func (c *call) cancelFlow(f *client.Flow, b *flowCancel) (client.FlowCancellation, error) {
	policy := cmp.Or(flowfabric.CancellationPolicy(b.Policy), flowfabric.CancelAll)
	return f.Cancel(c.ctx(), policy, c.act(b.why)...)
}

type flowReplay struct {
	admin.FlowReplay
	why
}

func (c *call) replayFlow(f *client.Flow, b *flowReplay) (admin.FlowReplayed, error) {
	r, err := c.h.admin.ReplayFlow(c.ctx(), f.ID(), b.FlowReplay, c.act(b.why)...)
	for i, n := range r.Refused {
		r.Refused[i].Why = inMembers(n.Why)
	}
	return r, err
}

func (c *call) setFlowTags(f *client.Flow, b *tagsBody) (nothing, error) {
	return nothing{}, c.h.admin.SetFlowTags(c.ctx(), f.ID(), b.Set, b.Remove, c.act(b.why)...)
}

type laneBody struct {
	admin.LaneChange
	// Outcomes that are not named stay as they are.
	RetentionS map[string]int64 `json:"retention_s,omitempty" jsonschema:"by completed, failed, cancelled and expired: how many seconds what ended so is kept; 0 is the default"`
	why
}

func (c *call) setLane(b *laneBody) (err error) {
	if b.Namespace, err = c.namespace(b.Namespace); err != nil {
		return err
	}
	for outcome, s := range b.RetentionS {
		if s < 0 || s > 10*365*24*3600 {
			return invalid("/retention_s/"+outcome, "it is %d, want 0..10 years", s)
		}
		if b.Retention == nil {
			b.Retention = map[flowfabric.PublicState]time.Duration{}
		}
		b.Retention[flowfabric.PublicState(outcome)] = time.Duration(s) * time.Second
	}
	return c.h.admin.SetLane(c.ctx(), c.r.PathValue("key"), b.LaneChange, c.act(b.why)...)
}

func (c *call) markDead(b *why) (apiv1.Dead, error) {
	held, err := c.h.admin.MarkWorkerDead(c.ctx(), c.r.PathValue("session"), c.act(*b)...)
	return apiv1.Dead{Held: held}, err
}
