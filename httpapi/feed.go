package httpapi

import (
	"encoding/base64"
	"errors"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/internal/words"
)

func (c *call) happenings() error {
	q := c.query()
	o := admin.SubscribeOptions{Ends: true, Leases: q.flag("leases"), Signals: q.flag("signals"), Lane: q.text("lane"),
		Kind: q.text("kind"), Tags: q.tags("tag")}
	field, text := c.resumed(q)
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
