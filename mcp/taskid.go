package mcp

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strings"

	flowfabric "github.com/flowfabric/flowfabric-go"
)

// taskKey makes the ids of tasks: "<execution>.<MAC over execution and caller>".
type taskKey []byte

func (k taskKey) seal(id flowfabric.ExecutionID, caller string) string {
	return id.String() + "." + base64.RawURLEncoding.EncodeToString(k.mac(id.String(), caller))
}

// open reads the id of a task. ok is false for one that was not made for this caller, whatever the reason.
func (k taskKey) open(task, caller string) (id flowfabric.ExecutionID, ok bool) {
	execution, mac, _ := strings.Cut(task, ".")
	sum, err := base64.RawURLEncoding.DecodeString(mac)
	if err != nil || !hmac.Equal(sum, k.mac(execution, caller)) {
		return id, false
	}
	id, err = flowfabric.ParseExecutionID(execution)
	return id, err == nil
}

func (k taskKey) mac(execution, caller string) []byte {
	h := hmac.New(sha256.New, k)
	h.Write([]byte("flowfabric mcp task\x00" + execution + "\x00" + caller))
	return h.Sum(nil)
}
