package crash

import (
	"fmt"
	"slices"
	"strings"
)

// judge compares what a run has cost and shown with the conversation that its result belongs to.
func (a *account) judge(out *outcome, result string, shown []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	out.tokens, out.bookings = a.tokens, len(a.booked)
	first := map[string]string{} // by key: the seat that a bank which knows keys has booked
	for _, b := range a.booked {
		if _, ok := first[b.Key]; !ok {
			first[b.Key] = b.Seat
		}
	}
	out.keyed = len(first)
	if out.wrong != "" {
		return
	}
	at := -1
	for i := range a.asked {
		if result == said(turns, i) {
			at = i
		}
	}
	if at < 0 {
		out.wrong = fmt.Sprintf("the result is %q, which no answer was", result)
		return
	}
	var expected []string // tokens of the conversation
	var seats []string
	for _, m := range a.asked[at] {
		if m.Role != assistant {
			continue
		}
		expected = append(expected, tokens(m.Text)...)
		seats = append(seats, m.Call.Seat)
	}
	expected = append(expected, tokens(result)...)
	var booked []string
	for _, seat := range first {
		booked = append(booked, seat)
	}
	slices.Sort(booked)
	slices.Sort(seats)
	out.other = !slices.Equal(booked, seats)
	out.twice, out.lost = differ(shown, expected)
	out.ruled, _ = differ(ruled(shown), expected)
}

// said is an answer of the model.
func said(turn, sample int) string {
	var b strings.Builder
	for i := range perTurn {
		b.WriteString(word(turn, sample, i))
	}
	return b.String()
}

func tokens(text string) []string {
	return slices.Collect(strings.SplitAfterSeq(strings.TrimSuffix(text, " "), " "))
}

// differ counts the tokens that were shown and are not expected, or not so often, and those that are missing.
func differ(shown, expected []string) (more, lost int) {
	left := map[string]int{}
	for _, t := range expected {
		left[strings.TrimSpace(t)]++
	}
	for _, t := range shown {
		if t = strings.TrimSpace(t); left[t] > 0 {
			left[t]--
		} else {
			more++
		}
	}
	for _, n := range left {
		lost += n
	}
	return more, lost
}

// ruled is what a reader shows that drops an answer, and all after it, when the same answer begins again. That is a
// rule between an application's worker and its reader: a token tells which answer it is of.
func ruled(shown []string) (out []string) {
	for _, t := range shown {
		turn, rest, _ := strings.Cut(t, ".")
		if _, i, _ := strings.Cut(rest, "."); strings.TrimSpace(i) == "0" {
			if at := slices.IndexFunc(out, func(o string) bool { return o[:1] >= turn }); at >= 0 {
				out = out[:at]
			}
		}
		out = append(out, t)
	}
	return out
}
