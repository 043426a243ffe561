package gatetext

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/mint"
)

// Audit reads the entries of a gate's audit log.
func Audit(name string, entries []string) (out []admission.AuditEntry, err error) {
	for _, text := range entries {
		parts := strings.SplitN(text, "\x1f", 4)
		if len(parts) != 4 {
			return out, fmt.Errorf("audit entry of %d parts", len(parts))
		}
		ms, err := strconv.ParseInt(parts[0], 10, 64)
		if err != nil {
			return out, fmt.Errorf("audit entry: %w", err)
		}
		e := admission.AuditEntry{At: time.UnixMilli(ms).UTC(), What: parts[1], By: parts[2], Detail: parts[3]}
		spelledIDs(&e)
		auditWords(&e, name)
		out = append(out, e)
	}
	return out, nil
}

// spelledIDs has the executions that a gate's audit log names written as everywhere else.
func spelledIDs(e *admission.AuditEntry) {
	at := map[string]*string{"release": &e.Detail, "allowed": &e.Detail, "soft_limit": &e.By}[e.What]
	if at == nil {
		return
	}
	who, rest, more := strings.Cut(*at, " ")
	if id, err := ParseSpender(who); err == nil {
		*at = id.String()
		if more {
			*at += " " + rest
		}
	}
}

// ParseSpender reads how gates write an execution: <partition>.<uuid>.
func ParseSpender(text string) (flowfabric.ExecutionID, error) {
	where, name, _ := strings.Cut(text, ".")
	partition, bad := strconv.ParseUint(where, 10, 16)
	id, err := ids.ParseUUID(name)
	return mint.Join(uint16(partition), id), errors.Join(bad, err)
}

// auditWords reads the detail of an entry of a gate; one that is not as expected is left as it is.
func auditWords(e *admission.AuditEntry, name string) {
	before, known := *e, false
	switch w := strings.Split(e.Detail, " "); e.What {
	case "created", "changed":
		known = auditedSettings(e, name, w)
	case "adjusted", "raised":
		var text string
		text, e.Reason, _ = strings.Cut(e.Detail, " ")
		e.Amounts, known = readAmounts(text)
	case "allowed": // who, by how much, and why
		var text string
		e.Execution, text, _ = strings.Cut(e.Detail, " ")
		text, e.Reason, _ = strings.Cut(text, " ")
		e.Amounts, known = readAmounts(text)
	case "period": // its number, its beginning, how many were missed after it, and what was used
		if len(w) == 4 {
			period := uint64(counted(w[0]))
			e.Period, e.Missed = &period, uint64(counted(w[2]))
			if ms := counted(w[1]); ms > 0 {
				e.Began = time.UnixMilli(ms).UTC()
			}
			e.Amounts, known = readAmounts(w[3])
		}
	case "release":
		if len(w) == 3 {
			e.Execution, e.Outcome = w[0], w[1]
			e.Amounts, known = readAmounts(w[2])
		}
	case "soft_limit":
		if len(w) == 3 {
			e.Execution, known = e.By, true
			e.Breach = &admission.Breach{Dimension: w[0], Used: counted(w[1]), Limit: counted(w[2]), Crossed: true}
		}
	}
	if !known {
		*e = before
	}
}

// auditedSettings reads what a gate was created with or changed to: scope, mode, on hard, on soft, interval, strict,
// refund, rate, window, how many at once, jitter, the gate above and limits; and of a service what there is of that.
func auditedSettings(e *admission.AuditEntry, name string, w []string) bool {
	n, service := len(w), ""
	if n > 13 && strings.HasPrefix(w[n-1], "sv,") {
		n, service = n-1, w[n-1]
	}
	if n < 13 {
		return false
	}
	w, e.Gate = w[n-12:n], &admission.Gate{Name: name, Scope: strings.Join(w[:n-12], " ")}
	g := e.Gate
	g.Warn, g.OnHard, g.WarnSoft = w[0] == "warn", admission.HardAction(w[1]), w[2] == "warn"
	g.Reset, g.StrictDimensions = millis(counted(w[3])), w[4] == "1"
	if w[5] != "" {
		g.Refund = strings.Split(w[5], ",")
	}
	g.Rate, g.Window, g.Concurrency, g.Jitter = int(counted(w[6])), millis(counted(w[7])), int(counted(w[8])),
		millis(counted(w[9]))
	g.Parent = w[10]
	parts := strings.Split(w[11], ",") // h:<dimension>,<hard>,s:<dimension>,<soft>,…
	for i := 0; i+3 < len(parts); i += 4 {
		if g.Limits == nil {
			g.Limits = map[string]admission.Limit{}
		}
		g.Limits[strings.TrimPrefix(parts[i], "h:")] = admission.Limit{Hard: counted(parts[i+1]),
			Soft: counted(parts[i+3])}
	}
	if service != "" {
		g.Service = auditedService(strings.Split(service, ","))
	}
	return true
}

// auditedService reads sv,<dimension>=<a minute's>/<burst>,…,cl,<calls>,pt,<ms>,t:<namespace>,<weight>,….
func auditedService(w []string) *admission.Service {
	s := &admission.Service{}
	i := 1
	for ; i < len(w) && w[i] != "cl"; i++ {
		ParseRate(s, w[i])
	}
	for ; i+1 < len(w); i += 2 {
		n := counted(w[i+1])
		switch namespace, weight := strings.CutPrefix(w[i], "t:"); {
		case weight && s.Weights == nil:
			s.Weights = map[string]int{namespace: int(n)}
		case weight:
			s.Weights[namespace] = int(n)
		case w[i] == "cl":
			s.Calls = int(n)
		case w[i] == "pt":
			s.Patience = millis(n)
		}
	}
	return s
}

// ParseRate reads <dimension>=<a minute's>/<burst> of a service; what is none is left out, and what is no number is 0.
func ParseRate(s *admission.Service, text string) {
	dim, numbers, ok := strings.Cut(text, "=")
	if !ok {
		return
	}
	if s.PerMinute == nil {
		s.PerMinute, s.Burst = map[string]int64{}, map[string]int64{}
	}
	minute, burst, _ := strings.Cut(numbers, "/")
	s.PerMinute[dim], s.Burst[dim] = counted(minute), counted(burst)
}

// counted is a number; what is none counts as 0.
func counted(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64)
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

// millis is a number of milliseconds.
func millis(n int64) flowfabric.Millis { return flowfabric.Millis(time.Duration(n) * time.Millisecond) }
