package schedule

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/valid"
)

// CatchUp says what happens to instants that nobody fired in time, because no process maintained the store.
type CatchUp string

// The policies of catching up.
const (
	// CatchUpLast runs the latest of the instants that are due, once, however late. Default.
	CatchUpLast CatchUp = "last"
	// CatchUpSkip runs no instant that is more than a minute ([Grace]) late.
	CatchUpSkip CatchUp = "skip"
	// CatchUpAll runs every instant, oldest first.
	CatchUpAll CatchUp = "all"
)

// Overlap says what happens when an instant comes while the schedule's previous execution has not ended.
type Overlap string

// The policies of overlapping.
const (
	OverlapAllow Overlap = "allow" // run it too. Default.
	OverlapSkip  Overlap = "skip"  // do not run it; it counts as missed
)

// Reasons why instants were missed. An instant that the server refused to submit has the refusal's code as its reason,
// such as lane_closed or too_many_routes.
const (
	Late     = "late"    // nobody fired it in time, and the catch-up policy does not run it
	Paused   = "paused"  // it was not fired when the schedule was paused, or came while it was
	Overlaps = "overlap" // the previous execution had not ended
	Updated  = "updated" // it was due, and not fired, when the schedule got other times
)

// Tags that every execution of a schedule has; a definition cannot set them.
const (
	TagName = "schedule.name"
	TagDue  = "schedule.due" // the instant, RFC 3339 in UTC, with milliseconds if it has any
)

// Bounds of a definition.
const (
	MaxDefinition = 64 << 10 // bytes, encoded
	MaxTags       = limits.MaxTags - 2
)

// Item is what each instant submits, but for the input, which is stored beside the definition. Namespace, Lane and Kind
// are required.
type Item struct {
	Namespace    string
	Lane         string
	Kind         string
	Capabilities []string
	Gates        []flowfabric.Gate // budgets and quotas that are asked before it runs
	Priority     int               // 0..9000
	Deadline     time.Duration     // from the submission; 0 = none
	Policy       flowfabric.Policy
	Tags         map[string]string // at most 62
	Creator      string            // at most 64 bytes
	Digest       string            // of the input: definitions with different inputs must differ; at most 64 bytes
}

// Definition is a schedule without its name and input. Encode it for the server.
type Definition struct {
	Spec    Spec
	CatchUp CatchUp // default CatchUpLast
	Overlap Overlap // default OverlapAllow
	Item    Item
}

// ErrNewer: the definition was written by a newer version of this library, which alone knows what it means.
var ErrNewer = errors.New("the schedule was defined by a newer version")

// version of the stored form. A reader refuses a higher one than it knows.
const version = 1

// stored is the JSON form. Encoding is deterministic: equal definitions have equal bytes.
type stored struct {
	Version  int        `json:"v"`
	Cron     string     `json:"cron,omitempty"`
	Zone     string     `json:"zone,omitempty"`
	EveryMs  int64      `json:"every_ms,omitempty"`
	AnchorMs int64      `json:"anchor_ms,omitempty"`
	CatchUp  CatchUp    `json:"catch_up"`
	Overlap  Overlap    `json:"overlap"`
	Item     storedItem `json:"item"`
}

type storedItem struct {
	Namespace    string            `json:"namespace"`
	Lane         string            `json:"lane"`
	Kind         string            `json:"kind"`
	Capabilities []string          `json:"capabilities,omitempty"`
	Gates        []flowfabric.Gate `json:"gates,omitempty"`
	Priority     int               `json:"priority,omitempty"`
	DeadlineMs   int64             `json:"deadline_ms,omitempty"`
	Policy       string            `json:"policy,omitempty"` // packed
	TimeoutMs    int64             `json:"timeout_ms,omitempty"`
	Tags         map[string]string `json:"tags,omitempty"`
	Creator      string            `json:"creator,omitempty"`
	Digest       string            `json:"digest,omitempty"`
}

func (d Definition) withDefaults() Definition {
	if d.CatchUp == "" {
		d.CatchUp = CatchUpLast
	}
	if d.Overlap == "" {
		d.Overlap = OverlapAllow
	}
	return d
}

// Validate checks everything but what only the server knows. The errors wrap flowfabric.ErrInvalidInput,
// ErrInvalidPolicy, ErrInvalidTagKey or ErrInvalidCapabilities and name the field.
func (d Definition) Validate() error {
	d = d.withDefaults()
	if err := d.Spec.Err(); err != nil {
		return err
	}
	bad := func(format string, a ...any) error {
		return fmt.Errorf("%w: schedule: "+format, append([]any{flowfabric.ErrInvalidInput}, a...)...)
	}
	switch x := d.Item; {
	case d.CatchUp != CatchUpLast && d.CatchUp != CatchUpSkip && d.CatchUp != CatchUpAll:
		return bad("catch up is %.40q, want last, skip or all", d.CatchUp)
	case d.Overlap != OverlapAllow && d.Overlap != OverlapSkip:
		return bad("overlap is %.40q, want allow or skip", d.Overlap)
	case x.Priority < 0 || x.Priority > limits.MaxPriority:
		return bad("priority %d, want 0..%d", x.Priority, limits.MaxPriority)
	case x.Deadline < 0 || x.Deadline > limits.MaxDelay || x.Deadline > 0 && x.Deadline < time.Millisecond:
		return bad("deadline %s, want 0 or 1 ms..10 years", x.Deadline)
	case len(x.Creator) > limits.MaxName:
		return bad("creator has %d bytes, want at most %d", len(x.Creator), limits.MaxName)
	case len(x.Digest) > 64:
		return bad("digest has %d bytes, want at most 64", len(x.Digest))
	case len(x.Tags) > MaxTags:
		return bad("%d tags, want at most %d, since two are the schedule's own", len(x.Tags), MaxTags)
	}
	return d.Item.validate()
}

func (x Item) validate() error {
	for _, name := range [...]struct{ field, value string }{{"namespace", x.Namespace}, {"lane", x.Lane}, {"kind", x.Kind}} {
		if err := valid.Name(name.field, name.value); err != nil {
			return err
		}
	}
	if err := valid.Policy(x.Policy); err != nil {
		return err
	}
	if err := valid.Tags(x.Tags); err != nil {
		return err
	}
	for _, own := range [...]string{TagName, TagDue} {
		if _, ok := x.Tags[own]; ok {
			return fmt.Errorf("%w: schedule: tag %s is the schedule's own", flowfabric.ErrInvalidInput, own)
		}
	}
	if _, err := valid.Gates(x.Gates); err != nil {
		return err
	}
	_, err := valid.Capabilities(x.Capabilities)
	return err
}

// Encode validates the definition and turns it into the bytes that the server keeps, at most 64 KiB.
func (d Definition) Encode() ([]byte, error) {
	if err := d.Validate(); err != nil {
		return nil, err
	}
	d = d.withDefaults()
	s, x := d.Spec, d.Item
	tokens, err := valid.Capabilities(x.Capabilities)
	if err != nil {
		return nil, err
	}
	gates, err := valid.Gates(x.Gates)
	if err != nil {
		return nil, err
	}
	out := stored{Version: version, Cron: s.expression, Zone: s.zone, EveryMs: s.every.Milliseconds(), CatchUp: d.CatchUp, Overlap: d.Overlap,
		Item: storedItem{Namespace: x.Namespace, Lane: x.Lane, Kind: x.Kind, Capabilities: tokens, Gates: gates, Priority: x.Priority,
			DeadlineMs: x.Deadline.Milliseconds(), Policy: valid.PackPolicy(x.Policy), TimeoutMs: x.Policy.AttemptTimeout.Milliseconds(),
			Tags: x.Tags, Creator: x.Creator, Digest: x.Digest}}
	if s.every != 0 {
		out.AnchorMs = s.anchor.UnixMilli()
	}
	text, err := json.Marshal(out)
	if err != nil {
		return nil, fmt.Errorf("encode schedule: %w", err)
	}
	if len(text) > MaxDefinition {
		return nil, fmt.Errorf("%w: schedule: the definition has %d bytes, want at most %d", flowfabric.ErrInvalidInput, len(text), MaxDefinition)
	}
	return text, nil
}

// Decode reads what Encode wrote. Errors: [ErrNewer]; flowfabric.ErrInvalidInput for anything that is no valid definition,
// for example because this process does not know its time zone.
func Decode(text []byte) (Definition, error) {
	var in stored
	if err := json.Unmarshal(text, &in); err != nil {
		return Definition{}, fmt.Errorf("%w: schedule: the stored definition is not readable: %w", flowfabric.ErrInvalidInput, err)
	}
	if in.Version > version {
		return Definition{}, fmt.Errorf("%w (%d, this one knows %d)", ErrNewer, in.Version, version)
	}
	x := in.Item
	policy, err := valid.UnpackPolicy(x.Policy)
	if err != nil {
		return Definition{}, err
	}
	policy.AttemptTimeout = time.Duration(x.TimeoutMs) * time.Millisecond
	d := Definition{CatchUp: in.CatchUp, Overlap: in.Overlap, Item: Item{Namespace: x.Namespace, Lane: x.Lane, Kind: x.Kind,
		Capabilities: x.Capabilities, Gates: x.Gates, Priority: x.Priority, Deadline: time.Duration(x.DeadlineMs) * time.Millisecond,
		Policy: policy, Tags: x.Tags, Creator: x.Creator, Digest: x.Digest}}
	if in.EveryMs != 0 {
		d.Spec = Every(time.Duration(in.EveryMs)*time.Millisecond, time.UnixMilli(in.AnchorMs))
	} else {
		d.Spec = Cron(in.Cron, in.Zone)
	}
	if err := d.Validate(); err != nil {
		return Definition{}, err
	}
	return d, nil
}

// Labels are the tags of the execution of an instant.
func (d Definition) Labels(name string, due time.Time) map[string]string {
	tags := make(map[string]string, len(d.Item.Tags)+2)
	maps.Copy(tags, d.Item.Tags)
	tags[TagName], tags[TagDue] = name, due.UTC().Format("2006-01-02T15:04:05.999Z07:00")
	return tags
}
