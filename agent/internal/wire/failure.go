package wire

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/flowfabric/flowfabric-go/handler"
)

const (
	// MostAnswer is how many bytes an answer may have, so that a service cannot fill the memory of a worker.
	MostAnswer = 32 << 20
	mostError  = 64 << 10 // bytes read of an error's body
	mostText   = 1 << 10  // bytes of a service's text in an error
	leastKey   = 6        // a shorter key is a placeholder, and is in many words
)

// Malformed is the error of an answer that is none. It is retried.
func Malformed(err error) error { return handler.Category("model_protocol", err) }

// Secrets are what must not appear in an error.
type Secrets []string

// Learn adds the keys that a request carries.
func (s *Secrets) Learn(h http.Header) {
	for _, name := range []string{"Authorization", "X-Api-Key", "Api-Key", "X-Goog-Api-Key"} {
		for _, value := range h.Values(name) {
			if _, key, ok := strings.Cut(value, " "); ok {
				value = key
			}
			if len(value) >= leastKey {
				*s = append(*s, value)
			}
		}
	}
}

// Hide replaces the secrets in text.
func (s Secrets) Hide(text string) string {
	for _, secret := range s {
		text = strings.ReplaceAll(text, secret, "***")
	}
	return text
}

// Broken is the text of an error of the connection, without the URL, whose query may have a key. Nothing is wrapped:
// an inner timeout is not the end of the caller's context.
func (s Secrets) Broken(err error) error {
	var in *url.Error
	if errors.As(err, &in) {
		err = in.Err
	}
	return errors.New(Excerpt(s.Hide(err.Error())))
}

// Excerpt is the beginning of a text, valid UTF-8 in one line.
func Excerpt(text string) string {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "\uFFFD")), " ")
	if len(text) <= mostText {
		return text
	}
	return strings.ToValidUTF8(text[:mostText], "") + "…"
}

// BoundError cuts the body of an answer that is an error.
func BoundError(res *http.Response) {
	if res != nil && res.StatusCode >= 400 && res.Body != nil {
		res.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(res.Body, mostError), res.Body}
	}
}
