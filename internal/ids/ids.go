// Package ids makes the ids of executions and flows, and the UUIDs that follow from what they name, and places names
// among partitions. What it returns together is what Join takes. An id of 18 bytes is a flowfabric.ExecutionID or a
// flowfabric.FlowID.
package ids

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
)

// Join makes an id out of a partition and a UUID.
func Join(partition uint16, id uuid.UUID) (out [18]byte) {
	binary.BigEndian.PutUint16(out[:], partition)
	copy(out[2:], id[:])
	return out
}

// PartitionOf is the first part of an id.
func PartitionOf(id [18]byte) uint16 { return binary.BigEndian.Uint16(id[:]) }

// UUID is the second part of an id.
func UUID(id [18]byte) uuid.UUID { return uuid.UUID(id[2:]) }

// Keyed is the execution that an idempotency key stands for: equal (namespace, kind, key) always give the same one in
// the same partition, as long as the partition count is the same (it is fixed at boot).
func Keyed(partitions uint16, namespace, kind, key string) (uint16, uuid.UUID) {
	id := Derive("flowfabric idempotency v1", namespace, kind, key)
	return Partition(id, partitions), id
}

// Debounced is Keyed for a key that debounces. Those keys and the others have nothing to do with each other.
func Debounced(partitions uint16, namespace, kind, key string) (uint16, uuid.UUID) {
	id := Derive("flowfabric debounce v1", namespace, kind, key)
	return Partition(id, partitions), id
}

// Written is a stream that is written from outside. The first segment of its name decides the partition, so that one
// call reaches all that begin with it.
func Written(partitions uint16, namespace, name string) (uint16, uuid.UUID) {
	family, _, _ := strings.Cut(name, "/")
	return Partition(Derive("flowfabric written streams v1", namespace, family), partitions),
		Derive("flowfabric written stream v1", namespace, name)
}

// KeyedFlow is Keyed for a flow.
func KeyedFlow(partitions uint16, namespace, kind, key string) (uint16, uuid.UUID) {
	id := Derive("flowfabric flow v1", namespace, kind, key)
	return Partition(id, partitions), id
}

// UniqueFlow is a key that one flow has at a time, and the partition of those flows.
func UniqueFlow(partitions uint16, namespace, kind, key string) (uint16, uuid.UUID) {
	id := Derive("flowfabric unique flow v1", namespace, kind, key)
	return Partition(id, partitions), id
}

// Scheduled is what a schedule submits at an instant: the same for everybody who fires it. incarnation tells
// schedules apart that had the name one after the other.
func Scheduled(partition uint16, name string, incarnation uint64, due time.Time) (uint16, uuid.UUID) {
	return partition, Derive("flowfabric schedule v1", name, strconv.FormatUint(incarnation, 10),
		strconv.FormatInt(due.UnixMilli(), 10))
}

// ScheduledFlow is Scheduled for a flow. A flow of another revision of the schedule is another flow: what was staged
// and never released for an instant is not met again after a change.
func ScheduledFlow(partition uint16, name string, incarnation, revision uint64, due time.Time) (uint16, uuid.UUID) {
	return partition, Derive("flowfabric scheduled flow v1", name, strconv.FormatUint(incarnation, 10),
		strconv.FormatUint(revision, 10), strconv.FormatInt(due.UnixMilli(), 10))
}

// Subject is what stands for a subject of published events in a namespace, and the partition of all that waits for
// them.
func Subject(partitions uint16, namespace, subject string) (uint16, uuid.UUID) {
	id := Derive("flowfabric subject v1", namespace, subject)
	return Partition(id, partitions), id
}

// Published is what stands for an event of a subject.
func Published(subject uuid.UUID, id string) uuid.UUID {
	return Derive("flowfabric published event v1", subject.String(), id)
}

// Triggered is what a trigger of a name starts because of an event: the same for everybody who delivers it.
func Triggered(partitions uint16, event uuid.UUID, trigger string) (uint16, uuid.UUID) {
	id := Derive("flowfabric trigger v1", event.String(), trigger)
	return Partition(id, partitions), id
}

// Brought is the signal with which an event comes to a waitpoint: the same for everybody who brings it.
func Brought(event, waitpoint uuid.UUID) uuid.UUID {
	return Derive("flowfabric brought event v1", event.String(), waitpoint.String())
}

// Derive makes a UUID out of texts, under a label that says what they are.
func Derive(label string, parts ...string) uuid.UUID {
	h := sha256.New()
	h.Write([]byte(label))
	var size [8]byte
	for _, part := range parts {
		binary.BigEndian.PutUint64(size[:], uint64(len(part)))
		h.Write(size[:])
		h.Write([]byte(part))
	}
	var id uuid.UUID
	copy(id[:], h.Sum(nil))
	id[6] = id[6]&0x0f | 0x80 // version 8: content chosen by the application
	id[8] = id[8]&0x3f | 0x80 // variant RFC 9562
	return id
}

// Partition places a UUID: CRC16 (XMODEM, the one Valkey Cluster uses) of its 16 bytes, modulo count.
func Partition(id uuid.UUID, count uint16) uint16 { return crc16(id[:]) % max(count, 1) }

// SchedulePartition places a schedule by its name, in the same way.
func SchedulePartition(name string, count uint16) uint16 { return crc16([]byte(name)) % max(count, 1) }

// GatePartition is the partition of a gate among n; of a limit, which is called "@<numbers>@<key>", that
// of its key.
func GatePartition(name string, n uint16) uint16 {
	h := fnv.New32a()
	if limit, ok := strings.CutPrefix(name, "@"); ok {
		_, name, _ = strings.Cut(limit, "@")
	}
	h.Write([]byte(name))
	return uint16(h.Sum32() % uint32(max(n, 1)))
}

func crc16(text []byte) uint16 {
	var crc uint16
	for _, b := range text {
		crc ^= uint16(b) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return crc
}

// Worker is the worker instance of a session: "<instance>~<random>", or "<bell>~<instance>~<random>" where one
// process listens for many.
func Worker(session string) string {
	first, rest, _ := strings.Cut(session, "~")
	if second, _, found := strings.Cut(rest, "~"); found {
		return second
	}
	return first
}

// Session makes the id of a session: "<owner>~<12 characters>". The owner is a worker instance, or what listens for
// one and the instance. With a version of an application, the last four characters are its [VersionMark].
func Session(owner, version string) string {
	random := uuid.New()
	if version == "" {
		return owner + "~" + hex.EncodeToString(random[10:])
	}
	return owner + "~" + base64.RawURLEncoding.EncodeToString(random[10:]) + VersionMark(version)
}

// VersionMark stands for a version of an application in the ids of its sessions: 24 bits of its digest. So whatever
// keeps the session keeps the version, in no more bytes.
func VersionMark(version string) string {
	sum := sha256.Sum256([]byte(version))
	return base64.RawURLEncoding.EncodeToString(sum[:3])
}

// SessionMark is the mark of the version in a session; "" of a session without a version, and of what is no session.
func SessionMark(session string) string {
	at := strings.LastIndexByte(session, '~')
	if at < 0 || len(session)-at-1 != 12 {
		return ""
	}
	if strings.Trim(session[at+1:], "0123456789abcdef") == "" { // in the form of no version
		return ""
	}
	return session[len(session)-4:]
}

// ParseUUID reads a canonical lower-case UUID (36 bytes) and nothing else.
func ParseUUID(text string) (uuid.UUID, error) {
	if len(text) == 36 {
		if id, err := uuid.Parse(text); err == nil && id.String() == text {
			return id, nil
		}
	}
	return uuid.UUID{}, fmt.Errorf("%.48q is not a lower-case uuid of 36 characters", text)
}
