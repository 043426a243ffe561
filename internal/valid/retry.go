package valid

import (
	"crypto/sha1"
	"math"
	"slices"
	"strconv"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/causes"
	"github.com/flowfabric/flowfabric-go/internal/ids"
)

// RetryIn is the pause before the next attempt of an execution that has used up so many retries and fails with a
// category, and whether there is one. It is the twin of settle.fail in lua/lib/settle.lua and policy.pause in
// lua/lib/policy.lua, which decide.
func RetryIn(p flowfabric.RetryPolicy, id flowfabric.ExecutionID, retries int,
	category flowfabric.Category) (time.Duration, bool) {
	if retries >= p.MaxRetries || category == causes.Permanent ||
		len(p.Categories) > 0 && !slices.Contains(p.Categories, category) {
		return 0, false
	}
	d, most := p.Initial.Milliseconds(), p.Max.Milliseconds()
	if !p.Fixed {
		factor := int64(math.Round(p.Multiplier * 1000))
		for k := 0; k < min(retries, 64) && d < most; k++ {
			d = d * factor / 1000
		}
		d = min(d, most)
	}
	if p.Jitter {
		sum := sha1.Sum([]byte(ids.UUID(id).String() + ":" + strconv.Itoa(retries)))
		d = d * (800 + int64(int(sum[0])<<16|int(sum[1])<<8|int(sum[2]))%401) / 1000
		if !p.Fixed {
			d = min(d, most)
		}
	}
	return time.Duration(d) * time.Millisecond, true
}
