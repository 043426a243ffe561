package httpapi

import (
	"strconv"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/suspend"
)

type partitionList admin.Page[flowfabric.Partition]

func (c *call) partitions() (partitionList, error) {
	list, err := c.h.admin.Partitions(c.ctx())
	out, err := unpaged(list, err)
	return partitionList(out), err
}

// partition is the one that the path names.
func (c *call) partition() (uint16, error) {
	n, err := strconv.ParseUint(c.r.PathValue("key"), 10, 16)
	if err != nil {
		return 0, invalid("key", "%.32q is not a partition number", c.r.PathValue("key"))
	}
	return uint16(n), nil
}

func (c *call) freezePartition(b *why) error {
	p, err := c.partition()
	if err == nil {
		err = c.h.admin.Freeze(c.ctx(), p, c.act(*b)...)
	}
	return err
}

func (c *call) thawPartition(b *why) error {
	p, err := c.partition()
	if err == nil {
		err = c.h.admin.Thaw(c.ctx(), p, c.act(*b)...)
	}
	return err
}

type tokenKeyList admin.Page[suspend.PartitionKeys]

func (c *call) tokenKeys() (tokenKeyList, error) {
	list, err := c.h.admin.TokenKeys(c.ctx())
	out, err := unpaged(list, err)
	return tokenKeyList(out), err
}

type rotateBody struct {
	admin.Rotation
	why
}

type rotatedList admin.Page[suspend.KeyRotated]

func (c *call) rotateTokenKeys(b *rotateBody) (rotatedList, error) {
	list, err := c.h.admin.RotateTokenKeys(c.ctx(), b.Rotation, c.act(b.why)...)
	out, err := unpaged(list, err)
	return rotatedList(out), err
}
