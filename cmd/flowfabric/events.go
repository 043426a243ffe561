package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v4"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/stream"
)

// maxEvent bounds the data of one event: a frame of the largest payload, in base64, is far below it.
const maxEvent = 8 << 20

// silence is how long nothing may come: the API sends a comment at least every minute.
const silence = 2 * time.Minute

// events follows what a process that serves tells of an execution. It ends with the execution.
func (d *door) events(ctx context.Context, path string, query url.Values) iter.Seq2[stream.TailEvent, error] {
	return followed(ctx, d, path, query, func(e stream.TailEvent) (string, bool) {
		return string(e.Position), e.Kind == stream.TailEnd
	})
}

// followed are server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html), which are asked for
// again behind the last one when the connection breaks. place tells the id of an event if it has one, and whether it is
// the last.
func followed[T any](ctx context.Context, d *door, path string, query url.Values,
	place func(T) (id string, last bool)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		pause := backoff.NewExponentialBackOff(backoff.WithInitialInterval(100*time.Millisecond),
			backoff.WithMaxInterval(5*time.Second), backoff.WithMaxElapsedTime(0))
		for last, begun := "", false; ; {
			over, err := d.eventsOnce(ctx, path, query, last, &begun, func(id, data string) (over bool, err error) {
				var e T
				if err := json.Unmarshal([]byte(data), &e); err != nil {
					return false, fmt.Errorf("%s told what this version does not understand: %w", path, err)
				}
				place, over := place(e)
				last = cmp.Or(place, id, last)
				pause.Reset()
				return !yield(e, nil) || over, nil
			})
			switch {
			case over:
				return
			case ctx.Err() != nil:
				yield(none, ctx.Err())
				return
			case err != nil && (!begun || !errors.Is(err, flowfabric.ErrTransport)):
				yield(none, err)
				return
			}
			select {
			case <-ctx.Done():
			case <-time.After(pause.NextBackOff()):
			}
		}
	}
}

// eventsOnce is one connection of events, which sets begun; over tells that no more will come, or nobody wants them.
func (d *door) eventsOnce(ctx context.Context, path string, query url.Values, last string, begun *bool,
	told func(id, data string) (over bool, err error)) (over bool, err error) {
	life, cut := context.WithCancel(ctx)
	defer cut()
	alive := time.AfterFunc(d.silence, cut)
	defer alive.Stop()
	header := http.Header{"Accept": {"text/event-stream"}}
	if last != "" {
		header.Set("Last-Event-ID", last)
	}
	reply, err := d.request(life, http.MethodGet, path, query, nil, header)
	if err != nil && life.Err() != nil {
		return false, errors.Join(flowfabric.ErrTransport, err)
	}
	if err != nil {
		return false, err
	}
	defer reply.Body.Close()
	if reply.StatusCode == http.StatusNoContent {
		return true, nil
	}
	if err := d.of(reply, "text/event-stream"); err != nil {
		return false, err
	}
	*begun = true
	lines := bufio.NewScanner(reply.Body)
	lines.Buffer(nil, maxEvent)
	for kind, data, id := "", "", ""; lines.Scan(); {
		alive.Reset(d.silence)
		field, value, _ := strings.Cut(lines.Text(), ":")
		switch value = strings.TrimPrefix(value, " "); {
		case field == "event":
			kind = value
		case field == "id":
			id = value
		case field == "data":
			data = value // which has no line ends
		case lines.Text() == "" && kind == "problem":
			no := &refusal{}
			return false, errors.Join(json.Unmarshal([]byte(data), &no.Problem), no)
		case lines.Text() == "" && kind != "":
			if over, err := told(id, data); over || err != nil {
				return over, err
			}
			kind, data = "", ""
		}
	}
	return false, errors.Join(flowfabric.ErrTransport, lines.Err())
}
