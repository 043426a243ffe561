// Package spread counts durations in buckets that grow by a tenth, so that counts of many processes and minutes can be
// added, and percentiles are read from the sum. A percentile is at most 5 % off, between 1 ms and 30 days; what is
// shorter counts as 1 ms, what is longer as 30 days. [Tally] adds how attempts ended. Both have a short text, which
// the function ff_note_times adds up in the store.
package spread

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

const (
	growth = 1.1
	// Buckets is how many there are. Bucket 0 has what took at most 1 ms, bucket n what took more than growth^(n-1) ms
	// and at most growth^n ms. The last one has 30 days and more.
	Buckets = 229
	// MaxCount is the largest count of a bucket. More is counted as so much.
	MaxCount = 99_999_999_999_999
	// MaxText is how many bytes the text of a [Tally] may have.
	MaxText = 16384
)

var perBucket = 1 / math.Log(growth)

// Spread is how many durations there were of each length. The zero value has none. It is not safe for concurrent use.
type Spread struct{ counts [Buckets]uint64 }

// bucket is the one of a duration.
func bucket(d time.Duration) int {
	if d <= time.Millisecond {
		return 0
	}
	return min(int(math.Ceil(math.Log(float64(d)/float64(time.Millisecond))*perBucket)), Buckets-1)
}

// Add counts a duration. One below zero counts as zero.
func (s *Spread) Add(d time.Duration) { s.counts[bucket(d)]++ }

// Merge adds the counts of another one.
func (s *Spread) Merge(o *Spread) {
	for i, n := range o.counts {
		if n > 0 {
			s.counts[i] = min(s.counts[i]+n, MaxCount)
		}
	}
}

// Count is how many durations were counted.
func (s *Spread) Count() (n uint64) {
	for _, c := range s.counts {
		n += c
	}
	return n
}

// Quantile is the duration that a share q (0..1) of the counted ones does not exceed, at most 5 % off; 0 if none was
// counted.
func (s *Spread) Quantile(q float64) time.Duration {
	all := s.Count()
	if all == 0 {
		return 0
	}
	rank := max(uint64(math.Ceil(min(max(q, 0), 1)*float64(all))), 1)
	for i, n := range s.counts {
		if rank <= n {
			return middle(i)
		}
		rank -= n
	}
	return middle(Buckets - 1)
}

// middle is the duration that is equally far, in parts of itself, from both ends of a bucket.
func middle(i int) time.Duration {
	if i == 0 {
		return time.Millisecond
	}
	return time.Duration(2 / (1 + growth) * math.Pow(growth, float64(i)) * float64(time.Millisecond))
}

// AppendText appends the buckets that have a count: "<bucket>:<count>,…" in their order.
func (s *Spread) AppendText(b []byte) []byte {
	from := len(b)
	for i, n := range s.counts {
		if n == 0 {
			continue
		}
		if len(b) > from {
			b = append(b, ',')
		}
		b = append(strconv.AppendInt(b, int64(i), 10), ':')
		b = strconv.AppendUint(b, n, 10)
	}
	return b
}

// parse adds the counts of a text.
func (s *Spread) parse(text string) error {
	last := -1
	for rest := text; rest != ""; {
		var one string
		one, rest, _ = strings.Cut(rest, ",")
		bucket, count, _ := strings.Cut(one, ":")
		i, err := number(bucket, Buckets-1)
		if err != nil || int(i) <= last {
			return fmt.Errorf("bucket %.32q: want 0..%d, each larger than the one before", bucket, Buckets-1)
		}
		n, err := number(count, MaxCount)
		if err != nil || n == 0 {
			return fmt.Errorf("count %.32q of bucket %d: want 1..%d", count, i, uint64(MaxCount))
		}
		s.counts[i], last = n, int(i)
	}
	if strings.HasSuffix(text, ",") {
		return fmt.Errorf("spread: it ends with a comma")
	}
	return nil
}

// number reads a whole number without leading zeros.
func number(text string, most uint64) (uint64, error) {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n > most || len(text) > 1 && text[0] == '0' || text[0] == '+' {
		return 0, fmt.Errorf("%.32q: want a whole number from 0 to %d", text, most)
	}
	return n, nil
}
