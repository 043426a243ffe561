package suspend_test

import (
	"testing"

	"github.com/flowfabric/flowfabric-go/suspend"
)

// The condition is what ff_suspend stores, see lua/lib/condition.lua.
func TestARecordNamesItsMailbox(t *testing.T) {
	for condition, want := range map[string]string{"M\x1fturn": "turn", "M\x1fM\x1f": "M\x1f", "L\x1f1\x1f1\x1fM": "",
		"O": "", "T": "", "": ""} {
		if got := (suspend.Record{Condition: condition}).Mailbox(); got != want {
			t.Errorf("%q: mailbox %q, want %q", condition, got, want)
		}
	}
}
