package invariant

import (
	"regexp"

	"github.com/flowfabric/flowfabric-go/internal/codes"
)

var (
	awaiterRow = regexp.MustCompile(`^\d{1,5}\.[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
	tokenRow   = regexp.MustCompile(`^\d+\.\d+$`)
)

// awaited: one that others wait for says so, and has not ended; nobody else has a list of who waits. Who has ended
// waits for nobody.
func (x *execution) awaited(code codes.Code) {
	hash := x.Hashes[":aw:"+x.id]
	if (x.core["aw"] != "") != (len(hash) > 0) || x.has("aw") && x.core["aw"] != "1" {
		x.say("says %q of who waits for it, there are %d", x.core["aw"], len(hash))
	}
	if len(hash) > 0 && code[0] == 'T' {
		x.say("has ended, and %d still wait for it", len(hash))
	}
	for who, token := range hash {
		if !awaiterRow.MatchString(who) || !tokenRow.MatchString(token) {
			x.say("is awaited by %q: %q", who, token)
		}
	}
	if list := x.Hashes[":fc:"+x.id]; list["others"] != "" && !tokenRow.MatchString(list["others"]) {
		x.say("waits for others under the token %q", list["others"])
	}
}
