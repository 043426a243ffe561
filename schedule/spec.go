package schedule

import (
	_ "embed" // zones
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // a container without zone files must not make schedules unreadable

	cron "github.com/netresearch/go-cron"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/limits"
)

// Bounds of a [Spec].
const (
	maxExpression = 128 // bytes
	minInterval   = time.Second
	maxInterval   = limits.MaxDelay
)

// Spec is a rule of recurrence. Build it with [Cron] or [Every]; what is wrong with it is remembered and told by
// [Spec.Err]. It must not be changed, and may then be used concurrently. The zero value is not valid.
type Spec struct {
	Expression, Zone string        // what [Cron] got
	Interval         time.Duration // what [Every] got
	Anchor           time.Time     // what [Every] got, in UTC and whole milliseconds

	wall *wall // of a valid cron expression
	err  error // of another one
}

// Cron recurs by a cron expression of five fields (minute, hour, day of month, month, day of week), or of six with
// seconds first: "0 9 * * MON-FRI". A field is *, a number, a name (JAN, MON), a range, a list, or a step (*/15). If
// both days are restricted, either may match. Also @hourly, @daily (@midnight), @weekly, @monthly and @yearly
// (@annually). At most 128 bytes.
//
// zone is a name of the time zone database such as "Europe/Berlin"; "" is UTC. For clock changes see the
// package comment.
func Cron(expression, zone string) Spec {
	s := Spec{Expression: expression, Zone: zone}
	s.wall, s.err = parse(expression, zone)
	return s
}

// Every recurs at anchor and every interval before and after it: a fixed rate without drift, however late a run is.
// interval is 1 s to 10 years in whole milliseconds. A zero anchor is the epoch, 1970-01-01 00:00 UTC, so that one hour
// means every full hour.
func Every(interval time.Duration, anchor time.Time) Spec {
	if anchor.IsZero() {
		anchor = time.UnixMilli(0)
	}
	return Spec{Interval: interval, Anchor: anchor.UTC().Truncate(time.Millisecond)}
}

// Err returns what is wrong with the spec, or nil. It wraps flowfabric.ErrInvalidInput and names the field.
func (s Spec) Err() error {
	switch {
	case s.err != nil || s.wall != nil:
		return s.err
	case s.Anchor.IsZero():
		return fmt.Errorf("%w: schedule: the spec is empty, use Cron or Every", flowfabric.ErrInvalidInput)
	case s.Interval < minInterval || s.Interval > maxInterval || s.Interval%time.Millisecond != 0:
		return fmt.Errorf("%w: schedule: interval %s, want 1 s to 10 years in whole milliseconds",
			flowfabric.ErrInvalidInput, s.Interval)
	case s.Anchor.UnixMilli() < 0 || s.Anchor.Year() > 9999:
		return fmt.Errorf("%w: schedule: anchor %s, want 1970 to 9999", flowfabric.ErrInvalidInput, s.Anchor)
	}
	return nil
}

// Next is the first instant after t, in UTC; the zero time when there is none within 40 years, or the spec is not
// valid.
func (s Spec) Next(t time.Time) time.Time {
	switch {
	case s.Err() != nil:
		return time.Time{}
	case s.wall != nil:
		return s.wall.next(t)
	}
	ms, first, step := t.UnixMilli(), s.Anchor.UnixMilli(), s.Interval.Milliseconds()
	n := (ms - first) / step
	if (ms-first)%step < 0 { // division rounds towards zero
		n--
	}
	return time.UnixMilli(first + (n+1)*step).UTC()
}

// Upcoming are the first n instants after t, fewer when there are no more. n is at most 1000.
func (s Spec) Upcoming(t time.Time, n int) []time.Time {
	var out []time.Time
	for range min(n, 1000) {
		t = s.Next(t)
		if t.IsZero() {
			break
		}
		out = append(out, t)
	}
	return out
}

// String is the spec for people: "0 9 * * MON-FRI (Europe/Berlin)", "every 1h0m0s from 1970-01-01T00:00:00Z".
func (s Spec) String() string {
	if s.Interval != 0 {
		return fmt.Sprintf("every %s from %s", s.Interval, s.Anchor.Format(time.RFC3339))
	}
	if s.Zone == "" {
		return s.Expression + " (UTC)"
	}
	return s.Expression + " (" + s.Zone + ")"
}

// fields in the order of an expression with seconds.
var fields = [...]string{"second", "minute", "hour", "day of month", "month", "day of week"}

var descriptors = map[string]string{
	"@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0",
	"@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *",
}

// parser knows six fields and nothing else: zones and descriptors are ours.
var parser = cron.MustNewParser(
	cron.Second | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.DowOrDom).
	WithMaxSearchYears(40)

// parse reads an expression; an error names the field.
func parse(expression, zone string) (*wall, error) {
	refuse := func(format string, a ...any) error {
		return fmt.Errorf("%w: schedule: cron %.140q: "+format,
			append([]any{flowfabric.ErrInvalidInput, expression}, a...)...)
	}
	if expression == "" || len(expression) > maxExpression {
		return nil, refuse("it has %d bytes, want 1..%d", len(expression), maxExpression)
	}
	if at := strings.IndexFunc(expression, func(c rune) bool { return c < 0x20 || c > 0x7e || c == '=' }); at >= 0 {
		return nil, refuse("byte %d is %q; the zone is given apart", at, expression[at])
	}
	text, known := descriptors[strings.ToLower(strings.TrimSpace(expression))]
	if !known {
		text = expression
	}
	words := strings.Fields(text)
	if len(words) == 5 {
		words = append([]string{"0"}, words...)
	}
	if len(words) != len(fields) {
		return nil, refuse(
			"it has %d fields, want 5 (minute, hour, day of month, month, day of week), or 6 with seconds first",
			len(words))
	}
	parsed, err := parser.Parse(strings.Join(words, " "))
	if err != nil {
		return nil, refuse("%s", blame(words, err))
	}
	rule, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return nil, refuse("it is no calendar rule")
	}
	rule.Location = time.UTC
	loc, err := location(zone)
	if err != nil {
		return nil, err
	}
	w := &wall{rule: rule, loc: loc, hourly: rule.Hour&(1<<24-1) == 1<<24-1}
	if w.next(time.Unix(946684800, 0)).IsZero() {
		return nil, refuse("it never comes")
	}
	return w, nil
}

// blame finds the field that is wrong.
func blame(words []string, err error) string {
	for i, word := range words {
		alone := []string{"*", "*", "*", "*", "*", "*"}
		alone[i] = word
		if _, own := parser.Parse(strings.Join(alone, " ")); own != nil {
			return fmt.Sprintf("field %s is %.40q: %v", fields[i], word, own)
		}
	}
	return err.Error()
}

// zones are the names of the time zone database, in order: those of lib/time/zoneinfo.zip of Go, without Factory.
//
//go:embed zones.txt
var zones string

// location loads a zone by its name as the database writes it. Other names that load are files of a machine: Local,
// localtime, right/…, or europe/berlin where the case of files does not count.
func location(zone string) (*time.Location, error) {
	if zone == "" {
		return time.UTC, nil
	}
	var loc *time.Location
	err := error(flowfabric.ErrInvalidInput)
	if strings.Contains("\n"+zones, "\n"+zone+"\n") && !strings.Contains(zone, "\n") {
		loc, err = time.LoadLocation(zone)
	}
	if err != nil {
		return nil, fmt.Errorf(
			"%w: schedule: zone %.80q is not in the time zone database, want a name such as Europe/Berlin, or none for UTC",
			flowfabric.ErrInvalidInput, zone)
	}
	return loc, nil
}
