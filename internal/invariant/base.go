package invariant

import (
	"strconv"
	"strings"
)

// logs are the families of what is stored of the frames of an attempt.
var logs = []string{":f:", ":fm:", ":fd:", ":fl:", ":fs:", ":fe:"}

// referred tells whether a fork has frames of an attempt.
func (l *look) referred(id, attempt string) bool { return l.Hashes[":fk:"+id][attempt] != "" }

// stands tells whether an attempt of a fork may stand on what is said: "owner sequence id durables deltas live runs
// bytes".
func (x *execution) stands(attempt, text string) bool {
	n, err := strconv.Atoi(attempt)
	p := strings.Split(text, " ")
	if err != nil || float64(n) > x.number("bs") || len(p) != 8 || len(p[0]) != 36 ||
		!placeText.MatchString(p[1]+" "+p[2]) {
		return false
	}
	for _, number := range p[3:] {
		if !whole(number) {
			return false
		}
	}
	return atoi(p[3])+atoi(p[4])+atoi(p[5]) == atoi(p[1])
}

// references: who owns frames that forks have knows how many forks have each attempt, and which; and of nobody else.
func (l *look) references() {
	want := map[string]map[string]int{}
	for key, folded := range l.Hashes {
		fork, ok := strings.CutPrefix(key, ":a:")
		for f, text := range folded {
			attempt, based := strings.CutSuffix(f, "b")
			if !ok || !based {
				continue
			}
			owner, _, _ := strings.Cut(text, " ")
			if want[owner] == nil {
				want[owner] = map[string]int{}
			}
			want[owner][attempt]++
			want[owner][fork]++
			if _, stored := l.Hashes[":fm:"+owner+":"+attempt]; !stored {
				l.wrong("%s stands on attempt %s of %s, which is gone", fork, attempt, owner)
			}
		}
	}
	for key, has := range l.Hashes {
		owner, ok := strings.CutPrefix(key, ":fk:")
		if !ok {
			continue
		}
		core := l.Hashes[":x:"+owner]
		for name, text := range has {
			count, let, gone := strings.Cut(text, " ")
			if atoi(count) != want[owner][name] || gone && let != "x" {
				l.wrong("%s says %q of %s, %d refer to it", key, text, name, want[owner][name])
			}
			delete(want[owner], name)
			if core == nil && !gone && len(name) != 36 {
				l.wrong("%s says %q of attempt %s, whose execution is gone", key, text, name)
			}
		}
		if core != nil && core["fr"] == "" {
			l.wrong("%s has forks and does not know it", owner)
		}
	}
	for owner, left := range want {
		if len(left) > 0 {
			l.wrong("forks stand on %s, which does not know of %v", owner, left)
		}
	}
}
