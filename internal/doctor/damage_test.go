package doctor

import (
	"errors"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/keys"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
)

// A store whose partition counts are lost is not booted with others, and nobody calls it new. A root of another type
// keeps nobody from the other partitions.
func TestDamagedStore(t *testing.T) {
	for name, url := range map[string]string{"redis": testserver.Redis(t), "embedded": testserver.Embedded(t)} {
		t.Run(name, func(t *testing.T) {
			e := open(t, engine.Config{URL: url, Partitions: 5})
			do(t, e, "DEL", keys.Root(3))
			do(t, e, "SET", keys.Root(3), "x")
			do(t, e, "SET", keys.Of(1).Sessions(), "x")
			second := open(t, engine.Config{URL: url})
			if _, err := second.ReadExecution(t.Context(), mint.ID(0)); !errors.Is(err,
				flowfabric.ErrNotFound) {
				t.Errorf("of another partition: %v", err)
			}
			if _, _, err := second.Poll(t.Context(), []uint16{0, 1, 2, 3, 4}); err != nil {
				t.Errorf("poll of all partitions: %v", err)
			}
			s := DiagnoseOpen(t.Context(), second).Store
			if s.Err != nil || s.Roots[3].Err == nil || s.Roots[2].Err != nil || s.TypesErr != nil {
				t.Errorf("%+v", s)
			}
			if want := []string{keys.Root(1) + ":sessions is a string and no zset",
				keys.Root(3) + " is a string and no hash"}; !slices.Equal(s.Damaged, want) {
				t.Errorf("damaged: %q, want %q", s.Damaged, want)
			}
			for what, damage := range map[string][]string{"lost in part": {"HDEL", keys.Config, "num_gate_partitions"},
				"lost": {"DEL", keys.Config}} {
				do(t, e, damage...)
				no := false
				for _, cfg := range []engine.Config{{URL: url}, {URL: url, CreateConfig: &no}} {
					if _, err := engine.Open(t.Context(), cfg); !errors.Is(err, flowfabric.ErrCorrupt) ||
						!strings.Contains(err.Error(), "roots of 5 partitions") {
						t.Errorf("partition counts %s: %v", what, err)
					}
				}
				if s := DiagnoseOpen(t.Context(), second).Store; !errors.Is(s.Err, flowfabric.ErrCorrupt) {
					t.Errorf("partition counts %s: %+v", what, s)
				}
				if n, err := do(t, e, "HLEN", keys.Config).AsInt64(); n > 2 || err != nil {
					t.Errorf("somebody has written partition counts: %d, %v", n, err)
				}
			}
			do(t, e, "SET", keys.Config, "x")
			if s := DiagnoseOpen(t.Context(), second).Store; !errors.Is(s.Err, flowfabric.ErrCorrupt) {
				t.Errorf("partition counts of another type: %+v", s)
			}
		})
	}
}

// The doctor and the audit look for the same types.
func TestTypesOfKeys(t *testing.T) {
	text, err := os.ReadFile("../../lua/lib/audit_root.lua")
	must.No(t, err)
	_, table, _ := strings.Cut(string(text), "local types = {")
	table, _, _ = strings.Cut(table, "\n\n")
	found := map[string][]string{}
	for _, m := range regexp.MustCompile(`(?s)(\w+) = \{(.*?)\}`).FindAllStringSubmatch(table, -1) {
		for _, name := range regexp.MustCompile(`'(\w+)'`).FindAllStringSubmatch(m[2], -1) {
			found[m[1]] = append(found[m[1]], name[1])
		}
	}
	if !reflect.DeepEqual(found, types) {
		t.Errorf("the library has %v, the doctor %v", found, types)
	}
}
