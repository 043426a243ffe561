package httpapi

import (
	"strconv"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/suspend"
)

type partitionList admin.Page[flowfabric.Partition]

func (c *call) partitions() error {
	list, err := c.h.admin.Partitions(c.ctx())
	out, err := unpaged(list, err)
	return c.answerOr(err, partitionList(out))
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

type tokenKeyList admin.Page[suspend.PartitionKeys]

func (c *call) tokenKeys() error {
	list, err := c.h.admin.TokenKeys(c.ctx())
	out, err := unpaged(list, err)
	return c.answerOr(err, tokenKeyList(out))
}

type rotateBody struct {
	admin.Rotation
	why
}

type rotatedList admin.Page[suspend.KeyRotated]

func (c *call) rotateTokenKeys() error {
	var b rotateBody
	if err := c.body(&b); err != nil {
		return err
	}
	list, err := c.h.admin.RotateTokenKeys(c.ctx(), b.Rotation, c.act(b.why)...)
	out, err := unpaged(list, err)
	return c.answerOr(err, rotatedList(out))
}
