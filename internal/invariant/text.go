package invariant

import (
	"crypto/sha1"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// Text is the whole content, one line a fact, in order; two equal texts are two equal partitions. without leaves
// out facts by their prefix.
func (d *Dump) Text(without ...string) string {
	without = append([]string{traces}, without...)
	var lines []string
	add := func(parts ...string) {
		line := strings.Join(parts, " ")
		if !slices.ContainsFunc(without, func(p string) bool { return strings.HasPrefix(line, p) }) {
			lines = append(lines, line)
		}
	}
	for f, v := range d.Root {
		add("root", f, "=", show(v))
	}
	for k, h := range d.Hashes {
		for f, v := range h {
			add(k, show(f), "=", show(v))
		}
	}
	for id, points := range d.Waitpoints {
		for point, text := range points {
			add(":waitpoint", id, point, "=", show(text))
		}
	}
	for k, z := range d.ZSets {
		for m, s := range z {
			add(k, show(m), "@", strconv.FormatFloat(s, 'f', -1, 64))
		}
	}
	for k, s := range d.Sets {
		add(k, strings.Join(s, " "))
	}
	for k, v := range d.Texts {
		add(k, show(v))
	}
	for k, l := range d.Lists {
		add(k, strings.Join(l, "; "))
	}
	for k, s := range d.Streams {
		for _, x := range s {
			for f, v := range x.FieldValues {
				add(k, x.ID, f, "=", show(v))
			}
		}
	}
	for _, x := range d.Outbox {
		for _, n := range x.FieldValues {
			add(":outbox", x.ID, n.Field, "=", show(n.Value))
		}
	}
	for _, k := range d.Strange {
		add("strange", k)
	}
	for k := range d.Expires {
		add("expires", k)
	}
	sort.Strings(lines)
	return strings.Join(lines, "\n")
}

// show is a value in one line; a long one stands as its length and hash.
func show(v string) string {
	if len(v) > 200 {
		return fmt.Sprintf("%d bytes %x", len(v), sha1.Sum([]byte(v)))
	}
	return strconv.Quote(v)
}

// Difference shows the lines that two texts do not share.
func Difference(a, b string) string {
	var out strings.Builder
	only := func(sign, these, those string) {
		others := map[string]bool{}
		for line := range strings.SplitSeq(those, "\n") {
			others[line] = true
		}
		for line := range strings.SplitSeq(these, "\n") {
			if !others[line] {
				fmt.Fprintf(&out, "%s %.300s\n", sign, line)
			}
		}
	}
	only("-", a, b)
	only("+", b, a)
	return out.String()
}
