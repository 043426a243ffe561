package mcp

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strings"

	flowfabric "github.com/flowfabric/flowfabric-go"
)

// taskKey signs what clients bring back: the id of a task, "<execution>.<MAC>", and where a call was when it was
// answered with a question, "<execution>.<suspension>.<MAC>". Both are good for one caller only, and neither for the
// other.
type taskKey []byte

func (k taskKey) seal(id flowfabric.ExecutionID, caller string) string {
	return id.String() + "." + k.mac("task", id.String(), caller)
}

// open reads the id of a task. ok is false for one that was not made for this caller, whatever the reason.
func (k taskKey) open(task, caller string) (id flowfabric.ExecutionID, ok bool) {
	execution, mac, _ := strings.Cut(task, ".")
	if !hmac.Equal([]byte(mac), []byte(k.mac("task", execution, caller))) {
		return id, false
	}
	id, err := flowfabric.ParseExecutionID(execution)
	return id, err == nil
}

func (k taskKey) sealRound(id flowfabric.ExecutionID, suspension flowfabric.UUID, caller string) string {
	where := id.String() + "." + suspension.String()
	return where + "." + k.mac("round", where, caller)
}

func (k taskKey) openRound(state, caller string) (id flowfabric.ExecutionID, ok bool) {
	at := strings.LastIndex(state, ".")
	if at < 0 || !hmac.Equal([]byte(state[at+1:]), []byte(k.mac("round", state[:at], caller))) {
		return id, false
	}
	execution, _, _ := strings.Cut(state, ".")
	id, err := flowfabric.ParseExecutionID(execution)
	return id, err == nil
}

func (k taskKey) mac(purpose, what, caller string) string {
	h := hmac.New(sha256.New, k)
	h.Write([]byte("flowfabric mcp " + purpose + "\x00" + what + "\x00" + caller))
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}
