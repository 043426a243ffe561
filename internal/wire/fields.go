package wire

import (
	"strconv"
	"time"
)

// Fields reads numbers and instants of a record.
type Fields struct {
	M map[string]string
	R interface{ Stop(format string, a ...any) } // is told what cannot be read
}

// Number is 0 for what is not there.
func (f Fields) Number(name string) int64 {
	v := f.M[name]
	if v == "" {
		return 0
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil {
		f.R.Stop("field %s is %.40q", name, v)
	}
	return n
}

// Instant is zero for what is not there.
func (f Fields) Instant(name string) time.Time {
	if n := f.Number(name); n != 0 {
		return time.UnixMilli(n).UTC()
	}
	return time.Time{}
}
