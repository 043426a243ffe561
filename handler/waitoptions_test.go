package handler

import (
	"errors"
	"strings"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// Options out of bounds are refused where they are used.
func TestOptionsOfAWait(t *testing.T) {
	for what, x := range map[string]struct {
		cond suspend.Condition
		opts []suspend.Option
		want error
		says string
	}{
		"defaults": {suspend.Signal("a"), nil, nil, ""},
		"ten years": {suspend.Signal("a"), []suspend.Option{suspend.Within(limits.MaxDelay),
			suspend.OnTimeout(suspend.Escalate),
			suspend.Because("manual_pause"), suspend.ResumeAfter(limits.MaxResumeDelay)}, nil, ""},
		"timeout":         {suspend.Timeout(), []suspend.Option{suspend.Within(1)}, nil, ""},
		"timeout without": {suspend.Timeout(), nil, denied.Condition, "timeout_only_without_deadline"},
		"negative": {suspend.Signal("a"), []suspend.Option{suspend.Within(-1)}, flowfabric.ErrInvalidInput,
			"Within is -1ns"},
		"more than ten years": {suspend.Signal("a"), []suspend.Option{suspend.Within(limits.MaxDelay + 1)},
			flowfabric.ErrInvalidInput,
			"want 1ms to ten years"},
		"delay negative": {suspend.Signal("a"), []suspend.Option{suspend.ResumeAfter(-1)}, flowfabric.ErrInvalidInput,
			"ResumeAfter is -1ns"},
		"delay of 31 days": {suspend.Signal("a"), []suspend.Option{suspend.ResumeAfter(31 * 24 * time.Hour)},
			flowfabric.ErrInvalidInput,
			"want 0..30 days"},
		"unknown behaviour": {suspend.Signal("a"), []suspend.Option{suspend.OnTimeout("explode")},
			flowfabric.ErrInvalidInput,
			`OnTimeout is "explode"`},
		"unknown reason": {suspend.Signal("a"), []suspend.Option{suspend.Because("unknown")},
			flowfabric.ErrInvalidInput,
			`Because is "unknown"`},
		"nil": {suspend.Signal("a"), []suspend.Option{nil}, flowfabric.ErrInvalidInput,
			"option 0 of the wait is nil"},
		"the condition itself": {suspend.AllOf(), nil, denied.Condition, "allof_empty_members"},
	} {
		w, err := waitOptionsOf(x.opts).wanted("w", x.cond)
		if !errors.Is(err, x.want) || (err == nil) != (w != nil) ||
			err != nil && !strings.Contains(err.Error(), x.says) {
			t.Errorf("%s: %v, %v; want %v %q", what, w, err, x.want, x.says)
		}
		on := On(x.cond, x.opts...)
		if IsWait(on) != (x.want == nil) || x.want != nil && !errors.Is(on, x.want) {
			t.Errorf("%s: On is %v", what, on)
		}
	}
}
