package flowfabric

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"time"
)

// Millis is a duration that is written in JSON as a number of whole milliseconds, under a name that ends in _ms. The
// HTTP API, the command's --json and what is read with this module's types all write durations so.
type Millis time.Duration

// String is the duration in words, such as 1m30s.
func (m Millis) String() string { return time.Duration(m).String() }

// MarshalJSON cuts what is less than a millisecond.
func (m Millis) MarshalJSON() ([]byte, error) { return json.Marshal(time.Duration(m).Milliseconds()) }

// UnmarshalJSON reads a whole number of milliseconds. One that no duration can hold is an error.
func (m *Millis) UnmarshalJSON(text []byte) error {
	const most = math.MaxInt64 / int64(time.Millisecond)
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil || n < -most || n > most {
		return fmt.Errorf("%.40s is not a whole number of milliseconds that a duration holds", text)
	}
	*m = Millis(n) * Millis(time.Millisecond)
	return nil
}
