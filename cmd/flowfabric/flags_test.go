package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric-go/internal/testserver"
)

// goName is what only Go calls so: an exported field or option.
var goName = regexp.MustCompile(`\b([A-Z][a-z]+[A-Z.]\w*|Priority|Lane|Timeout|Deadline|Delay|Debounce|Rate|Until)\b`)

// What is wrong with the value of a flag is said by the name of the flag.
func TestErrorsNameFlags(t *testing.T) {
	w := newEnv(t, testserver.Redis(t))
	for line, flag := range map[string]string{
		"submit echo --attempt-timeout -1s":                            "--attempt-timeout",
		"submit echo --retries -1":                                     "--retries",
		"submit echo --priority -1":                                    "priority",
		"submit echo --key-window 1m":                                  "--key-window",
		"submit echo --unique k --key-window 1ms":                      "--key-window",
		"submit echo --debounce-max 1m":                                "--debounce-max",
		"submit echo --debounce k --delay 1m --debounce-max 1s":        "--debounce-max",
		"submit echo --debounce k --delay 1us":                         "--delay",
		"submit echo --limit k=-1":                                     "limit",
		"submit echo --limit k=5000000":                                "limit",
		"schedules put s --kind echo --every 1m --attempt-timeout -1s": "--attempt-timeout",
		"schedules put s --kind echo --every 1m --retries 5000":        "--retries",
		"ls --since 1h --until 2h":                                     "--until",
		"ls --state nonsense":                                          "--state",
	} {
		code, out, errOut := w.run(line, "")
		if code == exitOK || goName.MatchString(errOut) || !strings.Contains(errOut, flag) {
			t.Errorf("%s: exit %d, %s%s, want %s and no name of Go's", line, code, out, errOut, flag)
		}
	}
}
