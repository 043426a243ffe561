package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/flowfabric/flowfabric-go/admission"
)

// words is what an entry says, for people.
func auditWords(e admission.AuditEntry) string {
	switch {
	case e.Budget != nil:
		return limitsText(e.Budget.Limits)
	case e.Quota != nil:
		return quotaText(*e.Quota)
	case e.Period != nil:
		return join(", ", fmt.Sprintf("period %d", *e.Period), join(" ", "used", strNothing(amountsText(e.Amounts))))
	case e.Breach != nil:
		return join(" ", breachText(*e.Breach), by(e.Execution))
	case e.Outcome != "":
		return join(" ", e.Execution, e.Outcome, amountsText(e.Amounts))
	case e.Amounts != nil:
		return join(" ", amountsText(e.Amounts), e.Reason)
	}
	return e.Detail
}

func strNothing(text string) string {
	if text == "" {
		return "nothing"
	}
	return text
}

func by(who string) string {
	if who == "" {
		return ""
	}
	return "(reported by " + who + ")"
}

// limitsText tells limits for people.
func limitsText(limits map[string]admission.Limit) string {
	if len(limits) == 0 {
		return "no limits"
	}
	var out []string
	for _, dim := range slices.Sorted(maps.Keys(limits)) {
		l := limits[dim]
		text := fmt.Sprintf("%s=%d", dim, l.Hard)
		if l.Hard == 0 {
			text = dim + " " + unlimited
		}
		if l.Soft > 0 {
			text += fmt.Sprintf(" (soft %d)", l.Soft)
		}
		out = append(out, text)
	}
	return "limits " + strings.Join(out, " ")
}

// auditTable writes an audit log, if there is anything in it.
func auditTable(p *page, log []admission.AuditEntry) {
	if len(log) == 0 {
		return
	}
	p.say("\naudit log:")
	rows := make([][]any, len(log))
	for i, e := range log {
		who := e.By
		if e.Breach != nil { // the execution is among the words
			who = ""
		}
		rows[i] = []any{instant(e.At), e.What, who, auditWords(e)}
	}
	p.table([]string{"AT", "WHAT", "BY", "DETAIL"}, rows)
}
