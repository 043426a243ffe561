package model

import (
	"strconv"

	flowfabric "github.com/flowfabric/flowfabric-go"
)

// Reply is the envelope of an answer, without the slots that are prose.
type Reply struct {
	Code   string // OK, ALREADY_SATISFIED, DUPLICATE, or the error
	Slots  []string
	Claims []Claim // of a claim
	Next   *Reply  // of a completion that claims: what the claim answered
}

// Claim is what a worker gets with one execution.
type Claim struct {
	ID                   string
	Fence                Fence
	Type                 flowfabric.AttemptType
	Route, Priority      int
	Created, Claimed     int64
	Retries, Reclaims    int
	Continues, Takes     int
	TimeLeft, DeadlineIn int64 // ms, at least 1; 0 = none
	Sequence             uint64
	Input                bool
	Tags, Steps          map[string]string
	Resume               string // what the last suspension was answered, its signals sorted
}

// Fence is what a holder proves itself with, besides the execution's id. Without any part it is no fence; with some
// parts missing it is a partial one.
type Fence struct {
	Session string
	Claim   uint64
	Epoch   uint64
	Attempt int
}

// The codes of success.
const (
	OK        = "OK"
	Already   = "ALREADY_SATISFIED"
	Duplicate = "DUPLICATE"
	Replaced  = "REPLACED"
)

func answer(code string, slots ...string) Reply { return Reply{Code: code, Slots: slots} }

func number[T int | int64 | uint64](n T) string { return strconv.FormatInt(int64(n), 10) }

func flag(b bool) string {
	if b {
		return "1"
	}
	return "0"
}
