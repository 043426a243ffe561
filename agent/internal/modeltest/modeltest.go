// Package modeltest asks every adapter of a model service the same questions, over a fake of its service that speaks
// the real format. An adapter brings the fake, a [Format], and keeps tests only of what its format alone has.
package modeltest

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/flowfabric/flowfabric-go/agent"
)

// What a fake must use.
const (
	Key       = "sk-test-0123456789" // of the service, which no error may show
	Model     = "test-model-2026"    // the model that answers
	ID        = "answer-1"           // of the answer
	Signature = "c2lnbmVkIHRob3VnaHQ="
)

// Answer is what a service says, whatever its format. A fake writes the pieces in their order, in events of their own,
// but those of calls together at the end if the format has no pieces of them.
type Answer struct {
	Pieces []Piece
	Stop   agent.StopReason // "" if the answer breaks off after the pieces
	Usage  agent.Usage
	// Overloaded says that an error event of the format, an overload, comes after the pieces.
	Overloaded bool
}

// Piece is a piece of an answer: a text, a thought or a part of a call. Texts may end within a character. A thought is
// signed with [Signature], or followed by it.
type Piece struct {
	Text, Reasoning string
	Call            *Call
}

// Call is a part of a call. The first one of an index has ID and Name.
type Call struct {
	Index               int
	ID, Name, Arguments string
}

// Format is the format of a service.
type Format struct {
	// New makes a model that asks the service at url with [Key]. It sends signed reasoning back.
	New func(t *testing.T, url string, client *http.Client) agent.Model
	// Returned is what shows in a request that a thought went back; "" = [Signature].
	Returned    string
	CacheWrites bool // the service reports what was written to a cache
	// Write writes the events of an answer.
	Write func(w io.Writer, a Answer)
}

// Quote is a JSON string that keeps invalid UTF-8, as a service sends it that cuts within a character.
func Quote(text string) string {
	var b bytes.Buffer
	b.WriteByte('"')
	for i := range len(text) {
		switch c := text[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < 0x20:
			fmt.Fprintf(&b, `\u%04x`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// serve starts a service and returns a model of it.
func (f Format) serve(t *testing.T, answer http.HandlerFunc) agent.Model {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	return f.New(t, server.URL, server.Client())
}

// says makes a service that gives answers, one after the other. It keeps the bodies of the requests.
func (f Format) says(t *testing.T, answers ...Answer) (agent.Model, func() [][]byte) {
	t.Helper()
	var bodies [][]byte
	model := f.serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		bodies = append(bodies, body)
		begin(w)
		f.Write(w, answers[(len(bodies)-1)%len(answers)])
	})
	return model, func() [][]byte { return bodies }
}

// begin starts a stream.
func begin(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	w.WriteHeader(http.StatusOK)
}
