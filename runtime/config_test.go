package runtime_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/runtime"
)

// Every field outside its bounds is refused by name and limit before anything is dialled.
func TestConfigIsValidatedBeforeIO(t *testing.T) {
	long := strings.Repeat("x", 65)
	cases := []struct {
		name   string
		change func(*runtime.Config)
		want   []string
	}{
		{"empty url", func(c *runtime.Config) { c.URL = "" },
			[]string{"Config.URL", "FLOWFABRIC_URL", "embedded:./data"}},
		{"concurrency", func(c *runtime.Config) { c.Concurrency = -1 },
			[]string{"Config.Concurrency is -1", "1..10000"}},
		{"concurrency above", func(c *runtime.Config) { c.Concurrency = 10_001 }, []string{"10001", "1..10000"}},
		{"instance with the separator of sessions", func(c *runtime.Config) { c.Instance = "a~b" },
			[]string{"Instance", "a~b"}},
		{"weight below", func(c *runtime.Config) { c.LaneWeights = map[string]int{"default": 0} },
			[]string{`Config.LaneWeights["default"] is 0`, "1..1000"}},
		{"weight above", func(c *runtime.Config) {
			c.Lanes, c.LaneWeights = []string{"mail"},
				map[string]int{"mail": 1001}
		}, []string{`Config.LaneWeights["mail"] is 1001`, "1..1000"}},
		{"weight of another lane", func(c *runtime.Config) { c.LaneWeights = map[string]int{"mail": 2} },
			[]string{`Config.LaneWeights names lane "mail"`, "not among its lanes"}},
		{"ttl", func(c *runtime.Config) { c.LeaseTTL = 999 * time.Millisecond },
			[]string{"Config.LeaseTTL is 999ms", "1s..1h"}},
		{"ttl above", func(c *runtime.Config) { c.LeaseTTL = time.Hour + 1 }, []string{"Config.LeaseTTL", "1s..1h"}},
		{"drain", func(c *runtime.Config) { c.DrainTimeout = 2 * time.Hour }, []string{"Config.DrainTimeout", "1h"}},
		{"ready", func(c *runtime.Config) { c.ReadyWindow = time.Millisecond }, []string{"Config.ReadyWindow", "1s"}},
		{"namespace", func(c *runtime.Config) { c.Namespace = long }, []string{"Config.Namespace", "1..64"}},
		{"lane", func(c *runtime.Config) { c.Lanes = []string{"ok", "{no}"} }, []string{"Config.Lanes[1]", "braces"}},
		{"empty lane", func(c *runtime.Config) { c.Lanes = []string{""} }, []string{"Config.Lanes[0]", "1..64"}},
		{"worker", func(c *runtime.Config) { c.Worker = "a\nb" }, []string{"Config.Worker"}},
		{"instance", func(c *runtime.Config) { c.Instance = strings.Repeat("i", 49) },
			[]string{"Config.Instance", "49", "1..48"}},
		{"app version", func(c *runtime.Config) { c.AppVersion = long },
			[]string{"Config.AppVersion", "65", "64 bytes"}},
		{"label value", func(c *runtime.Config) { c.Labels = map[string]string{"zone": strings.Repeat("z", 257)} },
			[]string{"Config.Labels", "zone", "257", "256"}},
		{"label name", func(c *runtime.Config) { c.Labels = map[string]string{"": "z"} },
			[]string{"Config.Labels", "1..64"}},
		{"capability", func(c *runtime.Config) { c.Capabilities = []string{"gpu,fast"} },
			[]string{"Config.Capabilities", "comma"}},
		{"middleware", func(c *runtime.Config) { c.Middleware = []handler.Middleware{nil} },
			[]string{"Config.Middleware[0]"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			cfg := runtime.Config{URL: "redis://192.0.2.1:1"} // would hang if dialled
			c.change(&cfg)
			_, err := runtime.New(cfg, greetBinding())
			if !errors.Is(err, flowfabric.ErrConfig) {
				t.Fatalf("error %v, want one of class config", err)
			}
			for _, part := range c.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error %q does not name %q", err, part)
				}
			}
			if got := runtime.Run(t.Context(), cfg); got == nil || got.Error() != err.Error() {
				t.Errorf("Run says %v", got)
			}
		})
	}
}

func TestNewRefusesHandlers(t *testing.T) {
	cfg := runtime.Config{URL: "embedded:./data"}
	if _, err := runtime.New(cfg); !errors.Is(err, flowfabric.ErrConfig) {
		t.Errorf("no handler: %v", err)
	}
	if _, err := runtime.New(cfg, greetBinding(), greetBinding()); !errors.Is(err, denied.DuplicateHandler) ||
		!strings.Contains(err.Error(), "greet") {
		t.Errorf("two handlers of a kind: %v", err)
	}
}

// The default instance is unique per worker and within its limit.
func TestDefaultInstance(t *testing.T) {
	t.Chdir(t.TempDir())
	a, err := runtime.New(runtime.Config{URL: "embedded:./data"}, greetBinding())
	must.No(t, err)
	b, err := runtime.New(runtime.Config{URL: "embedded:./data"}, greetBinding())
	must.No(t, err)
	if a.Instance() == b.Instance() || len(a.Instance()) > limits.MaxInstance {
		t.Errorf("instances %q and %q", a.Instance(), b.Instance())
	}
	if err := a.Ready(); err == nil || !strings.Contains(err.Error(), "not started") {
		t.Errorf("ready before the start: %v", err)
	}
}
