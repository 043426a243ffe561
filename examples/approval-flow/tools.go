package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// Say puts out one line of a step while it runs.
type Say func(ctx context.Context, line string) error

// Plan is what a deployment would change.
type Plan struct {
	ID      string // of its content: what was approved and what is deployed can be compared
	Image   string
	Changes []string
}

// Tools is the world outside, which this example makes up.
type Tools struct {
	Pace time.Duration // how long each line of a step takes
	// Did is told what was really done: build, plan, "ask <name>" with the token that the mail holds, or deploy.
	Did func(effect string, token suspend.Token) error
}

// Build makes an image.
func (x *Tools) Build(ctx context.Context, version string, say Say) (image string, err error) {
	image = "shop:" + version
	err = x.work(ctx, "build", say, "compile 214 packages", "run 1,902 tests", "push image "+image)
	return image, err
}

// Plan compares an image with what runs now.
func (x *Tools) Plan(ctx context.Context, image string, say Say) (Plan, error) {
	plan := Plan{Image: image, Changes: []string{"web: 6 instances", "worker: 3 instances", "database: 1 migration"}}
	sum := sha256.Sum256(fmt.Append(nil, plan))
	plan.ID = hex.EncodeToString(sum[:4])
	return plan, x.work(ctx, "plan", say, append(plan.Changes, "plan "+plan.ID)...)
}

// Mail sends an approver the link with their token in it.
func (x *Tools) Mail(_ context.Context, who string, token suspend.Token) error {
	return x.Did("ask "+who, token)
}

// Deploy carries a plan out.
func (x *Tools) Deploy(ctx context.Context, plan Plan, say Say) error {
	return x.work(ctx, "deploy", say, append([]string{"carry out plan " + plan.ID}, plan.Changes...)...)
}

// work says what it does, line by line, and then counts as done.
func (x *Tools) work(ctx context.Context, effect string, say Say, lines ...string) error {
	for _, line := range lines {
		if err := pause(ctx, x.Pace); err != nil {
			return err
		}
		if err := say(ctx, line); err != nil {
			return err
		}
	}
	return x.Did(effect, suspend.Token{})
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// frames returns what puts lines out as frames of a type.
func frames(t *handler.Task, typ string) Say {
	return func(ctx context.Context, line string) error { return t.Frame(ctx, typ, line) }
}
