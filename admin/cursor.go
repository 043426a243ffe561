package admin

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
)

// cursorVersion leads the text of a cursor; another layout gets another one.
const cursorVersion = "ffl3."

// place is how far a listing got: the index it is in, the group within that index, and the last entry looked at.
type place struct {
	index     int    // position in indexes
	partition uint16 // of the group
	key       string // of the group
	after     engine.Position
}

// text is the place as a cursor of one filter and store. Its checksum covers both: what another listing made is refused
// instead of leading somewhere.
func (p place) text(mark string) string {
	body := strings.Join([]string{strconv.Itoa(p.index), strconv.Itoa(int(p.partition)),
		strconv.FormatInt(p.after.Score, 10), p.after.Member, p.key}, "\x1f")
	return cursorVersion + base64.RawURLEncoding.EncodeToString([]byte(checksum(mark, body)+body))
}

// parsePlace reads a cursor; "" is the beginning.
func parsePlace(cursor, mark string, partitions uint16) (place, error) {
	if cursor == "" {
		return place{}, nil
	}
	bad := func(why string) (place, error) {
		return place{}, fmt.Errorf("%w: cursor %.40q %s", flowfabric.ErrInvalidInput, cursor, why)
	}
	text, ok := strings.CutPrefix(cursor, cursorVersion)
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if !ok || err != nil || len(raw) < checksumLen || len(cursor) > 1024 {
		return bad("is not one that ListPage returned")
	}
	sum, body := string(raw[:checksumLen]), string(raw[checksumLen:])
	if sum != checksum(mark, body) {
		return bad("was made with another filter or by another store")
	}
	parts := strings.SplitN(body, "\x1f", 5)
	if len(parts) != 5 {
		return bad("is not one that ListPage returned")
	}
	index, err1 := strconv.Atoi(parts[0])
	partition, err2 := strconv.ParseUint(parts[1], 10, 16)
	score, err3 := strconv.ParseInt(parts[2], 10, 64)
	if err1 != nil || err2 != nil || err3 != nil || index < 0 || index > byTag ||
		partition >= uint64(partitions) {
		return bad("is not one that ListPage returned")
	}
	return place{index: index, partition: uint16(partition), key: parts[4],
		after: engine.Position{Score: score, Member: parts[3]}}, nil
}

const checksumLen = 16

func checksum(mark, body string) string {
	sum := sha256.Sum256([]byte(mark + "\x1e" + body))
	return hex.EncodeToString(sum[:checksumLen/2])
}

// mark is what a cursor depends on: the filter, all but WithTags and WithReasons, and how many partitions the store
// has.
func (f Filter) mark(partitions uint16) string {
	parts := []string{strconv.Itoa(int(partitions)), f.Namespace, f.Lane, f.Kind, f.HeldBy,
		strconv.FormatBool(f.Newest)}
	if !f.Flow.IsZero() {
		parts = append(parts, "flow "+f.Flow.String())
	}
	if f.ErrorText != "" {
		parts = append(parts, "error "+f.ErrorText)
	}
	if f.narrow.Shape != "" {
		parts = append(parts, "shape "+f.narrow.Shape)
	}
	if f.narrow.Version != "" {
		parts = append(parts, "version "+f.narrow.Version)
	}
	if !f.Since.IsZero() {
		parts = append(parts, "since "+strconv.FormatInt(f.Since.UnixNano(), 10))
	}
	if !f.Until.IsZero() {
		parts = append(parts, "until "+strconv.FormatInt(f.Until.UnixNano(), 10))
	}
	for _, s := range slices.Sorted(slices.Values(f.States)) {
		parts = append(parts, string(s))
	}
	for _, category := range slices.Sorted(slices.Values(f.Categories)) {
		parts = append(parts, "category "+string(category))
	}
	for _, k := range slices.Sorted(maps.Keys(f.Tags)) {
		parts = append(parts, k+"="+f.Tags[k])
	}
	return strings.Join(parts, "\x1f")
}
