package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/client"

	flowfabric "github.com/flowfabric/flowfabric-go"
)

// tenant is a customer: a namespace of its own, a client that submits to it, and a budget that everything in it
// spends from.
type tenant struct {
	Name   string // for people
	Book   string
	limit  int64
	id     string // the name of its namespace, and of its budget
	client *client.Client
}

// budget is what the tenant may use. What would pass the limit waits until there is room. A real one resets every month
// or so (Reset).
func (t *tenant) budget() admission.Gate {
	return admission.Gate{
		Name: t.id, Scope: "tenant " + t.Name, OnHard: admission.HardBlock,
		Limits: map[string]admission.Limit{dimension: {Hard: t.limit}},
	}
}

// open makes the budget and attaches it to the namespace: a producer there need not know of it, and cannot
// forget it.
func (t *tenant) open(ctx context.Context, o options, run string) (err error) {
	t.id = t.Name + "-" + run // of its own, so that several programs may run on one server
	if t.client, err = client.Connect(ctx, client.Config{URL: o.url, Namespace: t.id, Logger: o.log}); err != nil {
		return err
	}
	if err := t.admin().PutGate(ctx, t.budget(), flowfabric.IfNew()); err != nil {
		return err
	}
	return t.admin().AttachGates(ctx, admission.Scope{Namespace: t.id}, []flowfabric.Gate{flowfabric.Gate(t.id)})
}

// raise lets the tenant use more.
func (t *tenant) raise(ctx context.Context, limit int64) error {
	seen, err := t.admin().GetGate(ctx, t.id)
	if err != nil {
		return err
	}
	t.limit = limit
	return t.admin().PutGate(ctx, t.budget(), flowfabric.IfRevision(seen.Revision), flowfabric.By("operator"))
}

// used is how much of its budget is gone, and how much of that is set aside for calls that have not settled.
func (t *tenant) used(ctx context.Context) (tokens, reserved int64, err error) {
	seen, err := t.admin().GetGate(ctx, t.id)
	return seen.Used[dimension], seen.Reserved[dimension], err
}

// close takes back what open did.
func (t *tenant) close(ctx context.Context) error {
	if t.client == nil {
		return nil
	}
	defer t.client.Close()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	err := t.admin().DetachGates(ctx, admission.Scope{Namespace: t.id}, nil)
	_, gone := t.admin().RemoveGate(ctx, t.id)
	return errors.Join(err, gone)
}

// mine puts the name that people know in the place of the budget's.
func (t *tenant) mine(text string) string { return strings.ReplaceAll(text, t.id, t.Name) }

// admin is the operator's side of the tenant's client.
func (t *tenant) admin() *admin.Admin { return admin.New(t.client) }
