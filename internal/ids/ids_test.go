package ids_test

import (
	"testing"

	"github.com/google/uuid"

	ff "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/mint"
)

// The CRC is the one of Valkey Cluster: CRC16 (XMODEM) of "123456789" is 0x31C3. Zero bytes in front do not
// change it, so the check value fits in a UUID.
func TestPartition(t *testing.T) {
	var check uuid.UUID
	copy(check[7:], "123456789")
	for _, c := range []struct {
		id    uuid.UUID
		count uint16
		want  uint16
	}{
		{check, 65535, 0x31C3}, {check, 64, 0x31C3 % 64}, {check, 256, 0xC3}, {check, 1, 0}, {check, 0, 0},
		{uuid.Nil, 64, 0}, {uuid.Max, 65535, ids.Partition(uuid.Max, 65535)},
	} {
		if got := ids.Partition(c.id, c.count); got != c.want {
			t.Errorf("Partition(%s, %d) = %d, want %d", c.id, c.count, got, c.want)
		}
	}
	var hits [64]int
	for range 64 * 200 {
		hits[ids.Partition(uuid.New(), 64)]++
	}
	for p, n := range hits {
		if n < 100 || n > 320 {
			t.Errorf("partition %d got %d of %d ids", p, n, 64*200)
		}
	}
}

// An idempotency key must mean the same execution in every release: these vectors never change.
func TestKeyed(t *testing.T) {
	for _, c := range []struct {
		partitions           uint16
		namespace, kind, key string
		want                 string
	}{
		{64, "default", "write-article", "tides-1", "15-d39c3a39-a1d9-842b-ab62-49c25798e94b"},
		{256, "default", "write-article", "tides-1", "207-d39c3a39-a1d9-842b-ab62-49c25798e94b"},
		{64, "", "", "", "52-ac9db24e-b7dd-8404-b01b-b5adb5a8ed5e"},
	} {
		got := mint.Join(ids.Keyed(c.partitions, c.namespace, c.kind, c.key))
		if got.String() != c.want {
			t.Errorf("Keyed(%d, %q, %q, %q) = %s, want %s", c.partitions, c.namespace, c.kind, c.key, got, c.want)
		}
		if ids.UUID(got).Version() != 8 || ids.UUID(got).Variant() != uuid.RFC4122 || got.Partition() >= c.partitions {
			t.Errorf("%s: version %d, variant %s", got, ids.UUID(got).Version(), ids.UUID(got).Variant())
		}
	}
	// Parts are length-prefixed: no two splits of the same bytes meet.
	seen := map[ff.ExecutionID][3]string{}
	for _, parts := range [][3]string{{"a", "b", "c"}, {"ab", "", "c"}, {"a", "bc", ""}, {"", "abc", ""},
		{"", "", "abc"}, {"abc", "", ""}} {
		id := mint.Join(ids.Keyed(64, parts[0], parts[1], parts[2]))
		if other, met := seen[id]; met {
			t.Errorf("%q and %q give one id", parts, other)
		}
		seen[id] = parts
	}
}

func TestWorker(t *testing.T) {
	for session, want := range map[string]string{"web-1~0a1b": "web-1", "gate~b~c": "b", "plain": "plain", "": ""} {
		if got := ids.Worker(session); got != want {
			t.Errorf("%q: %q, want %q", session, got, want)
		}
	}
}

func TestSessionsHaveTheMarkOfAVersion(t *testing.T) {
	seen := map[string]bool{}
	for _, owner := range []string{"web-17", "gw0123456789~a-worker"} {
		for _, version := range []string{"", "12", "v1.4.0-rc.1 of main"} {
			for range 100 {
				session := ids.Session(owner, version)
				if seen[session] || len(session) != len(owner)+13 || session[:len(owner)+1] != owner+"~" {
					t.Fatalf("%q", session)
				}
				seen[session] = true
				want := ids.VersionMark(version)
				if version == "" {
					want = ""
				}
				if got := ids.SessionMark(session); got != want {
					t.Fatalf("%q has the mark %q, want %q", session, got, want)
				}
			}
		}
	}
	if ids.VersionMark("12") == ids.VersionMark("13") {
		t.Error("two versions have one mark")
	}
	for _, other := range []string{"", "abcd", "a~abcd", "a~0123456789abc"} {
		if got := ids.SessionMark(other); got != "" {
			t.Errorf("%q has the mark %q", other, got)
		}
	}
}
