package contract

import "strings"

var initials = map[string]string{"id": "ID", "ttl": "TTL"}

// GoName is a name of the library as package wire has it: flow_id is FlowID.
func GoName(name string) string {
	var out strings.Builder
	for word := range strings.SplitSeq(name, "_") {
		if short, ok := initials[word]; ok {
			out.WriteString(short)
		} else if word != "" {
			out.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
	}
	return out.String()
}
