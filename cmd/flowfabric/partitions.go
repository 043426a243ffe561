package main

import (
	"fmt"
	"strconv"
	"strings"
)

// partitionOutcome is what one partition answered to a change.
type partitionOutcome struct {
	Partition uint16 `json:"partition"`
	Outcome   string `json:"outcome"` // what was done, "already", or "failed"
	Error     string `json:"error,omitempty"`
}

// outcome names what a partition did.
func outcome(done string, already bool, err error) string {
	switch {
	case err != nil:
		return "failed"
	case already:
		return "already"
	}
	return done
}

// partial sums up what some partitions refused; nil when none did.
type partial struct {
	total  int
	failed []uint16
	causes []error
}

func (f *partial) add(partition uint16, err error) {
	f.total++
	if err != nil {
		f.failed = append(f.failed, partition)
		f.causes = append(f.causes, err)
	}
}

func (f *partial) err(verb string) error {
	if len(f.failed) == 0 {
		return nil
	}
	return &partialError{fmt.Errorf("%s: %d of %s failed (%s); the first: %w", verb, len(f.failed),
		count(f.total, "partition"), ranges(f.failed),
		f.causes[0]), len(f.failed), f.total}
}

// partialError says that some partitions failed.
type partialError struct {
	error
	failed, total int
}

func (e *partialError) Unwrap() error { return e.error }

// choose reads partitions from arguments, "3" or "0-7", or takes all of them.
func choose(args []string, all bool, partitions uint16) ([]uint16, error) {
	if all == (len(args) > 0) {
		return nil, usage("name partitions (3, 0-7), or --all")
	}
	if all {
		args = []string{fmt.Sprintf("0-%d", partitions-1)}
	}
	chosen := map[uint16]bool{}
	var out []uint16
	for _, text := range args {
		first, last, isRange := strings.Cut(text, "-")
		if !isRange {
			last = first
		}
		a, err1 := strconv.ParseUint(first, 10, 16)
		b, err2 := strconv.ParseUint(last, 10, 16)
		if err1 != nil || err2 != nil || b < a || b >= uint64(partitions) {
			return nil, usage("partition %q, want numbers of 0..%d or ranges such as 0-7", text, partitions-1)
		}
		for n := a; n <= b; n++ {
			if !chosen[uint16(n)] {
				chosen[uint16(n)] = true
				out = append(out, uint16(n))
			}
		}
	}
	return out, nil
}
