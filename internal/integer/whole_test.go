package integer_test

import (
	"testing"

	"github.com/flowfabric/flowfabric-go/internal/integer"
)

func TestNumbers(t *testing.T) {
	for text, want := range map[string]string{
		`{"n":1.0,"m":[1e3,-2.50e1,0.0]}`: `{"n":1,"m":[1000,-25,0]}`,
		` 7.0 `:                           ` 7 `,
		`{"n":1.5,"big":1e300,"e":12345678901234567890.0}`: `{"n":1.5,"big":1e300,"e":12345678901234567890.0}`,
		`{"1.0":"1.0 \" 2.0","a":12345678901234567890}`:    `{"1.0":"1.0 \" 2.0","a":12345678901234567890}`,
		`{"n":1.0,"n":2.0}`: `{"n":1,"n":2}`,
		`no.`:               `no.`,
		``:                  ``,
	} {
		if got := string(integer.Numbers([]byte(text))); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}
