// Package prose writes numbers, spans of time, lists and errors as people read them. It keeps secrets of connections
// and tokens out of texts.
package prose

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Span is a duration for people, in at most two units; empty for none.
func Span(d time.Duration) string {
	switch {
	case d == 0:
		return ""
	case d < 0:
		return "-" + Span(-d)
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%dd%02dh", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
}

// Count is a number with its noun: "1 partition", "3 partitions".
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

// Ranges is a sorted list of numbers as people write it: "0-3,7".
func Ranges(numbers []uint16) string {
	numbers = slices.Clone(numbers)
	slices.Sort(numbers)
	var parts []string
	for i := 0; i < len(numbers); {
		j := i
		for j+1 < len(numbers) && numbers[j+1] == numbers[j]+1 {
			j++
		}
		part := strconv.Itoa(int(numbers[i]))
		if j > i {
			part += "-" + strconv.Itoa(int(numbers[j]))
		}
		parts = append(parts, part)
		i = j + 1
	}
	return strings.Join(parts, ",")
}

// Folded is a text on one line: without line breaks and tabs.
func Folded(text string) string {
	if !strings.ContainsAny(text, "\r\n\t") {
		return text
	}
	return strings.Join(strings.Fields(text), " ")
}

// Cut shortens a text to limit bytes, at the end of a rune.
func Cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit]
}

// Join puts texts together, leaving out the empty ones.
func Join(between string, texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(s string) bool { return s == "" }), between)
}
