package httpapi

import (
	"strings"
	"testing"
)

// A flow with a unique key is the only one of its kind with it until it has ended; a second submission is answered
// with it, whatever its nodes.
func TestUniqueFlows(t *testing.T) {
	a := newAPI(t)
	submit := func(body string, status int) flowMade {
		t.Helper()
		return into[flowMade](t, a.as("producer", "POST", "/v1/flows", body, status))
	}
	const body = `{"kind":"edition","unique_key":"may","nodes":[{"name":"a","kind":"nobody"}]}`
	first := submit(body, 201)
	if again := submit(strings.Replace(body, `"a"`, `"b"`, 1), 200); again.ID != first.ID || !again.Duplicate {
		t.Errorf("%+v, want %s", again, first.ID)
	}
	if other := submit(strings.Replace(body, "may", "june", 1), 201); other.ID == first.ID {
		t.Errorf("%+v", other)
	}
	for _, bad := range []string{strings.Replace(body, `"may"`, `""`, 1),
		strings.Replace(body, `"nodes"`, `"idempotency_key":"k","nodes"`, 1)} {
		a.as("producer", "POST", "/v1/flows", bad, 400)
	}
	a.as("producer", "POST", "/v1/flows/"+first.ID+":cancel", `{"reason":"late"}`, 200)
	if next := submit(body, 201); next.ID == first.ID {
		t.Errorf("%+v", next)
	}
}
