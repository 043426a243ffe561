package embedded_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/flowfabric/flowfabric-go/embedded"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/store"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
)

// A message of a call that a full disk did not take is seen when the disk has the call, and not before.
func TestMessagesWaitForTheDisk(t *testing.T) {
	disk := t.TempDir()
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("NO FULL DISK WAS TESTED: only root can mount one: %v", err)
	}
	t.Cleanup(func() { must.No(t, syscall.Unmount(disk, syscall.MNT_DETACH)) })
	ballast := filepath.Join(disk, "ballast")
	must.No(t, os.WriteFile(ballast, make([]byte, 900<<10), 0o600))
	s := start(t, embedded.Config{Dir: filepath.Join(disk, "data")})
	listener, reader := dial(t, s.URL()), dial(t, s.URL())
	listener.do("SUBSCRIBE", "channel")
	reader.do("SET", "key", "1")
	lost := dial(t, s.URL())
	script := "redis.call('PUBLISH', 'channel', 'text') redis.call('SET', 'key', ARGV[1])"
	command := []string{"EVAL", script, "0", strings.Repeat("x", 300<<10)}
	_, err := lost.Write(store.AppendCommand(nil, command...))
	must.No(t, err)
	if n, err := lost.Read(make([]byte, 1)); err == nil {
		t.Fatalf("the call was answered with %d bytes", n)
	}
	reader.do("GET", "key")
	if got := listener.do("PING"); !slices.Equal(got, []string{"pong", ""}) {
		t.Errorf("before the disk has the call: %q", got)
	}
	must.No(t, os.Remove(ballast))
	testwait.Until(t, "writes go on", func() bool { return reader.do("SET", "other", "1")[0] == "OK" })
	if got := listener.do("PING"); !slices.Equal(got, []string{"message", "channel", "text"}) {
		t.Errorf("when it has it: %q", got)
	}
}
