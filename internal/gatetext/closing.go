// Package gatetext reads what gates write as text into the store: why a route is closed, what their audit logs
// say, and to what gates are attached. It makes no call.
package gatetext

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/internal/valid"
)

// ClosedBy is what the line of a closed route says.
type ClosedBy struct {
	Kind ClosingKind
	Gate flowfabric.Gate // "" with ClosedOtherwise, and with ClosedUnavailable if it was not known
	// Of an amount.
	Dimension   string
	Used, Limit int64
	Refused     int64 // what of it does not fit; 0 = nothing does
}

// ClosingKind says why a gate closed a route.
type ClosingKind string

// The kinds.
const (
	ClosedByAmount ClosingKind = "amount"         // a dimension is at its hard limit, or above
	ClosedByRate   ClosingKind = "rate"           // its window is full
	ClosedByCap    ClosingKind = "cap"            // all its slots are taken
	ClosedNoGate   ClosingKind = "gate_not_found" // no gate has this name
	// the gate could not be asked, or it was not known which ones there are
	ClosedUnavailable ClosingKind = "unavailable"
	ClosedOtherwise   ClosingKind = "" // the line is none of those
)

// ParseClosing reads a line: "gate <name> amount <dimension> <used> <limit>[ <refused>]", "gate <name> rate", "gate
// <name> cap", "gate_not_found <name>", "unavailable gate <name>" or "unavailable route".
func ParseClosing(why string) ClosedBy {
	if why == "unavailable route" {
		return ClosedBy{Kind: ClosedUnavailable}
	}
	words := strings.Split(why, " ")
	by := ClosedBy{}
	switch {
	case len(words) == 2 && words[0] == string(ClosedNoGate):
		by = ClosedBy{Kind: ClosedNoGate, Gate: flowfabric.Gate(words[1])}
	case len(words) == 3 && words[0] == "unavailable" && words[1] == "gate":
		by = ClosedBy{Kind: ClosedUnavailable, Gate: flowfabric.Gate(words[2])}
	case len(words) < 3 || words[0] != "gate":
	case len(words) == 3 && (words[2] == "rate" || words[2] == "cap"):
		by = ClosedBy{Kind: ClosingKind(words[2]), Gate: flowfabric.Gate(words[1])}
	case words[2] == "amount" && (len(words) == 6 || len(words) == 7):
		var n [3]int64
		for i, word := range words[4:] {
			var err error
			if n[i], err = strconv.ParseInt(word, 10, 64); err != nil {
				return ClosedBy{}
			}
		}
		if valid.Dimension("dimension", words[3]) == nil {
			by = ClosedBy{Kind: ClosedByAmount, Gate: flowfabric.Gate(words[1]), Dimension: words[3], Used: n[0],
				Limit: n[1], Refused: n[2]}
		}
	}
	if !gateName(by.Gate) {
		return ClosedBy{}
	}
	return by
}

// ClosingText is the line for people.
func ClosingText(why string) string {
	by := ParseClosing(why)
	if by.Kind == ClosedUnavailable && by.Gate == "" {
		return "gates unavailable"
	}
	if _, _, limit := by.Gate.Limit(); limit {
		return by.Gate.String() + " " + string(by.Kind)
	}
	return why
}

// WhyClosed is what the line of a closed route says, for programs and people.
func WhyClosed(why string) admission.Closing {
	by := ParseClosing(why)
	c := admission.Closing{Code: cmp.Or(string(by.Kind), "other"), Gate: by.Gate, Dimension: by.Dimension,
		Used: by.Used, Limit: by.Limit, Refused: by.Refused}
	if by.Gate == "" {
		c.Text = ClosingText(why)
		return c
	}
	if key, limit, ok := by.Gate.Limit(); ok {
		c.Key, c.PerKey = key, limit.String()
	} else {
		c.Name = by.Gate.Name()
	}
	c.Text = inWords(c)
	return c
}

// inWords is the reason for people.
func inWords(c admission.Closing) string {
	what := "gate " + c.Name
	if c.Key != "" {
		what = fmt.Sprintf("limit of key %s (%s)", c.Key, c.PerKey)
	}
	switch c.Code {
	case "amount":
		text := fmt.Sprintf("%s: %d used of %d %s", what, c.Used, c.Limit, c.Dimension)
		if c.Refused > 0 {
			text += fmt.Sprintf(", %d do not fit", c.Refused)
		}
		return text
	case "rate":
		return what + ": too many starts in its window"
	case "cap":
		return what + ": all slots are taken"
	case "unavailable":
		if c.Text != "" {
			return c.Text
		}
		return what + ": cannot be asked"
	case "gate_not_found":
		return "there is no " + what
	}
	return c.Text
}

// UsedUp counts the executions that wait for amounts, by gate.
type UsedUp map[string]int

// Add counts what a closing keeps waiting.
func (u UsedUp) Add(c admission.Closing, waiting int) {
	if c.Code == string(ClosedByAmount) && waiting > 0 {
		u[c.Name] += waiting
	}
}

// Names are the gates, those for which most waits in front.
func (u UsedUp) Names() []string {
	return slices.SortedFunc(maps.Keys(u), func(a, b string) int { return cmp.Or(u[b]-u[a], strings.Compare(a, b)) })
}

func gateName(gate flowfabric.Gate) bool {
	_, _, limit := gate.Limit()
	return limit || valid.GateName("gate", gate.Name()) == nil
}
