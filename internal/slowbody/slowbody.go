// Package slowbody keeps requests whose bodies do not come from holding their connections.
package slowbody

import (
	"io"
	"net/http"
	"time"
)

// Within is how long the body of a request may take.
const Within = 30 * time.Second

// drain is how long what is left of a body is waited for when its request was answered.
const drain = time.Second

// Limit gives the body of a request so long to come, from now on. What was read to its end, and what has no body, has
// no deadline any more: the answer may last. The function that it returns is to be called when the request was
// answered.
func Limit(w http.ResponseWriter, q *http.Request, within time.Duration) (done func()) {
	control := http.NewResponseController(w) // not every writer knows how
	if q.Body == nil || q.Body == http.NoBody {
		_ = control.SetReadDeadline(time.Time{})
		return func() {}
	}
	_ = control.SetReadDeadline(time.Now().Add(within))
	b := &body{ReadCloser: q.Body, control: control}
	q.Body = b
	return func() {
		if !b.over {
			_ = control.SetReadDeadline(time.Now().Add(min(within, drain)))
		}
	}
}

// Handler is a handler whose requests have a [Limit].
func Handler(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		defer Limit(w, q, Within)()
		h.ServeHTTP(w, q)
	})
}

type body struct {
	io.ReadCloser
	control *http.ResponseController
	over    bool
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF && !b.over {
		b.over = true
		_ = b.control.SetReadDeadline(time.Time{})
	}
	return n, err
}
