package httpapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/internal/browsertoken"
	"github.com/flowfabric/flowfabric-go/internal/framelog"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/tailpos"
	"github.com/flowfabric/flowfabric-go/internal/words"
	"github.com/flowfabric/flowfabric-go/stream"
)

// events follows an execution. The id of each event is its position, so a browser that was cut off goes on behind the
// last one it has seen.
func (c *call) events() error {
	q := c.query()
	var o framelog.TailOptions
	field, text := c.resumed(q)
	after, err := stream.ParsePosition(text)
	if err != nil {
		q.wrong(field, "it is no id of an event")
	}
	o.From = after
	if q.text("attempt") != "" {
		o.Attempt = new(uint32(q.number("attempt", 1, 1<<32-1, 1)))
	}
	o.FromNow = q.flag("from_now") && after == "" // who comes back goes on where they were
	o.WithoutBestEffort, o.WithoutChildren = q.flag("durable"), q.flag("own")
	if q.err != nil {
		return q.err
	}
	id, s, err := c.existing()
	if err != nil { // what is not there is no stream
		return err
	}
	if err := c.kin(id, field, string(after)); err != nil {
		return err
	}
	if done, err := c.nothingAfter(id, o); err != nil || done {
		return err
	}
	shown := redactors{own: c.redactorOf(id, s.Route)}
	out := newEventWriter(c, eventMedia)
	defer out.close()
	for e, err := range c.h.conn.Tails.Follow(c.ctx(), id, o) {
		switch {
		case errors.Is(err, framelog.ErrHubClosed):
			out.end(fmt.Errorf("tail %s: %w", id, client.ErrClosed))
			return nil
		case err != nil:
			out.end(err)
			return nil
		case e.Idle:
			err = out.flush()
		case shown.own == nil:
			err = out.add(e.Text("events", c.h.written))
		default:
			text := c.h.written(shown.event(e.TailEvent))
			if c.broken != nil {
				out.end(c.broken)
				return nil
			}
			if err = out.add(text); err == nil {
				err = out.flush() // who redacts may take time for the next one
			}
		}
		if err != nil {
			return nil // the reader is gone or too slow, or the event is none
		}
	}
	return nil
}

// written is an event of an execution as the stream has it; nil if no JSON has it, as a time in the year 10000.
func written(e stream.TailEvent) []byte {
	data, err := json.Marshal(told(e))
	if err != nil {
		return nil
	}
	return eventText(string(e.Position), string(e.Kind), data)
}

// kin refuses a position with executions that are not children of this one, or theirs: anybody can make one up, and may
// see only what belongs to the execution that is followed.
func (c *call) kin(id flowfabric.ExecutionID, field, position string) error {
	place, err := tailpos.ParseMerged(position)
	if err != nil {
		return err
	}
	all := []flowfabric.ExecutionID{id}
	for _, child := range place.Children {
		one := flowfabric.ExecutionID(ids.Join(id.Partition(), child.ID))
		s, err := c.h.client.Execution(one).Get(c.ctx())
		switch {
		case errors.Is(err, flowfabric.ErrNotFound), errors.Is(err, flowfabric.ErrResultPurged): // nothing to be seen
		case err != nil:
			return err
		case s.Creator != all[child.Parent].String():
			return invalid(field, "it is of another execution")
		}
		all = append(all, one)
	}
	return nil
}

// nothingAfter answers 204 to a browser that comes back behind the last event: it would come back for ever.
func (c *call) nothingAfter(id flowfabric.ExecutionID, o framelog.TailOptions) (done bool, err error) {
	if o.From == "" {
		return false, nil
	}
	s, err := c.h.client.Execution(id).Get(c.ctx())
	if err != nil || !s.State.Terminal() {
		return false, err
	}
	o.Stored = true
	for _, err := range c.h.conn.Tails.Tail(c.ctx(), id, o) {
		return false, err
	}
	c.w.WriteHeader(http.StatusNoContent)
	return true, nil
}

// told is an event as all who may follow an execution see it, the bearer of a stream token among them.
func told(e stream.TailEvent) stream.TailEvent { return words.Blanked(e, "operator", "viewer") }

type streamTokenRequest struct {
	LifeS int64  `json:"life_s,omitempty" jsonschema:"how long it is valid, 1..3600 s, default 300"`
	Write bool   `json:"write,omitempty" jsonschema:"it also reads record, wait and messages, sends, stops, and answers if an operator made it"`
	Name  string `json:"name,omitempty" jsonschema:"with write: who is at the page, for the trail; at most 64 bytes, default browser"`
}

type streamTokenAnswer struct {
	AccessToken string    `json:"access_token"`
	ExpiresAt   time.Time `json:"expires_at"`
}

func (c *call) makeStreamToken() error {
	var b streamTokenRequest
	if err := c.body(&b); err != nil {
		return err
	}
	life, err := browsertoken.CheckLife(b.LifeS)
	if err != nil {
		return invalid("/life_s", "%v", err)
	}
	if err := browsertoken.CheckName(b.Name); err != nil {
		return invalid("/name", "%v", err)
	}
	token := browsertoken.Token{Maker: c.who.Token, Name: b.Name}
	switch {
	case b.Write && !slices.Contains(producer, c.who.Role):
		return &problem{Status: http.StatusForbidden, Code: "forbidden", Field: "/write",
			Detail: fmt.Sprintf("%s has the role %s; this wants one of %s", c.who.Name, c.who.Role, joined(producer))}
	case b.Write:
		token.As = string(c.who.Role)
	case b.Name != "":
		return invalid("/name", "a token that only reads has no name")
	}
	id, err := c.id()
	if err != nil {
		return err
	}
	if _, err := c.h.client.Execution(id).Get(c.ctx()); err != nil {
		return err
	}
	token.For, token.Until = id.String(), time.Now().Add(life).UTC().Truncate(time.Second)
	return c.answerJSON(http.StatusCreated, streamTokenAnswer{browsertoken.Mint(c.h.cfg.StreamKey, token), token.Until})
}
