package invariant

import (
	"regexp"
	"strconv"
	"strings"
)

const uuidText = `[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}`

var (
	filterRow = regexp.MustCompile(`^([0-9a-f]{32}(,[0-9a-f]{32}){0,7})?$`)
	factRows  = map[byte]*regexp.Regexp{
		'd': regexp.MustCompile(`(?s)^.`),
		'u': regexp.MustCompile(`(?s)^\d{1,16}(\x1f[^\x1f]+){4}\x1f.{0,64}$`),
		'c': regexp.MustCompile(`(?s)^\d{1,16}\x1f\d{1,16}\x1f.{1,256}$`),
		'r': regexp.MustCompile(`(?s)^[ -~]{1,64}\x1f\d{1,16}\x1f.{1,256}$`),
	}
	publishedRow  = regexp.MustCompile(`^[0-9a-f]{64} \d{1,3} \d{1,4}$`)
	noticeEvent   = regexp.MustCompile(`^[0-9a-f-]{36}\x1f[ -~]{1,64}\x1f[ -~]{1,128}\x1f[^\x1f]{1,256}\x1f\d{1,16}\x1f`)
	noticeResume  = regexp.MustCompile(`^\d{1,5}\.` + uuidText + ` ` + uuidText + ` [0-9a-f]{64}$`)
	noticeForget  = regexp.MustCompile(`^` + uuidText + ` ` + uuidText + ` ` + uuidText + `$`)
	expectedRow   = regexp.MustCompile(`^([0-9a-f]{32}|-) [0-9a-f]{64} (.*)$`)
	expectedName  = regexp.MustCompile(`^\d{1,5}\.` + uuidText + `:` + uuidText + `$`)
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

// expected verifies the waitpoints that take events: each is in the list of the partition, in what its subject knows,
// and filed once, under one of its terms; the counts of what is filed are right.
func (l *look) expected() {
	filed := map[string]string{} // subject and name → term
	for key, names := range l.Sets {
		if rest, ok := strings.CutPrefix(key, ":et:"); ok {
			subject, term, _ := strings.Cut(rest, ":")
			for _, name := range names {
				if filed[subject+":"+name] != "" {
					l.wrong("%s is filed twice of %s", name, subject)
				}
				filed[subject+":"+name] = term
			}
			if n := l.Hashes[":ew:"+subject]["n"+term]; n != strconv.Itoa(len(names)) || len(names) > 1000 {
				l.wrong("%s has %d, counted are %q", key, len(names), n)
			}
		}
	}
	rows := 0
	for key, h := range l.Hashes {
		subject, ok := strings.CutPrefix(key, ":ew:")
		if !ok {
			continue
		}
		for field, text := range h {
			if field[0] == 'n' {
				if len(l.Sets[":et:"+subject+":"+field[1:]]) == 0 {
					l.wrong("%s counts %s: %q, and nothing is filed", key, field, text)
				}
				continue
			}
			rows++
			name, row := field[1:], expectedRow.FindStringSubmatch(text)
			_, listed := l.ZSets[":expected"][subject+":"+name]
			if row == nil || field[0] != 'r' || !expectedName.MatchString(name) || !filterRow.MatchString(row[2]) ||
				!listed || filed[subject+":"+name] != row[1] || (row[1] == "-") != (row[2] == "") ||
				row[2] != "" && !strings.Contains(row[2], row[1]) {
				l.wrong("%s has %q: %q, listed %t, filed under %q", key, field, text, listed, filed[subject+":"+name])
			}
		}
	}
	if rows != len(filed) || rows != len(l.ZSets[":expected"]) {
		l.wrong("%d waits for events, %d filed, %d listed", rows, len(filed), len(l.ZSets[":expected"]))
	}
}
