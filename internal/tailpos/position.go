// Package tailpos reads and writes the text of a stream.Position: a place between two events of a tail, with what a
// tailer needs to go on there.
package tailpos

import (
	"fmt"
	"strconv"
	"strings"

	flowfabric "github.com/flowfabric/flowfabric-go"
)

// Stage says how far the attempt of a position is.
type Stage uint8

// The stages.
const (
	Awaited   Stage = iota // it was not told of
	Announced              // it is a retry that was told of and has not begun
	Begun                  // it was told that it has begun
	Over                   // the execution has ended, which was told; the attempt would be the next one
)

// Parts are what a position says. The zero value is before the first event.
type Parts struct {
	Attempt uint32 // 0 only in the zero value
	Stage   Stage

	// With Begun: the last frame that was delivered or skipped, how many frames there are up to it, how many of them
	// are durable (0 frames with an id: not known), the last run that was told of, and a mark of the last suspension
	// that was. With Over Ms is when it ended.
	Ms, Seq            uint64
	Sequence, Durables uint64
	Run                uint32
	Wait               uint64
}

// Text is that of a position: letters, digits, dots and a hyphen, at most 140 bytes; "" of the zero value.
func Text(p Parts) string {
	if p == (Parts{}) {
		return ""
	}
	text := strconv.AppendUint(append(make([]byte, 0, 140), 'a'), uint64(p.Attempt), 10)
	switch p.Stage {
	case Awaited:
	case Announced:
		text = append(text, 'r')
	case Over:
		text = strconv.AppendUint(append(text, 'z'), p.Ms, 10)
	case Begun:
		text = strconv.AppendUint(append(text, '.'), p.Ms, 10)
		text = strconv.AppendUint(append(text, '-'), p.Seq, 10)
		for _, n := range [...]uint64{p.Sequence, p.Durables, uint64(p.Run), p.Wait} {
			text = strconv.AppendUint(append(text, '.'), n, 10)
		}
	}
	return string(text)
}

// Parse reads the text of a position, and nothing else. The error wraps [flowfabric.ErrInvalidInput].
func Parse(text string) (Parts, error) {
	if text == "" {
		return Parts{}, nil
	}
	refused := fmt.Errorf("%w: %.140q is no position of a tail", flowfabric.ErrInvalidInput, text)
	words := strings.Split(text, ".")
	head, ok := strings.CutPrefix(words[0], "a")
	q, stage := Parts{}, Awaited
	if len(words) == 1 && ok {
		if cut, announced := strings.CutSuffix(head, "r"); announced {
			head, stage = cut, Announced
		} else if cut, at, over := strings.Cut(head, "z"); over {
			head, stage = cut, Over
			q.Ms, ok = number(at, 64)
		}
	}
	attempt, valid := number(head, 32)
	q.Attempt, q.Stage = uint32(attempt), stage
	ok = ok && valid
	if len(words) > 1 {
		if len(words) != 6 {
			return Parts{}, refused
		}
		q.Stage = Begun
		ms, seq, cut := strings.Cut(words[1], "-")
		var run uint64
		for _, field := range []struct {
			text string
			bits int
			to   *uint64
		}{{ms, 64, &q.Ms}, {seq, 64, &q.Seq}, {words[2], 64, &q.Sequence}, {words[3], 64, &q.Durables},
			{words[4], 32, &run}, {words[5], 64, &q.Wait}} {
			*field.to, valid = number(field.text, field.bits)
			ok = ok && valid
		}
		q.Run = uint32(run)
		ok = ok && cut
	}
	if !ok || q.Attempt == 0 {
		return Parts{}, refused
	}
	return q, nil
}

// number reads one as it is written: without sign or leading zeros.
func number(text string, bits int) (uint64, bool) {
	n, err := strconv.ParseUint(text, 10, bits)
	return n, err == nil && strconv.FormatUint(n, 10) == text
}
