package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/flowfabric/flowfabric-go/admission"
)

// auditEntry is an admission.AuditEntry for --json: what its detail says, by name.
type auditEntry struct {
	At        time.Time        `json:"at"`
	What      string           `json:"what"` // created, changed, adjusted, period, release, soft_limit
	By        string           `json:"by,omitempty"`
	Budget    *budgetSettings  `json:"budget,omitempty"`    // created, changed
	Quota     *quotaSettings   `json:"quota,omitempty"`     // created, changed
	Amounts   map[string]int64 `json:"amounts,omitempty"`   // adjusted: what was added; release: what was given back
	Reason    string           `json:"reason,omitempty"`    // adjusted: why
	Period    *periodEnd       `json:"period,omitempty"`    // period: the one that ended
	Execution string           `json:"execution,omitempty"` // release: whose; soft_limit: who reported
	Outcome   string           `json:"outcome,omitempty"`   // release: how it ended, or asked
	Breach    *breach          `json:"breach,omitempty"`    // soft_limit
	Detail    string           `json:"detail,omitempty"`    // what this command does not understand
}

// budgetSettings are what a budget was created with, or changed to.
type budgetSettings struct {
	Scope      string           `json:"scope,omitempty"`
	Mode       string           `json:"mode"`
	OnHard     string           `json:"on_hard"`
	OnSoft     string           `json:"on_soft"`
	Strict     bool             `json:"strict_dimensions"`
	Refund     []string         `json:"refund,omitempty"`
	Reset      int64            `json:"reset_ms,omitempty"`
	Dimensions map[string]limit `json:"dimensions"`
}

// limit of a dimension; 0 is none.
type limit struct {
	Hard int64 `json:"hard,omitempty"`
	Soft int64 `json:"soft,omitempty"`
}

// quotaSettings are what a quota was created with, or changed to.
type quotaSettings struct {
	Scope  string `json:"scope,omitempty"`
	Rate   int    `json:"rate,omitempty"`
	Window int64  `json:"window_ms,omitempty"`
	Cap    int    `json:"cap,omitempty"`
	Jitter int64  `json:"jitter_ms,omitempty"`
}

// periodEnd is a period of a budget that ended.
type periodEnd struct {
	Number uint64           `json:"number"`
	Began  time.Time        `json:"began_at,omitzero"`
	Missed uint64           `json:"periods_missed,omitempty"` // after it
	Used   map[string]int64 `json:"used"`
}

func auditLog(entries []admission.AuditEntry) []auditEntry {
	var out []auditEntry
	for _, e := range entries {
		out = append(out, newEntry(e))
	}
	return out
}

// newEntry reads the detail of an entry; one that is not as expected is left as it is.
func newEntry(e admission.AuditEntry) auditEntry {
	v := auditEntry{At: utc(e.At), What: e.What, By: e.By}
	known := false
	switch e.What {
	case "created", "changed":
		known = v.settings(strings.Split(e.Detail, " "))
	case "adjusted":
		var amounts string
		amounts, v.Reason, _ = strings.Cut(e.Detail, " ")
		v.Amounts, known = readAmounts(amounts)
	case "period":
		known = v.ended(strings.Split(e.Detail, " "))
	case "release":
		if w := strings.Split(e.Detail, " "); len(w) == 3 {
			v.Execution, v.Outcome = w[0], w[1]
			v.Amounts, known = readAmounts(w[2])
		}
	case "soft_limit":
		if w := strings.Split(e.Detail, " "); len(w) == 3 {
			v.Execution, v.By, known = e.By, "", true
			v.Breach = &breach{Dimension: w[0], Kind: "soft", Used: int64(number(w[1])), Limit: int64(number(w[2]))}
		}
	}
	if !known {
		return auditEntry{At: v.At, What: e.What, By: e.By, Detail: e.Detail}
	}
	return v
}

// settings reads the settings of a budget: scope, mode, on hard, on soft, interval, strict, refund and limits; or of
// a quota: scope, rate, window, cap and jitter. A scope may have spaces, the rest has none.
func (e *auditEntry) settings(w []string) bool {
	n := len(w)
	if n == 0 {
		return false
	}
	if last := w[n-1]; n >= 8 && (last == "" || strings.HasPrefix(last, "h:")) {
		e.Budget = &budgetSettings{Scope: strings.Join(w[:n-7], " "), Mode: w[n-7], OnHard: w[n-6], OnSoft: w[n-5],
			Reset: int64(number(w[n-4])), Strict: w[n-3] == "1", Dimensions: readLimits(last)}
		if w[n-2] != "" {
			e.Budget.Refund = strings.Split(w[n-2], ",")
		}
		return true
	}
	if n < 5 {
		return false
	}
	e.Quota = &quotaSettings{Scope: strings.Join(w[:n-4], " "), Rate: number(w[n-4]), Window: int64(number(w[n-3])),
		Cap: number(w[n-2]), Jitter: int64(number(w[n-1]))}
	return true
}

// ended reads a period: its number, its beginning, how many were missed after it, and what was used.
func (e *auditEntry) ended(w []string) bool {
	if len(w) != 4 {
		return false
	}
	used, ok := readAmounts(w[3])
	e.Period = &periodEnd{Number: uint64(number(w[0])), Missed: uint64(number(w[2])), Used: used}
	if ms := number(w[1]); ms > 0 {
		e.Period.Began = time.UnixMilli(int64(ms)).UTC()
	}
	return ok
}

func number(text string) int {
	n, _ := strconv.Atoi(text)
	return n
}

// readAmounts reads <dimension>=<amount>,…; "" is none.
func readAmounts(text string) (map[string]int64, bool) {
	out := map[string]int64{}
	if text == "" {
		return out, true
	}
	for part := range strings.SplitSeq(text, ",") {
		dim, amount, ok := strings.Cut(part, "=")
		n, err := strconv.ParseInt(amount, 10, 64)
		if !ok || err != nil {
			return nil, false
		}
		out[dim] = n
	}
	return out, true
}

// readLimits reads h:<dimension>,<hard>,s:<dimension>,<soft>,….
func readLimits(text string) map[string]limit {
	out := map[string]limit{}
	parts := strings.Split(text, ",")
	for i := 0; i+3 < len(parts); i += 4 {
		out[strings.TrimPrefix(parts[i], "h:")] = limit{Hard: int64(number(parts[i+1])),
			Soft: int64(number(parts[i+3]))}
	}
	return out
}

// words is what an entry says, for people.
func (e auditEntry) words() string {
	switch {
	case e.Budget != nil:
		return limitsText(e.Budget.Dimensions)
	case e.Quota != nil:
		return quota{Rate: e.Quota.Rate, Window: e.Quota.Window}.settings(e.Quota.Cap)
	case e.Period != nil:
		return join(", ", fmt.Sprintf("period %d", e.Period.Number),
			join(" ", "used", strNothing(amountsText(e.Period.Used))))
	case e.Breach != nil:
		return join(" ", e.Breach.String(), by(e.Execution))
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
func limitsText(limits map[string]limit) string {
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
func auditTable(p *page, log []auditEntry) {
	if len(log) == 0 {
		return
	}
	p.say("\naudit log:")
	rows := make([][]any, len(log))
	for i, e := range log {
		rows[i] = []any{instant(e.At), e.What, e.By, e.words()}
	}
	p.table([]string{"AT", "WHAT", "BY", "DETAIL"}, rows)
}
