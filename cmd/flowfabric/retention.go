package main

import (
	"slices"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/valid"
)

// outcomes are the ends that have a retention of their own, in the order in which they are shown.
var outcomes = []flowfabric.PublicState{flowfabric.Completed, flowfabric.Failed, flowfabric.Cancelled,
	flowfabric.Expired}

const retentionUsage = "kept for this `duration` after its end, or failed=336h for one outcome; may be repeated (default as its lane says, else 24h of what completed and 336h of any other)"

// parseRetention reads "72h", for every outcome, and "failed=72h". Later ones win.
func parseRetention(values []string) (map[flowfabric.PublicState]time.Duration, error) {
	out := map[flowfabric.PublicState]time.Duration{}
	for _, text := range values {
		which, span := outcomes, text
		if name, rest, one := strings.Cut(text, "="); one {
			which, span = []flowfabric.PublicState{flowfabric.PublicState(name)}, rest
			if !slices.Contains(outcomes, which[0]) {
				return nil, usage("retention of %q, want completed, failed, cancelled or expired", name)
			}
		}
		d, err := time.ParseDuration(span)
		if err != nil {
			return nil, usage("retention %q, want for example 72h, or failed=336h", text)
		}
		for _, outcome := range which {
			out[outcome] = d
		}
	}
	return out, nil
}

// effective fills in the defaults.
func effective(r flowfabric.Retentions) flowfabric.Retentions {
	for _, outcome := range outcomes {
		if kept := r.Of(outcome); *kept == 0 {
			*kept = valid.RetentionOf(valid.UsualRetention, outcome)
		}
	}
	return r
}

// keeps is a retention for people.
func keeps(r flowfabric.Retentions) string {
	all, suffix := effective(r), ""
	if all == valid.UsualRetention {
		suffix = " (default)"
	}
	if all == valid.RetainAll(all.Completed) {
		return span(all.Completed) + suffix
	}
	if all.Failed == all.Cancelled && all.Failed == all.Expired {
		return span(all.Completed) + ", unsuccessful " + span(all.Failed) + suffix
	}
	return span(all.Completed) + ", failed " + span(all.Failed) + ", cancelled " + span(all.Cancelled) + ", expired " +
		span(all.Expired)
}
