// Package child is a worker in a process of its own: this program, started again with a task in its environment.
//
//	Start ──task──▶ Work: opens the system's store ──"ready"──▶ Begin ──a line──▶ a worker with a no-op handler
//	                 counts of handled jobs, a line each ◀────────┘     ◀──end of input── Stop
//
// It ends with its input, so also when this process is killed.
package child

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/flowfabric/flowfabric-go/benchmarks/driver"
)

// variable holds the task of a process that was started as a child.
const variable = "FLOWFABRIC_BENCHMARKS_CHILD"

// ready is what a child says first.
const ready = "ready"

// Task is what a child does.
type Task struct {
	System      string `json:"system"` // by name
	URL         string `json:"url"`    // of the server that the parent has started
	Partitions  int    `json:"partitions"`
	Concurrency int    `json:"concurrency"`
	Typed       bool   `json:"typed"` // of its jobs
}

// Asked tells whether this process was started as a child, and what for. A program that measures asks this first,
// before it looks at its arguments.
func Asked() (t Task, asked bool, err error) {
	text, asked := os.LookupEnv(variable)
	if !asked {
		return t, false, nil
	}
	if err := json.Unmarshal([]byte(text), &t); err != nil {
		return t, true, fmt.Errorf("%s: %w", variable, err)
	}
	return t, true, nil
}

// attached is a server that the parent has started. It can only be reached.
type attached string

func (a attached) Name() string                { return string(a) }
func (a attached) URL() string                 { return string(a) }
func (attached) PID() int                      { return 0 }
func (a attached) Reset(context.Context) error { return a.refuse("reset") }
func (a attached) Sample(context.Context) (driver.Sample, error) {
	return driver.Sample{}, a.refuse("sample")
}
func (a attached) Memory(context.Context) (float64, error) {
	return 0, a.refuse("measure the memory of")
}
func (attached) Stop() {}

func (a attached) refuse(what string) error {
	return fmt.Errorf("a worker's process cannot %s the server at %s", what, string(a))
}
