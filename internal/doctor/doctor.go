// Package doctor tells whether a deployment is healthy. [Diagnose] asks the servers, over a connection of the engine,
// and reads the records of the store; [Examine], which makes no call, turns that into findings and what to do about
// them. The command "flowfabric doctor" and the HTTP API show the same findings.
package doctor

import (
	"fmt"
	"slices"

	"github.com/flowfabric/flowfabric-go/internal/prose"
)

// Status is the result of a check.
type Status string

// The results. Skip means that the check could not be made.
const (
	OK   Status = "ok"
	Warn Status = "warn"
	Fail Status = "fail"
	Skip Status = "skip"
)

// Check is one thing that was looked at. Do says what to do about it.
type Check struct {
	Name   string `json:"check" jsonschema:"the name of the check; it is there once for each node, or for the deployment"`
	Status Status `json:"status" jsonschema:"ok, warn, fail, or skip: the check could not be made"`
	Node   string `json:"node,omitempty" jsonschema:"the address of the node"`
	Found  string `json:"found" jsonschema:"for people"`
	Do     string `json:"do,omitempty" jsonschema:"remedy"`
}

// Checkup is what an examination found. [Examine] makes one.
type Checkup struct {
	Healthy     bool    `json:"healthy" jsonschema:"no check has failed"`
	Keys        int     `json:"keys" jsonschema:"that the primaries have"`
	CheckedKeys int     `json:"checked_keys" jsonschema:"how many of them were compared with the indexes: all, or 0; the API makes none"`
	Checks      []Check `json:"checks"`
}

// Add adds a check.
func (c *Checkup) Add(name string, s Status, node, found, do string) {
	c.Healthy = c.Healthy && s != Fail
	c.Checks = append(c.Checks, Check{name, s, node, found, do})
}

// Drift is the check that compares indexes with records. It needs admin.Admin.Check, which reads every key and which
// [Examine] does not call: the check is skipped until somebody has made one.
const Drift = "drift"

// Checked says what a check of all keys has found.
func (c *Checkup) Checked(s Status, found, do string) {
	c.CheckedKeys = c.Keys
	c.drift(s, "", found, do)
}

// NotChecked says that no check was made, or none to its end, and why.
func (c *Checkup) NotChecked(s Status, node, why, do string) {
	found := fmt.Sprintf("0 of %s were checked", prose.Count(c.Keys, "key"))
	c.drift(s, node, prose.Join(": ", found, why), do)
}

func (c *Checkup) drift(s Status, node, found, do string) {
	c.Checks = slices.DeleteFunc(c.Checks, func(k Check) bool { return k.Name == Drift })
	c.Add(Drift, s, node, found, do)
}

// Worst counts the checks that failed, and those that warn.
func (c *Checkup) Worst() (failed, warned int) {
	for _, k := range c.Checks {
		switch k.Status {
		case Fail:
			failed++
		case Warn:
			warned++
		}
	}
	return failed, warned
}
