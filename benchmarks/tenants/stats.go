package tenants

import (
	"strconv"
	"strings"
)

// usec adds up the µs of the calls of functions in a section commandstats of INFO.
func usec(text string) (sum float64) {
	for line := range strings.Lines(text) {
		name, stats, _ := strings.Cut(line, ":")
		if name != "cmdstat_fcall" && name != "cmdstat_fcall_ro" {
			continue
		}
		_, rest, _ := strings.Cut(stats, "usec=")
		n, _, _ := strings.Cut(rest, ",")
		us, _ := strconv.ParseFloat(n, 64)
		sum += us
	}
	return sum
}
