package tailpos

import (
	"encoding/base32"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/google/uuid"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/limits"
)

// Merged is a place in a tail that shows children, too. Without Children it is a place of the execution alone, and its
// text is that of [Parts].
type Merged struct {
	Clock    uint64 // ms of the last event that was told, by which the sources are merged
	Own      Parts
	Children []Child // that are open, at most [limits.MaxTailed]; each comes behind its parent
}

// Child is one that is followed: its place, its name, and whose it is.
type Child struct {
	Parent int // 0 is the execution itself, n the nth of the list, which comes before this one
	ID     uuid.UUID
	Name   string // 1..64 bytes
	At     Parts
}

const between = "--" // stands between the places of two sources; no number and no name has it

// names holds what is no plain name in the letters and digits of a position.
var names = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// nameText begins with n for a name of letters and digits, and with x for another one.
func nameText(name string) string {
	if strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") == "" {
		return "n" + name
	}
	return "x" + names.EncodeToString([]byte(name))
}

// Head begins the text of a place with children: the clock and the place of the execution itself.
func Head(to []byte, clock uint64, own string) []byte {
	return append(append(strconv.AppendUint(append(to, 'm'), clock, 10), between...), own...)
}

// Tag is what the texts of a child's places begin with: it does not change while the child is open, but for Parent.
func Tag(id uuid.UUID, name string) string {
	return "." + hex.EncodeToString(id[:]) + "." + nameText(name) + "."
}

// Append adds the place of a child to a text that Head has begun.
func Append(to []byte, parent int, tag, at string) []byte {
	return append(append(strconv.AppendInt(append(to, between...), int64(parent), 10), tag...), at...)
}

// MergedText is that of a place, at most 9 KiB: letters, digits, dots and hyphens.
func MergedText(m Merged) string {
	if len(m.Children) == 0 {
		return Text(m.Own)
	}
	text := Head(nil, m.Clock, Text(m.Own))
	for _, c := range m.Children {
		text = Append(text, c.Parent, Tag(c.ID, c.Name), Text(c.At))
	}
	return string(text)
}

// ParseMerged reads what Text or MergedText wrote, and nothing else. The error wraps [flowfabric.ErrInvalidInput].
func ParseMerged(text string) (Merged, error) {
	if !strings.HasPrefix(text, "m") {
		own, err := Parse(text)
		return Merged{Own: own}, err
	}
	refused := fmt.Errorf("%w: %.140q is no position of a tail", flowfabric.ErrInvalidInput, text)
	words := strings.Split(text, between)
	clock, ok := number(words[0][1:], 64)
	if !ok || len(words) < 3 || len(words) > 2+limits.MaxTailed {
		return Merged{}, refused
	}
	m := Merged{Clock: clock, Children: make([]Child, 0, len(words)-2)}
	var err error
	if m.Own, err = Parse(words[1]); err != nil {
		return Merged{}, refused
	}
	depths := []int{0}
	for _, word := range words[2:] {
		c, ok := parseChild(word)
		if !ok || c.Parent >= len(depths) || depths[c.Parent] == limits.MaxTailedDepth {
			return Merged{}, refused
		}
		depths = append(depths, depths[c.Parent]+1)
		m.Children = append(m.Children, c)
	}
	if MergedText(m) != text { // another form of the same
		return Merged{}, refused
	}
	return m, nil
}

func parseChild(word string) (c Child, ok bool) {
	parts := strings.SplitN(word, ".", 4)
	if len(parts) != 4 {
		return c, false
	}
	parent, ok := number(parts[0], 16)
	id, err := hex.DecodeString(parts[1])
	if !ok || err != nil || len(id) != len(c.ID) || parts[2] == "" {
		return c, false
	}
	c.Parent, c.ID, c.Name = int(parent), uuid.UUID(id), parts[2][1:]
	if parts[2][0] == 'x' {
		plain, err := names.DecodeString(c.Name)
		if err != nil {
			return c, false
		}
		c.Name = string(plain)
	}
	c.At, err = Parse(parts[3])
	return c, err == nil && c.Name != "" && len(c.Name) <= limits.MaxName
}
