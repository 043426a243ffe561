package invariant

import (
	"strconv"
	"strings"

	"github.com/flowfabric/flowfabric-go/internal/codes"
)

// keyed: a key that callers chose names an execution that names it, too; one that has not ended has its key, so no
// two of those have the same; and a key that is held beyond the end has an execution. A key that debounces ("~") is
// held by no more than one execution, which names it.
func (l *look) keyed() {
	for key, text := range l.Texts {
		if name, ok := strings.CutPrefix(key, ":y:"); ok {
			id, till, _ := strings.Cut(text, " ")
			if till == "f" {
				if l.Hashes[":fw:"+id]["uk"] != name {
					l.wrong("key %s is of flow %s, which names %q", name, id, l.Hashes[":fw:"+id]["uk"])
				}
				continue
			}
			if strings.HasPrefix(till, "~") {
				l.marks(name, till)
				till = "~"
			}
			if own := l.core(id)["ky"]; own != name+":"+till {
				l.wrong("key %s is of %q, which names %q", name, text, own)
			}
		}
	}
	for key, core := range l.Hashes {
		if id, ok := strings.CutPrefix(key, ":fw:"); ok && core["uk"] != "" && core["en"] == "" &&
			l.Texts[":y:"+core["uk"]] != id+" f" {
			l.wrong("flow %s has key %s, which belongs to %q", id, core["uk"], l.Texts[":y:"+core["uk"]])
		}
		id, ok := strings.CutPrefix(key, ":x:")
		if !ok || core["ky"] == "" {
			continue
		}
		name, till, _ := strings.Cut(core["ky"], ":")
		state, _ := codes.Project(codes.Code(core["s"]))
		text, taken := l.Texts[":y:"+name]
		if till == "~" {
			if waits := core["lk"] == "" && (core["s"] == "R1f" || core["s"] == "R2af" || core["s"] == "R4f"); waits &&
				!taken {
				l.wrong("%s (%s) debounces under key %s, and nobody has that", id, core["s"], name)
			}
			continue
		}
		if !state.Terminal() && text != id+" "+till {
			l.wrong("%s (%s) has key %s:%s, which belongs to %q", id, core["s"], name, till, text)
		}
		if held := till == "-" || heldTill(core["ky"]) > float64(l.Now); state.Terminal() && held && !taken {
			l.wrong("%s (%s) has key %s:%s, and nobody has that", id, core["s"], name, till)
		}
	}
}

// marks: what the record of a key that debounces says behind its execution.
func (l *look) marks(name, text string) {
	own, before, _ := strings.Cut(text[1:], "/")
	_, older, _ := strings.Cut(before, ",")
	for _, marks := range []string{own, older} {
		if len(marks)%13 != 0 || len(marks) > 13*8 {
			l.wrong("key %s has marks %q, want at most eight of twelve digits", name, marks)
		}
	}
}

// heldTill is the instant up to which an execution has its key whatever becomes of it, 0 if there is none.
func heldTill(key string) float64 {
	_, till, _ := strings.Cut(key, ":")
	at, _ := strconv.ParseFloat(till, 64)
	return at
}
