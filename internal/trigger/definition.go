package trigger

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/option"
	"github.com/flowfabric/flowfabric-go/internal/valid"
)

// Tags of every execution that a trigger starts.
const (
	tagSubject = "event.subject"
	tagID      = "event.id"
)

// version of the stored form. A reader refuses a higher one than it knows.
const version = 1

// Definition is what a trigger asks for and starts.
type Definition struct {
	Where map[string]any
	Start flowfabric.Start
}

// stored is the JSON form. Equal definitions have equal bytes.
type stored struct {
	Version int              `json:"v"`
	Where   map[string]any   `json:"where,omitempty"`
	Start   flowfabric.Start `json:"start"`
	Packed  string           `json:"policy,omitempty"` // all of the policy, which the start tells in part
}

// Encode checks a definition and returns the text that the server keeps, at most 16 KiB, and its terms. The errors wrap
// flowfabric.ErrInvalidInput and name the field.
func Encode(d Definition) (text string, terms []string, err error) {
	x := &d.Start
	if terms, err = Filter(d.Where); err != nil {
		return "", nil, err
	}
	if err := option.Foreign(x, "schedule word", "a trigger"); err != nil {
		return "", nil, err
	}
	for _, name := range []struct{ field, value string }{{"namespace", x.Namespace}, {"kind", x.Kind},
		{"lane", x.Lane}} {
		if err := valid.Name(name.field, name.value); err != nil {
			return "", nil, err
		}
	}
	for _, own := range [...]string{tagSubject, tagID} {
		if _, ok := x.Tags[own]; ok {
			return "", nil, fmt.Errorf("%w: trigger: tag %s is the trigger's own", flowfabric.ErrInvalidInput, own)
		}
	}
	if most := limits.MaxTags - 2; len(x.Tags) > most {
		return "", nil, fmt.Errorf("%w: trigger: %d tags, want at most %d, since two are the trigger's own",
			flowfabric.ErrInvalidInput, len(x.Tags), most)
	}
	if err := valid.Terms(x); err != nil {
		return "", nil, err
	}
	blob, err := json.Marshal(stored{Version: version, Where: d.Where, Start: *x, Packed: valid.PackPolicy(x.Policy)})
	if err == nil && len(blob) > limits.MaxTrigger {
		err = fmt.Errorf("%w: trigger: the definition has %d bytes, want at most %d", flowfabric.ErrInvalidInput,
			len(blob), limits.MaxTrigger)
	}
	return string(blob), terms, err
}

// Decode reads what Encode wrote. flowfabric.ErrInvalidInput for anything else, also from a newer version.
func Decode(text string) (Definition, error) {
	var in stored
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&in); err != nil {
		return Definition{}, fmt.Errorf("%w: trigger: the stored definition is not readable: %w",
			flowfabric.ErrInvalidInput, err)
	}
	if in.Version != version {
		return Definition{}, fmt.Errorf("%w: trigger: the definition is of version %d, this process knows %d",
			flowfabric.ErrInvalidInput, in.Version, version)
	}
	start, err := valid.Unpacked(in.Start, in.Packed)
	return Definition{Where: in.Where, Start: start}, err
}

// Begun is what a trigger starts for an event: with the tags of the event, and what the definition says.
func (d Definition) Begun(subject, id string) flowfabric.Start {
	tags := make(map[string]string, len(d.Start.Tags)+2)
	maps.Copy(tags, d.Start.Tags)
	tags[tagSubject], tags[tagID] = subject, id
	out := d.Start
	out.Tags = tags
	return out
}
