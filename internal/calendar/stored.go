// Package calendar is what becomes of the definitions of package schedule: how they are stored, and what a process
// that fires them does next.
package calendar

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/option"
	"github.com/flowfabric/flowfabric-go/internal/valid"
	"github.com/flowfabric/flowfabric-go/schedule"
)

// maxRuns is the largest number that is exact on the server.
const maxRuns = 1<<53 - 1

// maxTags is how many tags a definition may have beside the schedule's own.
const maxTags = limits.MaxTags - 2

// Reasons why instants were missed, as schedule.Missed has them; a refusal's code is one, too.
const (
	Late    = "late"
	Paused  = "paused"
	Updated = "updated"
)

// Tags that every execution of a schedule has.
const (
	tagName = "schedule.name"
	tagDue  = "schedule.due"
)

// ErrNewer: the definition was written by a newer version of this library, which alone knows what it means.
var ErrNewer = errors.New("the schedule was defined by a newer version")

// Versions of the stored form. A reader refuses a higher one than it knows. A definition has the lowest that can
// express it: processes of an older version go on with those that they understand.
const (
	version = 2 // has until, runs, jitter and flows
	plain   = 1
)

// maxNodes bounds the flow of a definition.
const maxNodes = limits.MaxFlowMembers

// stored is the JSON form. Encoding is deterministic: equal definitions have equal bytes.
type stored struct {
	Version  int              `json:"v"`
	Cron     string           `json:"cron,omitempty"`
	Zone     string           `json:"zone,omitempty"`
	EveryMs  int64            `json:"every_ms,omitempty"`
	AnchorMs int64            `json:"anchor_ms,omitempty"`
	CatchUp  schedule.CatchUp `json:"catch_up"`
	Overlap  schedule.Overlap `json:"overlap"`
	UntilMs  int64            `json:"until_ms,omitempty"`
	Runs     uint64           `json:"runs,omitempty"`
	JitterMs int64            `json:"jitter_ms,omitempty"`
	Owner    string           `json:"owner,omitempty"`
	Item     storedItem       `json:"item"`
}

type storedItem struct {
	schedule.Item
	Packed string `json:"policy,omitempty"` // all of the policy, which the item tells in part
	Digest string `json:"digest,omitempty"`
}

func withDefaults(d schedule.Definition) schedule.Definition {
	if d.CatchUp == "" {
		d.CatchUp = schedule.CatchUpLast
	}
	if d.Overlap == "" {
		d.Overlap = schedule.OverlapAllow
	}
	return d
}

// Validate checks everything but what only the server knows. The errors wrap flowfabric.ErrInvalidInput,
// denied.Policy, denied.TagKey or denied.Capabilities and name the field.
func Validate(d schedule.Definition) error {
	d = withDefaults(d)
	if err := d.Spec.Err(); err != nil {
		return err
	}
	bad := func(format string, a ...any) error {
		return fmt.Errorf("%w: schedule: "+format, append([]any{flowfabric.ErrInvalidInput}, a...)...)
	}
	switch x, jitter := d.Item, time.Duration(d.Jitter); {
	case d.CatchUp != schedule.CatchUpLast && d.CatchUp != schedule.CatchUpSkip && d.CatchUp != schedule.CatchUpAll:
		return bad("catch up is %.40q, want last, skip or all", d.CatchUp)
	case d.Overlap != schedule.OverlapAllow && d.Overlap != schedule.OverlapSkip:
		return bad("overlap is %.40q, want allow or skip", d.Overlap)
	case !d.Until.IsZero() &&
		(d.Until.UnixMilli() < 1 || d.Until.Year() > 9999 || !d.Until.Equal(d.Until.Truncate(time.Millisecond))):
		return bad("until %s, want 1970 to 9999 in whole milliseconds", d.Until.Format(time.RFC3339Nano))
	case d.Runs > maxRuns:
		return bad("%d runs, want at most %d", d.Runs, uint64(maxRuns))
	case jitter < 0 || jitter > limits.MaxJitter || jitter%time.Millisecond != 0:
		return bad("jitter %s, want 0..24h in whole milliseconds", jitter)
	case x.Nodes < 0 || x.Nodes > maxNodes:
		return bad("a flow of %d nodes, want at most %d", x.Nodes, maxNodes)
	case len(x.Digest) > 64:
		return bad("digest has %d bytes, want at most 64", len(x.Digest))
	case len(x.Tags) > maxTags:
		return bad("%d tags, want at most %d, since two are the schedule's own", len(x.Tags), maxTags)
	}
	if d.Owner != "" {
		if err := valid.Name("owner", d.Owner); err != nil {
			return err
		}
	}
	return validateItem(d.Item)
}

func validateItem(x schedule.Item) error {
	if err := option.Foreign(&x.Start, "schedule word", "a schedule"); err != nil {
		return err
	}
	names := []struct{ field, value string }{{"namespace", x.Namespace}, {"kind", x.Kind}, {"lane", x.Lane}}
	if x.Nodes > 0 {
		if err := option.Foreign(&x.Start, "flow word", "a flow: it belongs to the nodes"); err != nil {
			return err
		}
		if valid.PackPolicy(x.Policy) != "" {
			return fmt.Errorf("%w: schedule: a policy belongs to the nodes of its flow", flowfabric.ErrInvalidInput)
		}
		names = names[:2]
	}
	for _, name := range names {
		if err := valid.Name(name.field, name.value); err != nil {
			return err
		}
	}
	if err := valid.Terms(&x.Start); err != nil {
		return err
	}
	for _, own := range [...]string{tagName, tagDue} {
		if _, ok := x.Tags[own]; ok {
			return fmt.Errorf("%w: schedule: tag %s is the schedule's own", flowfabric.ErrInvalidInput, own)
		}
	}
	return nil
}

// Encode validates the definition and turns it into the bytes that the server keeps, at most 64 KiB.
func Encode(d schedule.Definition) ([]byte, error) {
	if err := Validate(d); err != nil {
		return nil, err
	}
	d = withDefaults(d)
	s, x := d.Spec, d.Item
	if err := valid.Terms(&x.Start); err != nil { // which puts names in order
		return nil, err
	}
	out := stored{Version: plain, Runs: d.Runs, JitterMs: time.Duration(d.Jitter).Milliseconds(), Owner: d.Owner,
		Cron: s.Expression,
		Zone: s.Zone, EveryMs: s.Interval.Milliseconds(), CatchUp: d.CatchUp, Overlap: d.Overlap,
		Item: storedItem{Item: x, Packed: valid.PackPolicy(x.Policy), Digest: x.Digest}}
	if s.Interval != 0 {
		out.AnchorMs = s.Anchor.UnixMilli()
	}
	if !d.Until.IsZero() {
		out.UntilMs = d.Until.UnixMilli()
	}
	if out.UntilMs != 0 || out.Runs != 0 || out.JitterMs != 0 || x.Nodes != 0 {
		out.Version = version
	}
	text, err := json.Marshal(out)
	if err != nil {
		return nil, fmt.Errorf("encode schedule: %w", err)
	}
	if len(text) > limits.MaxSchedule {
		return nil, fmt.Errorf("%w: schedule: the definition has %d bytes, want at most %d", flowfabric.ErrInvalidInput,
			len(text), limits.MaxSchedule)
	}
	return text, nil
}

// Decode reads what Encode wrote. Errors: [ErrNewer]; flowfabric.ErrInvalidInput for anything that is no valid
// definition, for example because this process does not know its time zone.
func Decode(text []byte) (schedule.Definition, error) {
	var in stored
	if err := json.Unmarshal(text, &in); err != nil {
		return schedule.Definition{},
			fmt.Errorf("%w: schedule: the stored definition is not readable: %w", flowfabric.ErrInvalidInput, err)
	}
	if in.Version > version {
		return schedule.Definition{}, fmt.Errorf("%w (%d, this one knows %d)", ErrNewer, in.Version, version)
	}
	x := in.Item
	start, err := valid.Unpacked(x.Start, x.Packed)
	if err != nil {
		return schedule.Definition{}, err
	}
	d := schedule.Definition{CatchUp: in.CatchUp, Overlap: in.Overlap, Runs: in.Runs,
		Jitter: flowfabric.Millis(in.JitterMs) * flowfabric.Millis(time.Millisecond), Owner: in.Owner,
		Item: schedule.Item{Nodes: x.Nodes, Start: start, Digest: x.Digest}}
	if in.UntilMs != 0 {
		d.Until = time.UnixMilli(in.UntilMs).UTC()
	}
	if in.EveryMs != 0 {
		d.Spec = schedule.Every(time.Duration(in.EveryMs)*time.Millisecond, time.UnixMilli(in.AnchorMs))
	} else {
		d.Spec = schedule.Cron(in.Cron, in.Zone)
	}
	if err := Validate(d); err != nil {
		return schedule.Definition{}, err
	}
	return d, nil
}

// OwnerOf is who declares a stored definition, also one of a newer version; empty: nobody.
func OwnerOf(text []byte) string {
	var in struct {
		Owner string `json:"owner"`
	}
	if json.Unmarshal(text, &in) != nil {
		return ""
	}
	return in.Owner
}

// Labels are the tags of what an instant submits: those of its own, and the schedule's.
func Labels(own map[string]string, name string, due time.Time) map[string]string {
	tags := make(map[string]string, len(own)+2)
	maps.Copy(tags, own)
	tags[tagName], tags[tagDue] = name, due.UTC().Format("2006-01-02T15:04:05.999Z07:00")
	return tags
}
