package store

import "encoding/binary"

// packed is a list of texts as one: the length of each (a varint), then its bytes. It is never changed.
type packed string

// next cuts the first text off, without copying it.
func (p packed) next() (first string, rest packed) {
	n, size := int(p[0]), 1
	if n >= 0x80 {
		n, size = 0, 0
		for shift := 0; ; shift += 7 {
			b := p[size]
			size++
			n |= int(b&0x7f) << shift
			if b < 0x80 {
				break
			}
		}
	}
	return string(p[size : size+n]), p[size+n:]
}

// pack appends a text to what becomes a packed list.
func pack(to []byte, s string) []byte {
	return append(binary.AppendUvarint(to, uint64(len(s))), s...)
}

// wanted are the names that a command asks for: every step-th of its arguments. It tells fast that a name is not
// among them.
type wanted struct {
	args []string
	step int
	mask uint64
}

func want(args []string, step int) wanted {
	w := wanted{args, step, 0}
	for i := 0; i < len(args); i += step {
		w.mask |= mark(args[i])
	}
	return w
}

// mark is one bit, which is often another for another name.
func mark(name string) uint64 {
	if name == "" {
		return 1
	}
	n := uint(len(name))
	return 1 << ((n*7 + uint(name[0])*5 + uint(name[n-1])) & 63)
}

// from is where a name stands among the arguments at or after i, -1 if it does not.
func (w *wanted) from(i int, name string) int {
	if w.mask&mark(name) == 0 {
		return -1
	}
	for ; i < len(w.args); i += w.step {
		if w.args[i] == name {
			return i
		}
	}
	return -1
}
