package hookin

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/signature"
	"github.com/flowfabric/flowfabric-go/internal/valid"
)

// Bounds of a configuration.
const (
	maxHooks         = 64
	maxRules         = 100
	minTolerance     = time.Second
	defaultTolerance = 5 * time.Minute
	maxTolerance     = time.Hour
)

// Hook is a sender of webhooks, as a configuration says it.
type Hook struct {
	Scheme    string            `json:"scheme"`       // of signature.Schemes
	Secrets   []string          `json:"secrets"`      // see signature.Scheme.Secrets; any of them may have signed
	Tolerance flowfabric.Millis `json:"tolerance_ms"` // how far the signed time may be off, 1 s..1 h; default 5 min
	Namespace string            `json:"namespace"`    // in which the hook acts; default that of the process
	Rules     []Rule            `json:"rules"`        // 1..100; the first that fits counts
}

// Rule says what is done with an event. It has one of Submit, Signal and Message.
//
// A text that is called a place is taken from the body if it begins with "/": it is a JSON Pointer then. Other texts
// stand for themselves.
type Rule struct {
	Event   string   `json:"event"` // type of event; "" or "*" is every one
	Input   string   `json:"input"` // JSON Pointer to what is handed on; default the whole body
	Submit  *Submit  `json:"submit"`
	Signal  *Signal  `json:"signal"`
	Message *Message `json:"message"`
}

// Submit makes an execution.
type Submit struct {
	Kind     string            `json:"kind"`
	Lane     string            `json:"lane"`
	Priority int               `json:"priority"`
	Tags     map[string]string `json:"tags"` // values are places
}

// Signal answers a waitpoint: by its token, or by its execution and its id or key. All texts are places.
type Signal struct {
	Token     string `json:"token"`
	Execution string `json:"execution"`
	Waitpoint string `json:"waitpoint"`
	Name      string `json:"name"` // default as client.SignalName says
}

// Message goes to a mailbox of an execution. Both texts are places.
type Message struct {
	Execution string `json:"execution"`
	Mailbox   string `json:"mailbox"`
}

// hook is one that was checked.
type hook struct {
	Hook
	name    string
	scheme  signature.Scheme
	source  source
	secrets [][]byte
}

// Hooks are what [Read] has checked, by name.
type Hooks map[string]*hook

var hookName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,31}$`)

// Read checks a configuration and reads its secrets; namespace is the default of hooks. Errors wrap
// flowfabric.ErrConfig and name the field.
func Read(all map[string]Hook, namespace string) (Hooks, error) {
	if len(all) > maxHooks {
		return nil, fmt.Errorf("%w: in has %d hooks, want at most %d", flowfabric.ErrConfig, len(all), maxHooks)
	}
	read := Hooks{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		h := &hook{Hook: all[name], name: name}
		h.Namespace = cmp.Or(h.Namespace, namespace)
		if err := h.check(); err != nil {
			return nil, fmt.Errorf("%w: in.%s: %w", flowfabric.ErrConfig, name, err)
		}
		read[name] = h
	}
	return read, nil
}

func (h *hook) check() (err error) {
	if !hookName.MatchString(h.name) {
		return errors.New("the name of a hook is 1..32 of a-z, 0-9 and -, a letter first")
	}
	var known bool
	if h.scheme, known = signature.Schemes[h.Scheme]; !known {
		return fmt.Errorf("scheme is %.40q, want one of %s", h.Scheme,
			strings.Join(slices.Sorted(maps.Keys(signature.Schemes)), ", "))
	}
	h.source = sources[h.Scheme]
	if h.secrets, err = h.scheme.Secrets(h.Secrets); err != nil {
		return err
	}
	if h.Tolerance != 0 && !h.scheme.Timed {
		return fmt.Errorf("tolerance_ms has no place here: %s signs no time", h.Scheme)
	}
	if h.Tolerance == 0 {
		h.Tolerance = flowfabric.Millis(defaultTolerance)
	}
	if d := time.Duration(h.Tolerance); d < minTolerance || d > maxTolerance {
		return fmt.Errorf("tolerance_ms is %d, want %d..%d", d.Milliseconds(), minTolerance.Milliseconds(),
			maxTolerance.Milliseconds())
	}
	if err := valid.Name("namespace", h.Namespace); err != nil {
		return bare(err)
	}
	if len(h.Rules) < 1 || len(h.Rules) > maxRules {
		return fmt.Errorf("rules has %d entries, want 1..%d", len(h.Rules), maxRules)
	}
	for i, r := range h.Rules {
		if err := r.check(); err != nil {
			return fmt.Errorf("rules[%d].%w", i, err)
		}
	}
	return nil
}

func (r Rule) check() error {
	if r.Input != "" && !jsontext.Pointer(r.Input).IsValid() {
		return fmt.Errorf("input is %.60q, want a JSON Pointer such as /data/object", r.Input)
	}
	var wrong []error
	if s := r.Submit; s != nil {
		wrong = append(wrong, s.check())
	}
	if s := r.Signal; s != nil {
		wrong = append(wrong, s.check())
	}
	if m := r.Message; m != nil {
		wrong = append(wrong, place("message.execution", m.Execution, true), place("message.mailbox", m.Mailbox, true))
	}
	if n := count(r.Submit != nil, r.Signal != nil, r.Message != nil); n != 1 {
		return fmt.Errorf("submit, signal and message: %d of them are there, want one", n)
	}
	for _, err := range wrong {
		if err != nil {
			return err
		}
	}
	return nil
}

func count(all ...bool) (n int) {
	for _, one := range all {
		if one {
			n++
		}
	}
	return n
}

func (s *Submit) check() error {
	if err := valid.Name("submit.kind", s.Kind); err != nil {
		return bare(err)
	}
	if err := valid.Name("submit.lane", cmp.Or(s.Lane, limits.DefaultLane)); err != nil {
		return bare(err)
	}
	if s.Priority < 0 || s.Priority > limits.MaxPriority {
		return fmt.Errorf("submit.priority is %d, want 0..%d", s.Priority, limits.MaxPriority)
	}
	literal := map[string]string{} // what is not known yet may be anything
	for key, value := range s.Tags {
		literal[key] = "x"
		if !strings.HasPrefix(value, "/") {
			literal[key] = value
		}
		if err := place("submit.tags."+key, value, false); err != nil {
			return err
		}
	}
	if err := valid.Tags(literal); err != nil {
		return fmt.Errorf("submit.tags: %w", bare(err))
	}
	return nil
}

func (s *Signal) check() error {
	if (s.Token == "") == (s.Execution == "" && s.Waitpoint == "") {
		return errors.New("signal wants a token, or execution and waitpoint")
	}
	byToken := s.Token != ""
	return errors.Join(place("signal.token", s.Token, byToken), place("signal.execution", s.Execution, !byToken),
		place("signal.waitpoint", s.Waitpoint, !byToken), place("signal.name", s.Name, false))
}

// place checks a text that may be a place in the body.
func place(field, text string, needed bool) error {
	switch {
	case needed && text == "":
		return fmt.Errorf("%s is missing", field)
	case strings.HasPrefix(text, "/") && !jsontext.Pointer(text).IsValid():
		return fmt.Errorf("%s is %.60q, which is no JSON Pointer", field, text)
	}
	return nil
}

// bare is an error without the words of flowfabric.ErrInvalidInput: the file is wrong, not the input of a call.
func bare(err error) error {
	return errors.New(strings.TrimPrefix(err.Error(), flowfabric.ErrInvalidInput.Error()+": "))
}
