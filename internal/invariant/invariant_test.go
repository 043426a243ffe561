package invariant_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/rueidis"

	"github.com/flowfabric/flowfabric-go/internal/invariant"
	"github.com/flowfabric/flowfabric-go/internal/keys"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/record"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
)

func connect(t *testing.T) (context.Context, rueidis.Client) {
	t.Helper()
	path := strings.TrimPrefix(testserver.Redis(t), "unix://")
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{path}, DisableCache: true,
		ForceSingleClient: true,
		DialCtxFn: func(ctx context.Context, path string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
			return d.DialContext(ctx, "unix", path)
		}})
	must.No(t, err)
	t.Cleanup(client.Close)
	ctx, cancel := testwait.Context(t, t.Context())
	t.Cleanup(cancel)
	return ctx, client
}

// put writes partitions with n waiting executions each, in the words of the layout.
func put(ctx context.Context, t *testing.T, client rueidis.Client, partitions uint16, n int) {
	t.Helper()
	now := time.Now().UnixMilli()
	b := func(args ...string) rueidis.Completed { return client.B().Arbitrary(args...).Build() }
	for p := range partitions {
		k := keys.Of(p)
		commands := rueidis.Commands{
			b("HSET", string(k), "protocol", "1", "wake", strconv.FormatInt(now, 10), "table", "1", "space", "a"),
			b("HSET", k.Routes(), "1", "a\x1fb\x1fc\x1f\x1f"), b("HSET", k.RouteIDs(), "a\x1fb\x1fc\x1f\x1f", "1"),
			b("ZADD", k.RouteLog(), "1", "1"), b("SADD", k.Ready(), "1"),
			b("HSET", k.RouteUse(), "1", strconv.Itoa(n)),
			b("SET", k.Tombstone(uuid.New()), "T1 ", "EX", "1000"),
		}
		for i := range n {
			id := uuid.New()
			at := strconv.FormatInt(now-int64(i), 10)
			r := record.Record{Fields: map[string]string{"s": "R1f", "r": "1", "ct": at, "in": "2"}, Input: "in"}
			commands = append(commands, b("SET", k.Core(id), r.Encode()), b("ZADD", k.Queue("1"), at, id.String()))
		}
		for _, r := range client.DoMulti(ctx, commands...) {
			must.No(t, r.Error())
		}
	}
}

// One listing for all partitions sees what a listing of each one sees, over the bound of a pipeline and of a page.
func TestReadAllIsReadOfEach(t *testing.T) {
	ctx, client := connect(t)
	put(ctx, t, client, 12, 700) // ff:{fp:1} must not see ff:{fp:10}
	all, err := invariant.ReadAll(ctx, client, 12)
	if err != nil || len(all) != 12 {
		t.Fatalf("%d dumps, %v", len(all), err)
	}
	checker := invariant.NewChecker()
	for p, d := range all {
		one, err := invariant.Read(ctx, client, uint16(p))
		must.No(t, err)
		if diff := invariant.Difference(one.Text(), d.Text()); diff != "" {
			t.Fatalf("partition %d: Read and ReadAll differ:\n%s", p, diff)
		}
		if len(d.ZSets[":q:1"]) != 700 || len(d.Texts) != 701 || len(d.Expires) != 1 || one.Now < d.Now ||
			int(d.Partition) != p {
			t.Errorf("partition %d: %d waiting, %d texts, %v expire, now %d and %d", p, len(d.ZSets[":q:1"]),
				len(d.Texts), d.Expires, d.Now, one.Now)
		}
		if bad := checker.Violations(d); len(bad) > 0 {
			t.Errorf("partition %d: %.500q", p, bad)
		}
	}
	if _, err := invariant.ReadAll(ctx, client, 11); err == nil || !strings.Contains(err.Error(), "none of 11") {
		t.Errorf("a partition too many: %v", err)
	}
}

// What went backwards is told per partition, and an id whose execution is gone may begin again.
func TestCheckerRemembers(t *testing.T) {
	ctx, client := connect(t)
	id, records := uuid.New(), map[uint16]record.Record{}
	set := func(p uint16, fields ...string) {
		t.Helper()
		r, ok := records[p]
		if !ok {
			r = record.Record{Fields: map[string]string{"r": "1", "ct": "1"}}
			records[p] = r
		}
		for i := 0; i < len(fields); i += 2 {
			r.Fields[fields[i]] = fields[i+1]
		}
		if err := client.Do(ctx, client.B().Set().Key(keys.Of(p).Core(id)).Value(r.Encode()).Build()).Error(); err !=
			nil {
			t.Fatal(err)
		}
	}
	checker := invariant.NewChecker()
	back := func(p uint16) bool {
		t.Helper()
		d, err := invariant.Read(ctx, client, p)
		must.No(t, err)
		return strings.Contains(fmt.Sprint(checker.Violations(d)), "went back")
	}
	look := func(what string, p uint16, want bool) {
		t.Helper()
		if got := back(p); got != want {
			t.Errorf("%s: went back %v, want %v", what, got, want)
		}
	}
	set(1, "s", "T1", "en", "5", "e", "7", "n", "1")
	look("an end", 1, false)
	set(2, "s", "R1f")
	look("another partition", 2, false)
	look("the same end again", 1, false)
	set(1, "s", "R1i")
	look("an end undone", 1, true)
	set(1, "s", "T1")
	look("ended", 1, false)
	set(1, "s", "R1p", "pc", "1")
	look("a replay", 1, false)
	set(1, "e", "6")
	look("an epoch gone back", 1, true)
	set(1, "e", "8", "n", "2")
	look("an attempt more", 1, false)
	set(1, "n", "1")
	look("an attempt gone back", 1, true)
	set(1, "pc", "0")
	look("a replay gone back", 1, true)
	must.No(t, client.Do(ctx, client.B().Del().Key(keys.Of(1).Core(id)).Build()).Error())
	look("nothing", 1, false)
	set(1, "s", "R1f")
	look("the id again", 1, false)
}

func TestDifferenceAndFingerprint(t *testing.T) {
	if got := invariant.Difference("a\nb", "b\nc"); got != "- a\n+ c\n" {
		t.Errorf("difference %q", got)
	}
	ctx, client := connect(t)
	put(ctx, t, client, 1, 3)
	hash := func() string {
		t.Helper()
		h, err := invariant.Fingerprint(ctx, client, 0)
		must.No(t, err)
		return h
	}
	first := hash()
	if again := hash(); again != first || len(first) != 40 {
		t.Errorf("fingerprints %q and %q of the same", first, again)
	}
	for _, change := range [][]string{{"HSET", keys.Root(0), "wake", "1"}, {"SADD", keys.Of(0).Ready(), "2"},
		{"RPUSH", keys.Of(0).Lost("x"), "1"}, {"PEXPIRE", keys.Of(0).Lost("x"), "100000"},
		{"ZADD", keys.Of(0).Done(), "1", "x"}} {
		must.No(t, client.Do(ctx, client.B().Arbitrary(change...).Build()).Error())
		next := hash()
		if next == first {
			t.Errorf("%q goes unseen", change)
		}
		first = next
	}
}
