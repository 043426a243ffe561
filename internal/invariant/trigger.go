package invariant

import (
	"regexp"
	"strings"
)

var (
	filterRow = regexp.MustCompile(`^([0-9a-f]{32}(,[0-9a-f]{32}){0,7})?$`)
	factRows  = map[byte]*regexp.Regexp{
		'd': regexp.MustCompile(`(?s)^.`),
		'u': regexp.MustCompile(`(?s)^\d{1,16}(\x1f[^\x1f]+){4}\x1f.{0,64}$`),
		'c': regexp.MustCompile(`(?s)^\d{1,16}\x1f\d{1,16}\x1f.{1,256}$`),
		'r': regexp.MustCompile(`(?s)^[ -~]{1,64}\x1f\d{1,16}\x1f.{1,256}$`),
	}
	publishedRow  = regexp.MustCompile(`^[0-9a-f]{64} \d{1,4}$`)
	noticeEvent   = regexp.MustCompile(`^[0-9a-f-]{36}\x1f[ -~]{1,64}\x1f[ -~]{1,128}\x1f[^\x1f]{1,256}\x1f\d{1,16}\x1f`)
	noticeTrigger = regexp.MustCompile(`(?s)^[ -~]{1,64}\x1f.`)
)

// triggers verifies what waits for published events, and what was published. Each trigger is in the list of the
// partition, in the terms of its subject and in its facts.
func (l *look) triggers() {
	listed := map[string]bool{}
	for row := range l.ZSets[":triggers"] {
		parts := strings.Split(row, "\x1f")
		if len(parts) != 4 {
			l.wrong(":triggers has %q", row)
			continue
		}
		subject, name := parts[3], parts[2]
		listed[subject+"\x1f"+name] = true
		if _, ok := l.Hashes[":tr:"+subject][name]; !ok {
			l.wrong(":triggers has %q, and its subject does not", row)
		}
	}
	for key, h := range l.Hashes {
		switch family, _ := area(key); family {
		case ":tr:":
			subject := strings.TrimPrefix(key, ":tr:")
			if len(h) > 100 {
				l.wrong("%s has %d triggers", key, len(h))
			}
			for name, terms := range h {
				facts := l.Hashes[":td:"+subject]
				if !listed[subject+"\x1f"+name] || !filterRow.MatchString(terms) || facts["d"+name] == "" ||
					facts["u"+name] == "" {
					l.wrong("%s has %q: %q, listed %t", key, name, terms, listed[subject+"\x1f"+name])
				}
			}
		case ":td:":
			for field, text := range h {
				if row := factRows[field[0]]; row == nil || !row.MatchString(text) ||
					!listed[strings.TrimPrefix(key, ":td:")+"\x1f"+field[1:]] {
					l.wrong("%s has %q: %.80q", key, field, text)
				}
			}
		}
	}
	for key, text := range l.Texts {
		if strings.HasPrefix(key, ":pb:") && (!publishedRow.MatchString(text) || !l.Expires[key]) {
			l.wrong("%s is %q, with a TTL: %t", key, text, l.Expires[key])
		}
	}
}
