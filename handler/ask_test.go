package handler

import (
	"errors"
	"strings"
	"testing"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/waitwords"
	"github.com/flowfabric/flowfabric-go/suspend"
)

func TestQuestionBounds(t *testing.T) {
	choices := func(n int) (list []suspend.Choice) {
		for i := range n {
			list = append(list, suspend.Choice{Name: strings.Repeat("c", i+1)})
		}
		return list
	}
	long := strings.Repeat("x", 4096)
	for name, tc := range map[string]struct {
		q    suspend.Question
		says string // "" = it is accepted
	}{
		"the least": {suspend.Question{Title: "a"}, ""},
		"the most": {suspend.Question{Title: strings.Repeat("t", 200), Text: long, Choices: choices(8),
			Assignee: strings.Repeat("a", 128)}, ""},
		"lines":    {suspend.Question{Title: "a", Text: "one\ntwo\tthree\r\nfour"}, ""},
		"no title": {suspend.Question{}, "the title of the question is empty, want 1..200 bytes"},
		"a long title": {suspend.Question{Title: strings.Repeat("t", 201)},
			"title of the question has 201 bytes, want at most 200"},
		"a line break": {suspend.Question{Title: "a\nb"}, "control character 0x0a"},
		"a long text": {suspend.Question{Title: "a", Text: long + "x"},
			"the text of the question has 4097 bytes, want at most 4096"},
		"a control":    {suspend.Question{Title: "a", Text: "\x1b"}, "control character 0x1b"},
		"not UTF-8":    {suspend.Question{Title: "a\xff"}, "not valid UTF-8"},
		"one choice":   {suspend.Question{Title: "a", Choices: choices(1)}, "1 choices, want 2..8"},
		"nine choices": {suspend.Question{Title: "a", Choices: choices(9)}, "9 choices, want 2..8"},
		"the same twice": {suspend.Question{Title: "a", Choices: []suspend.Choice{{Name: "x"}, {Name: "x"}}},
			`two choices of the question are named "x"`},
		"a reserved name": {suspend.Question{Title: "a", Choices: []suspend.Choice{{Name: "x"}, {Name: "__x"}}},
			"do not begin with __"},
		"a long name": {suspend.Question{Title: "a", Choices: []suspend.Choice{{Name: "x"},
			{Name: strings.Repeat("n", 129)}}},
			"129 bytes, want at most 128"},
		"a long label": {suspend.Question{Title: "a", Choices: []suspend.Choice{{Name: "x"},
			{Name: "y", Label: strings.Repeat("n", 129)}}}, "label of a choice has 129 bytes"},
		"a long assignee": {suspend.Question{Title: "a", Assignee: strings.Repeat("n", 129)},
			"assignee of the question has 129 bytes"},
		"too much in quotes": {suspend.Question{Title: "a", Text: strings.Repeat(`"`, 4096)},
			"bytes as JSON, want at most 8192"},
	} {
		t.Run(name, func(t *testing.T) {
			err := On(suspend.Signal("k"), suspend.Asking(tc.q))
			if tc.says == "" {
				if w, ok := errors.AsType[*waitwords.Wanted](err); !ok || !strings.Contains(w.Question,
					`"choices":[{"name":`) {
					t.Errorf("%v", err)
				}
			} else if !errors.Is(err, flowfabric.ErrInvalidInput) || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("%v, want %s", err, tc.says)
			}
		})
	}
}
