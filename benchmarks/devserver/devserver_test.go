package devserver

import (
	"bytes"
	"regexp"
	"testing"
)

func TestRun(t *testing.T) {
	var out bytes.Buffer
	if err := Run(t.Context(), Options{Server: "redis-server", Jobs: 200, Rounds: 1}, &out); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"embedded", "redis-server"} {
		if !regexp.MustCompile(name + ` +\d+\.\d\d +\d+\.\d{3} +[1-9]\d+`).Match(out.Bytes()) {
			t.Errorf("%s has no figures:\n%s", name, &out)
		}
	}
}
