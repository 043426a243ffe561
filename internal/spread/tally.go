package spread

import (
	"fmt"
	"strconv"
	"strings"
)

// Tally is how the attempts of a kind ended in a minute, how long they had waited, and how long they ran. The zero
// value has none. It is not safe for concurrent use.
type Tally struct {
	Completed uint64 // executions
	Failed    uint64 // executions that are not tried again
	Retried   uint64 // attempts that failed and are tried again
	Other     uint64 // runs that ended in another way: suspended, delayed, released, cancelled
	Waited    Spread
	Ran       Spread
}

// Merge adds another one.
func (t *Tally) Merge(o *Tally) {
	was, add := t.counts(), o.counts()
	for i := range was {
		*was[i] = min(*was[i]+*add[i], MaxCount)
	}
	t.Waited.Merge(&o.Waited)
	t.Ran.Merge(&o.Ran)
}

func (t *Tally) counts() [4]*uint64 { return [4]*uint64{&t.Completed, &t.Failed, &t.Retried, &t.Other} }

// Text is "<completed>,<failed>,<retried>,<other>;<waited>;<ran>", at most [MaxText] bytes.
func (t *Tally) Text() string {
	var b []byte
	for i, n := range t.counts() {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendUint(b, *n, 10)
	}
	b = t.Waited.AppendText(append(b, ';'))
	return string(t.Ran.AppendText(append(b, ';')))
}

// ParseTally reads what [Tally.Text] writes. The error names what is wrong.
func ParseTally(text string) (*Tally, error) {
	if len(text) > MaxText {
		return nil, fmt.Errorf("tally: it has %d bytes, want at most %d", len(text), MaxText)
	}
	parts := strings.Split(text, ";")
	if len(parts) != 3 {
		return nil, fmt.Errorf("tally: it has %d parts, want counts, waited and ran", len(parts))
	}
	t := &Tally{}
	into, numbers := t.counts(), strings.Split(parts[0], ",")
	if len(numbers) != len(into) {
		return nil, fmt.Errorf("tally: it has %d counts, want %d", len(numbers), len(into))
	}
	for i, text := range numbers {
		n, err := number(text, MaxCount)
		if err != nil {
			return nil, fmt.Errorf("tally: count %d: %w", i+1, err)
		}
		*into[i] = n
	}
	if err := t.Waited.parse(parts[1]); err != nil {
		return nil, fmt.Errorf("tally: waited: %w", err)
	}
	if err := t.Ran.parse(parts[2]); err != nil {
		return nil, fmt.Errorf("tally: ran: %w", err)
	}
	return t, nil
}
