package framelog

import (
	"math"
	"time"

	"github.com/flowfabric/flowfabric-go/internal/limits"
)

// LiveSizing bounds how many best-effort frames an attempt keeps for tails that join. The number follows the rate:
// enough for twice the ttl, so that the log's expiry and not its length decides.
type LiveSizing struct {
	Floor   int     // fewest frames kept; 0 = 64
	Ceiling int     // most frames kept, not below Floor; 0 = 16,384, which is also the most there may be
	Alpha   float64 // weight of the newest batch in the estimated rate; outside (0, 1] = 0.2
}

func (s LiveSizing) withDefaults() LiveSizing {
	if s.Floor <= 0 {
		s.Floor = 64
	}
	if s.Ceiling <= 0 {
		s.Ceiling = limits.MaxLiveFrames
	}
	s.Floor = min(s.Floor, limits.MaxLiveFrames)
	s.Ceiling = min(max(s.Ceiling, s.Floor), limits.MaxLiveFrames)
	if !(s.Alpha > 0 && s.Alpha <= 1) {
		s.Alpha = 0.2
	}
	return s
}

// estimator knows the rate of an attempt's best-effort frames, from one batch to the next.
type estimator struct {
	LiveSizing
	rate float64 // frames a second
	last time.Time
}

// keep is how many frames the log should hold after a batch of some frames with a ttl that is sent at an instant.
func (e *estimator) keep(frames int, ttl time.Duration, at time.Time) int {
	if e.last.IsZero() {
		e.LiveSizing = e.withDefaults()
		e.rate = float64(e.Floor) / (2 * ttl.Seconds())
	} else {
		passed := max(at.Sub(e.last).Milliseconds(), 1)
		e.rate = e.Alpha*(1000*float64(frames)/float64(passed)) + (1-e.Alpha)*e.rate
	}
	e.last = at
	return min(max(int(math.Ceil(e.rate*ttl.Seconds()*2)), e.Floor), e.Ceiling)
}
