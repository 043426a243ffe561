package markdown

import (
	"regexp"
	"strconv"
	"strings"
)

var (
	item  = regexp.MustCompile(`^\s{0,3}(?:([-*+])|(\d{1,9})[.)])\s+(.*)$`)
	fence = regexp.MustCompile("^\\s{0,3}(```|~~~)")
	head  = regexp.MustCompile(`^\s{0,3}#{1,6}\s+(.*)$`)
	rule  = regexp.MustCompile(`^\s{0,3}(?:[-*_]\s*){3,}$`)
	quote = regexp.MustCompile(`^\s{0,3}> ?`)
	start = regexp.MustCompile(`^\s{0,3}(?:#{1,6}\s|>)`)
)

func starts(line string) bool {
	return item.MatchString(line) || fence.MatchString(line) || start.MatchString(line)
}

func blank(line string) bool { return strings.TrimSpace(line) == "" }

// blocks reads lines.
func blocks(lines []string, deep int) (out []Node) {
	for len(lines) > 0 {
		line, used := lines[0], 1
		var n Node
		switch {
		case blank(line):
			lines = lines[1:]
			continue
		case fence.MatchString(line):
			n, used = fenced(lines)
		case head.MatchString(line):
			n = Node{Kind: "head", Nodes: inline(head.FindStringSubmatch(line)[1], 0, false)}
		case rule.MatchString(line):
			n = Node{Kind: "hr"}
		case quote.MatchString(line) && deep < deepest:
			var inner []string
			for _, l := range lines {
				if !quote.MatchString(l) {
					break
				}
				inner = append(inner, quote.ReplaceAllString(l, ""))
			}
			n, used = Node{Kind: "quote", Nodes: blocks(inner, deep+1)}, len(inner)
		case item.MatchString(line):
			n, used = list(lines)
		default:
			for used < len(lines) && !blank(lines[used]) && !starts(lines[used]) {
				used++
			}
			n = Node{Kind: "p", Nodes: inline(strings.Join(lines[:used], "\n"), 0, false)}
		}
		out, lines = append(out, n), lines[used:]
	}
	return out
}

// fenced reads code between two fences, or from one to the end.
func fenced(lines []string) (Node, int) {
	mark, end := fence.FindStringSubmatch(lines[0])[1], 1
	for end < len(lines) && !strings.HasPrefix(strings.TrimSpace(lines[end]), mark) {
		end++
	}
	return Node{Kind: "pre", Text: visible(strings.Join(lines[1:end], "\n"))}, min(end+1, len(lines))
}

// list reads items that follow each other, with at most one empty line between two.
func list(lines []string) (Node, int) {
	n, numbered := Node{Kind: "ul"}, item.FindStringSubmatch(lines[0])[2]
	if numbered != "" {
		n.Kind = "ol"
		n.Start, _ = strconv.Atoi(numbered) // at most nine digits
	}
	i := 0
	for i < len(lines) {
		m := item.FindStringSubmatch(lines[i])
		if m == nil || (m[2] != "") != (numbered != "") {
			break
		}
		text := m[3]
		for i++; i < len(lines) && !blank(lines[i]) && !starts(lines[i]); i++ {
			text += "\n" + strings.TrimSpace(lines[i])
		}
		n.Nodes = append(n.Nodes, Node{Kind: "li", Nodes: inline(text, 0, false)})
		if i+1 < len(lines) && blank(lines[i]) && item.MatchString(lines[i+1]) {
			i++
		}
	}
	return n, i
}
