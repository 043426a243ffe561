package fftest

import (
	"context"
	"net"
	"runtime"
	"slices"
	"testing"

	"github.com/flowfabric/flowfabric-go/internal/must"
)

// A worker does not die between the note of a request and its delivery: what is noted counts as recorded.
func TestLinkIsCutBetweenRequests(t *testing.T) {
	ours, theirs := net.Pipe()
	l := &link{dial: func(context.Context) (net.Conn, error) { return ours, nil }, journal: newJournal(crash{}),
		died: func() {}}
	c, err := l.connect(t.Context())
	must.No(t, err)
	const request = "*1\r\n$4\r\nPING\r\n"
	sent := make(chan error, 1)
	go func() {
		_, err := c.Write([]byte(request))
		sent <- err
	}()
	for l.sending.TryLock() { // until the request is on its way; the server does not read yet
		l.sending.Unlock()
		runtime.Gosched()
	}
	cut := make(chan struct{})
	go func() {
		l.cut()
		close(cut)
	}()
	for l.sending.TryRLock() { // until the cut waits for it
		l.sending.RUnlock()
		select {
		case <-cut:
			t.Fatal("cut while a request was on its way")
		default:
			runtime.Gosched()
		}
	}
	got := make([]byte, len(request))
	if n, err := theirs.Read(got); err != nil || string(got[:n]) != request {
		t.Errorf("server read %q, %v", got[:n], err)
	}
	if err := <-sent; err != nil {
		t.Errorf("write: %v", err)
	}
	<-cut
	if _, err := theirs.Read(got); err == nil {
		t.Error("the connection is not cut")
	}
	if _, err := l.connect(t.Context()); err == nil {
		t.Error("connected over a link that is cut")
	}
}

// What a client sends is read once it is all there, and not before.
func FuzzRequest(f *testing.F) {
	for _, seed := range []string{"*2\r\n$3\r\nGET\r\n$1\r\na\r\n*1", "*1\r\n$9223372036854775807\r\n", "*1\r\n$2\r\na",
		"*-1\r\n", ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		args, size := parseRequest([]byte(text))
		if size == 0 {
			return
		}
		if again, n := parseRequest([]byte(text)[:size]); n != size || !slices.Equal(again, args) {
			t.Errorf("%q: %q of %d bytes, then %q of %d", text, args, size, again, n)
		}
		if _, n := parseRequest([]byte(text)[:size-1]); n >= size {
			t.Errorf("%q is there before its last byte", text)
		}
	})
}
