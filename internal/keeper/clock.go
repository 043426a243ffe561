package keeper

import "time"

// Instant is one reading of both clocks. The monotonic clock stands still while a machine sleeps, the wall
// clock does not; the wall clock may be set back, the monotonic clock cannot.
type Instant struct {
	Wall time.Time     // without monotonic reading
	Mono time.Duration // since an arbitrary but fixed moment
}

// Clock reads both clocks at once. It is called often and from many goroutines.
type Clock func() Instant

var processStart = time.Now()

// SystemClock is the default [Clock].
func SystemClock() Instant {
	now := time.Now()
	return Instant{Wall: now.Round(0), Mono: now.Sub(processStart)}
}

// Since is the time from earlier to i on whichever clock says it was longer.
func (i Instant) Since(earlier Instant) time.Duration {
	return max(i.Mono-earlier.Mono, i.Wall.Sub(earlier.Wall))
}

// After reports whether i was read later than other; only the monotonic clock is asked.
func (i Instant) After(other Instant) bool { return i.Mono > other.Mono }
