package admission

import (
	"fmt"

	flowfabric "github.com/flowfabric/flowfabric-go"
)

// Closing is why a gate keeps work from running.
type Closing struct {
	Code      string          `json:"code" jsonschema:"budget, rate, cap, budget_not_found, quota_policy_not_found, unavailable, or other: see text"`
	Gate      flowfabric.Gate `json:"-"` // "" with other, and with unavailable if it was not known
	Budget    string          `json:"budget,omitempty"`
	Quota     string          `json:"quota,omitempty"`
	Key       string          `json:"limit_key,omitempty" jsonschema:"of a limit of a key"`
	PerKey    string          `json:"key_limit,omitempty" jsonschema:"what that limit is"`
	Dimension string          `json:"dimension,omitempty" jsonschema:"of a budget"`
	Used      int64           `json:"used,omitempty" jsonschema:"of the dimension"`
	Limit     int64           `json:"limit,omitempty" jsonschema:"of the dimension"`
	Refused   int64           `json:"refused,omitempty" jsonschema:"what does not fit"`
	Text      string          `json:"text" jsonschema:"for people"`
}

// String is the reason for people.
func (c Closing) String() string {
	what := "quota " + c.Quota
	if c.Key != "" {
		what = fmt.Sprintf("limit of key %s (%s)", c.Key, c.PerKey)
	}
	switch c.Code {
	case "budget":
		text := fmt.Sprintf("budget %s: %d used of %d %s", c.Budget, c.Used, c.Limit, c.Dimension)
		if c.Refused > 0 {
			text += fmt.Sprintf(", %d do not fit", c.Refused)
		}
		return text
	case "rate":
		return what + ": too many starts in its window"
	case "cap":
		return what + ": all slots are taken"
	case "unavailable":
		switch {
		case c.Text != "":
			return c.Text
		case c.Budget != "":
			what = "budget " + c.Budget
		}
		return what + ": cannot be asked"
	case "budget_not_found":
		return "there is no budget " + c.Budget
	case "quota_policy_not_found":
		return "there is no quota " + c.Quota
	}
	return c.Text
}
