// Package roundtrip sends requests of an HTTP client to a handler of the same process, without a connection: doors of
// the HTTP API use it when they have the address of a store and no process serves.
package roundtrip

import (
	"bytes"
	"errors"
	"io"
	"net/http"
)

// To answers requests with a handler of this process. It is an http.RoundTripper; answers are kept in memory as a
// whole, so the handler must bound them.
type To struct{ Handler http.Handler }

// RoundTrip has the handler answer q. The error is that of the context of q, or io.ErrUnexpectedEOF, if the handler
// wrote nothing.
func (t To) RoundTrip(q *http.Request) (*http.Response, error) {
	w := &answering{header: http.Header{}}
	t.Handler.ServeHTTP(w, q)
	if w.status == 0 { // nobody was there any more
		return nil, errors.Join(q.Context().Err(), io.ErrUnexpectedEOF)
	}
	return &http.Response{StatusCode: w.status, Status: http.StatusText(w.status), Header: w.header,
		Body: io.NopCloser(&w.body), Request: q}, nil
}

// answering keeps what a handler answers.
type answering struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (w *answering) Header() http.Header { return w.header }

func (w *answering) WriteHeader(status int) { w.status = status }

func (w *answering) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	return w.body.Write(b)
}
