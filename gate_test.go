package flowfabric_test

import (
	"strings"
	"testing"
	"time"

	ff "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/option"
	"github.com/flowfabric/flowfabric-go/internal/valid"
)

// limit is the gate that LimitKey makes.
func limit(t testing.TB, key string, l ff.Limit) ff.Gate {
	t.Helper()
	var said ff.Start
	must.No(t, option.Apply(&said, 0, ff.LimitKey(key, l)))
	return said.Gates()[0]
}

// What a gate of a key says is what was given, whatever the key is, and its partition follows the key alone.
func TestLimitKeySaysItsKeyAndLimit(t *testing.T) {
	for _, key := range []string{"tenant-7", "mail:smtp.example.org", "a@b", "red ink", "100%", "größe", "a,b",
		"x\x1fy\x00", "%41", "@1.2.3@x", " "} {
		l := ff.Limit{Concurrency: 3, Rate: 100, Per: time.Minute}
		g := limit(t, key, l)
		if k, back, ok := g.Limit(); !ok || k != key || back != l {
			t.Errorf("%q: %q says %q, %v, %v", key, string(g), k, back, ok)
		}
		if strings.ContainsAny(string(g), ", \x1f\x00") {
			t.Errorf("%q: %q", key, string(g))
		}
		if _, err := valid.Gates([]ff.Gate{g}); err != nil {
			t.Error(err)
		}
		other := limit(t, key, ff.Limit{Concurrency: 1})
		if ids.GatePartition(g.Name(), 32) != ids.GatePartition(other.Name(), 32) {
			t.Errorf("limits of %q are in two partitions", key)
		}
	}
	if got, want := limit(t, "k", ff.Limit{Rate: 1, Per: time.Microsecond}),
		"limit k (1 in 1ms)"; got.String() != want {
		t.Errorf("%q, want %q", got.String(), want)
	}
	for _, g := range []ff.Gate{"gpu", "@1.0@k", "@a.0.0@k", "@1.0.0", "q:@1.0.0@k", ""} {
		if key, l, ok := g.Limit(); ok {
			t.Errorf("%q is a limit: %q %v", string(g), key, l)
		}
	}
}

func TestLimitKeyRefusesWhatCannotBe(t *testing.T) {
	one := ff.Limit{Concurrency: 1}
	for _, c := range []struct {
		key   string
		limit ff.Limit
		say   string
	}{
		{"", one, "key is empty"}, {strings.Repeat("k", 129), one, "129 bytes"},
		{strings.Repeat("ö", 22), one, "132 bytes"},
		{"k", ff.Limit{}, "limits nothing"}, {"k", ff.Limit{Concurrency: -1}, "Concurrency -1"},
		{"k", ff.Limit{Concurrency: 1_000_001}, "Concurrency"},
		{"k", ff.Limit{Rate: -1, Per: time.Second}, "Rate -1"},
		{"k", ff.Limit{Rate: 1_000_001, Per: time.Second}, "Rate"},
		{"k", ff.Limit{Rate: 1}, "Per"}, {"k", ff.Limit{Rate: 1, Per: -time.Second}, "Per"},
		{"k", ff.Limit{Rate: 1, Per: 721 * time.Hour}, "Per"},
	} {
		if _, err := valid.Gates([]ff.Gate{limit(t, c.key, c.limit)}); err == nil || !strings.Contains(err.Error(),
			c.say) {
			t.Errorf("%.10q %v: %v, want %q", c.key, c.limit, err, c.say)
		}
	}
	if _, err := valid.Gates([]ff.Gate{limit(t, "k", one), limit(t, "k", ff.Limit{Concurrency: 2})}); err == nil ||
		!strings.Contains(err.Error(), "twice") {
		t.Error(err)
	}
}
