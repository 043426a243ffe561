package valid

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/limits"
)

// spans lists retentions in the order in which they are stored.
func spans(r flowfabric.Retentions) [4]time.Duration {
	return [4]time.Duration{r.Completed, r.Failed, r.Cancelled, r.Expired}
}

// Retentions checks retentions: each 0, or whole seconds of 1 s..10 years. The error names the field.
func Retentions(r flowfabric.Retentions) error {
	for i, d := range spans(r) {
		if d != 0 && (d < time.Second || d > limits.MaxDelay || d%time.Second != 0) {
			return fmt.Errorf("retention of what %s is %s, want 0, or whole seconds of 1s..10 years",
				[]string{"completed", "failed", "was cancelled", "expired"}[i], d)
		}
	}
	return nil
}

// RetainAll keeps everything for d, however it ended.
func RetainAll(d time.Duration) flowfabric.Retentions {
	return flowfabric.Retentions{Completed: d, Failed: d, Cancelled: d, Expired: d}
}

// RetentionOf is the retention of an outcome; 0 for a state that is none.
func RetentionOf(r flowfabric.Retentions, outcome flowfabric.PublicState) time.Duration {
	if d := r.Of(outcome); d != nil {
		return *d
	}
	return 0
}

// UsualRetention is what a lane keeps when nobody set its retention.
var UsualRetention = flowfabric.Retentions{Completed: 24 * time.Hour, Failed: 14 * 24 * time.Hour,
	Cancelled: 14 * 24 * time.Hour, Expired: 14 * 24 * time.Hour}

// PackRetentions is how they are stored, in seconds: one number if all are the same, else four joined by slashes
// (lua/lib/policy.lua).
func PackRetentions(r flowfabric.Retentions) string {
	var parts [4]string
	for i, d := range spans(r) {
		parts[i] = strconv.FormatInt(int64(d/time.Second), 10)
	}
	if r == RetainAll(r.Completed) {
		return parts[0]
	}
	return strings.Join(parts[:], "/")
}

// UnpackRetentions reads what PackRetentions wrote; "" is nothing.
func UnpackRetentions(text string) (flowfabric.Retentions, error) {
	if text == "" {
		return flowfabric.Retentions{}, nil
	}
	parts := strings.Split(text, "/")
	var n [4]time.Duration
	for i, part := range parts {
		s, err := strconv.ParseInt(part, 10, 64)
		if err != nil || len(parts) != 1 && len(parts) != 4 || s < 0 || s > int64(limits.MaxDelay/time.Second) ||
			strconv.FormatInt(s, 10) != part {
			return flowfabric.Retentions{}, fmt.Errorf("%w: retention %.60q is not one number of seconds, or four",
				denied.Policy, text)
		}
		n[i] = time.Duration(s) * time.Second
	}
	if len(parts) == 1 {
		return RetainAll(n[0]), nil
	}
	return flowfabric.Retentions{Completed: n[0], Failed: n[1], Cancelled: n[2], Expired: n[3]}, nil
}
