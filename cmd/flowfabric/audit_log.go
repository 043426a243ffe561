package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/flowfabric/flowfabric-go/admission"
)

// words is what an entry says, for people.
func auditWords(e admission.AuditEntry) string {
	switch {
	case e.Gate != nil:
		return gateText(*e.Gate)
	case e.Period != nil:
		return join(", ", fmt.Sprintf("period %d", *e.Period), join(" ", "used", strNothing(amountsText(e.Amounts))))
	case e.Breach != nil:
		return join(" ", breachText(*e.Breach), by(e.Execution))
	case e.Outcome != "":
		return join(" ", e.Execution, e.Outcome, amountsText(e.Amounts))
	case e.Amounts != nil:
		return join(" ", e.Execution, amountsText(e.Amounts), e.Reason)
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

// gateText is what a gate allows, for people.
func gateText(g admission.Gate) string {
	limits, rate, slots, parent := "", "", "", ""
	if g.Service != nil {
		return serviceText(*g.Service)
	}
	if len(g.Limits) > 0 {
		limits = limitsText(g.Limits)
	}
	if g.Rate > 0 {
		rate = fmt.Sprintf("%d in %s", g.Rate, span(time.Duration(g.Window)))
	}
	if g.Concurrency > 0 {
		slots = strconv.Itoa(g.Concurrency) + " at once"
	}
	if g.Parent != "" {
		parent = "parent " + g.Parent
	}
	return join(", ", cmp.Or(join(", ", limits, rate, slots), "no limits"), parent)
}

// limitsText tells limits of amounts for people.
func limitsText(limits map[string]admission.Limit) string {
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
