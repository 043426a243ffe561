package httpapi

import (
	"net/http"
	"strconv"
	"time"

	"github.com/flowfabric/flowfabric-go/admin"
)

type partitionList struct {
	Items []partition `json:"items"`
}

type partition struct {
	Partition     uint16     `json:"partition"`
	Error         string     `json:"error,omitempty" jsonschema:"why it does not answer; then the rest says nothing"`
	Frozen        bool       `json:"frozen"`
	FrozenReason  string     `json:"frozen_reason,omitempty"`
	Owner         string     `json:"owner,omitempty" jsonschema:"who makes its ticks"`
	TickOverdue   bool       `json:"tick_overdue"`
	LagMs         int64      `json:"lag_ms" jsonschema:"for how long the earliest thing is due"`
	BehindMs      int64      `json:"behind_ms" jsonschema:"for how long unfinished work of flows waits"`
	UndeliveredMs int64      `json:"undelivered_ms" jsonschema:"for how long a message to budgets and quotas waits"`
	Booted        *time.Time `json:"booted,omitempty"`
	Now           *time.Time `json:"now,omitempty" jsonschema:"by its clock"`
	Ready         int        `json:"ready" jsonschema:"queues with work"`
	Delayed       int        `json:"delayed"`
	Suspended     int        `json:"suspended"`
	Blocked       int        `json:"blocked" jsonschema:"executions that wait for others"`
	Ended         int        `json:"ended"`
	Sessions      int        `json:"sessions"`
	Held          int        `json:"held"`
}

func (c *call) partitions() error {
	list, err := c.h.admin.Partitions(c.ctx())
	if err != nil && len(list) == 0 {
		return err
	}
	out := partitionList{Items: make([]partition, 0, len(list))}
	for _, p := range list {
		x := partition{Partition: p.Partition, Frozen: p.Frozen, FrozenReason: p.FrozenReason, Owner: p.Owner,
			TickOverdue: p.TickOverdue, LagMs: p.Lag.Milliseconds(), BehindMs: p.Behind.Milliseconds(),
			UndeliveredMs: p.Undelivered.Milliseconds(), Booted: utc(p.Booted), Now: utc(p.Now), Ready: p.Ready,
			Delayed: p.Delayed.Count, Suspended: p.Parked.Count, Blocked: p.Blocked.Count, Ended: p.Done.Count,
			Sessions: p.Sessions.Count,
			Held:     p.Held.Count}
		if p.Err != nil {
			x.Error = p.Err.Error()
		}
		out.Items = append(out.Items, x)
	}
	return c.answerJSON(http.StatusOK, out)
}

// partition is the one that the path names.
func (c *call) partition() (uint16, *why, error) {
	var b why
	if err := c.body(&b); err != nil {
		return 0, nil, err
	}
	n, err := strconv.ParseUint(c.r.PathValue("key"), 10, 16)
	if err != nil {
		return 0, nil, invalid("key", "%.32q is no number of a partition", c.r.PathValue("key"))
	}
	return uint16(n), &b, nil
}

func (c *call) freezePartition() error {
	p, b, err := c.partition()
	if err == nil {
		err = c.h.admin.Freeze(c.ctx(), p, c.act(*b)...)
	}
	return c.nothingToSay(err)
}

func (c *call) thawPartition() error {
	p, b, err := c.partition()
	if err == nil {
		err = c.h.admin.Thaw(c.ctx(), p, c.act(*b)...)
	}
	return c.nothingToSay(err)
}

type tokenKeyList struct {
	Items []partitionKeys `json:"items"`
}

type partitionKeys struct {
	Partition uint16     `json:"partition"`
	Current   string     `json:"current,omitempty" jsonschema:"the id of the key that signs"`
	Keys      []tokenKey `json:"keys"`
	Error     string     `json:"error,omitempty"`
}

type tokenKey struct {
	Kid         string     `json:"kid"`
	Fingerprint string     `json:"fingerprint"`
	Current     bool       `json:"current"`
	ExpiresAt   *time.Time `json:"expires_at,omitempty"`
	Open        int        `json:"open" jsonschema:"waitpoints that are open under it"`
	NeededUntil *time.Time `json:"needed_until,omitempty"`
}

func (c *call) tokenKeys() error {
	list, err := c.h.admin.TokenKeys(c.ctx())
	if err != nil && len(list) == 0 {
		return err
	}
	out := tokenKeyList{Items: make([]partitionKeys, 0, len(list))}
	for _, p := range list {
		x := partitionKeys{Partition: p.Partition, Current: p.Current, Keys: []tokenKey{}}
		if p.Err != nil {
			x.Error = p.Err.Error()
		}
		for _, k := range p.Keys {
			x.Keys = append(x.Keys,
				tokenKey{k.Kid, k.Fingerprint, k.Current, utc(k.ExpiresAt), k.Open, utc(k.NeededUntil)})
		}
		out.Items = append(out.Items, x)
	}
	return c.answerJSON(http.StatusOK, out)
}

type rotateBody struct {
	Kid     string `json:"kid" jsonschema:"of the key that signs from now on: one that this process has"`
	GraceMs int64  `json:"grace_ms,omitempty" jsonschema:"how long tokens of the key before stay good; default a day"`
	Force   bool   `json:"force,omitempty" jsonschema:"although tokens of open waitpoints then end before they are needed"`
	why
}

type rotatedList struct {
	Items []rotated `json:"items"`
}

type rotated struct {
	Partition uint16 `json:"partition"`
	Previous  string `json:"previous,omitempty"`
	Already   bool   `json:"already" jsonschema:"it was the key before"`
	Open      int    `json:"open" jsonschema:"waitpoints that are open under the key before"`
	Error     string `json:"error,omitempty" jsonschema:"why it was not done there; repeat the request"`
}

func (c *call) rotateTokenKeys() error {
	var b rotateBody
	if err := c.body(&b); err != nil {
		return err
	}
	list, err := c.h.admin.RotateTokenKeys(c.ctx(), admin.Rotation{Kid: b.Kid, Grace: ms(b.GraceMs), Force: b.Force},
		c.act(b.why)...)
	if err != nil && len(list) == 0 {
		return err
	}
	out := rotatedList{Items: make([]rotated, 0, len(list))}
	for _, r := range list {
		x := rotated{Partition: r.Partition, Previous: r.Previous, Already: r.Noop, Open: r.Open}
		if r.Err != nil {
			x.Error = r.Err.Error()
		}
		out.Items = append(out.Items, x)
	}
	return c.answerJSON(http.StatusOK, out)
}
