package scale

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"
)

// The tables of the document are those of the model.
func TestDocs(t *testing.T) {
	text, err := os.ReadFile("../../docs/explanation/scale.md")
	if err != nil {
		t.Fatal(err)
	}
	want := func(format string, args ...any) {
		t.Helper()
		if row := fmt.Sprintf(format, args...); !strings.Contains(string(text), row) {
			t.Errorf("docs/explanation/scale.md lacks %q", row)
		}
	}
	c := Published()
	for _, n := range []int{1, 8, 32, 100} {
		us := c.Lifecycle(n)
		want("| %d | %.0f | %s |", n, us, thousands(math.Round(0.6e6/us/100)*100))
	}
	for _, partitions := range []int{64, 256, 1024} {
		row := fmt.Sprintf("| %s partitions |", thousands(float64(partitions)))
		for _, n := range []int{3, 6, 12, 24, 48, 96} {
			row += fmt.Sprintf(" %.2f |", Skew(partitions, n))
		}
		want("%s", row)
	}
	for _, row := range []struct {
		name string
		call Call
	}{{"create", c.Create}, {"claim", c.Claim}, {"complete", c.Complete}, {"append of frames", c.Append},
		{"poll of a partition", c.Poll}} {
		want("| %s | %.1f | %.1f |", row.name, row.call.Fixed+row.call.Item, row.call.Fixed/32+row.call.Item)
	}
	for rate, used := range map[float64]string{0.1: "| one in 10 s | 3.6 | 7 |", 1: "| one a second | 36 | 81 |"} {
		n := plan(t, Wish{Tails: 1e6, Frames: rate, Batch: 1, Partitions: 1024, Lease: 30, Memory: 24e9, Use: 0.6})
		if fields := strings.Split(used, " | "); fields[2] != strconv.Itoa(n.Primaries)+" |" {
			t.Errorf("%g appends a second need %d primaries: %s", rate, n.Primaries, used)
		}
		want("%s", used)
	}
	for _, partitions := range []int{256, 1024} {
		n := plan(t, Wish{Waiting: 1e9, Batch: 1, Partitions: partitions, Lease: 30, Memory: 24e9, Use: 0.6})
		if expected := map[int]int{256: 38, 1024: 31}[partitions]; n.Primaries != expected || !n.Enough {
			t.Errorf("10⁹ waiting executions need %d primaries with %d partitions", n.Primaries, partitions)
		}
	}
	want("| primaries | not possible | 38 | 31 |")
}

// thousands writes a whole number as documents do.
func thousands(v float64) string {
	text := strconv.FormatFloat(v, 'f', 0, 64)
	if len(text) > 3 {
		return text[:len(text)-3] + "," + text[len(text)-3:]
	}
	return text
}
