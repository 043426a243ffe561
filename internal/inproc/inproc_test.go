package inproc_test

import (
	"context"
	"net"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric-go/internal/inproc"
	"github.com/flowfabric/flowfabric-go/internal/must"
)

func TestDialReachesWhoListens(t *testing.T) {
	far := map[string]net.Conn{}
	listen := func(name string) (string, func()) {
		return inproc.Listen(func(context.Context) (net.Conn, error) {
			near, other := net.Pipe()
			far[name] = other
			return near, nil
		})
	}
	first, releaseFirst := listen("first")
	second, releaseSecond := listen("second")
	defer releaseSecond()
	if first == second || !strings.HasPrefix(first, "inproc://") {
		t.Fatalf("addresses %q and %q", first, second)
	}
	for name, url := range map[string]string{"first": first, "second": strings.TrimPrefix(second, "inproc://")} {
		conn, err := inproc.Dial(t.Context(), url)
		must.No(t, err)
		if far[name] == nil {
			t.Errorf("%s led elsewhere", url)
		}
		_ = conn.Close()
	}
	releaseFirst()
	releaseFirst()
	if _, err := inproc.Dial(t.Context(), first); err == nil || !strings.Contains(err.Error(), first) {
		t.Errorf("a released address: %v", err)
	}
	if _, err := inproc.Dial(t.Context(), second); err != nil {
		t.Errorf("the other address: %v", err)
	}
}
