package prose

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Renamer returns what writes the names of options and fields in the text of an error as a door calls them: members of
// a body, flags. It takes them where errors have them: in front, behind a colon, and behind words such as with and or.
func Renamer(names map[string]string) func(text string) string {
	longest := slices.SortedFunc(maps.Keys(names), func(a, b string) int {
		return cmp.Or(len(b)-len(a), strings.Compare(a, b))
	})
	for i, name := range longest {
		longest[i] = regexp.QuoteMeta(name)
	}
	const before = `(^|: |\b(?:with|without|want|or|and|before)(?: an?)? )`
	found := regexp.MustCompile(before + `(` + strings.Join(longest, "|") + `)\b`)
	return func(text string) string {
		return found.ReplaceAllStringFunc(text, func(match string) string {
			m := found.FindStringSubmatch(match)
			return m[1] + names[m[2]]
		})
	}
}
