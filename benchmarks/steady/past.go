package steady

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
)

// file of the samples, one a line, in the directory of a run.
const file = "samples.jsonl"

// earlier reads what earlier runs with the directory saw, and makes its name independent of where the process is.
func earlier(o *Options) (samples []sample, err error) {
	if o.Dir == "" {
		return nil, nil
	}
	if o.Dir, err = filepath.Abs(o.Dir); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(o.Dir, file))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for line := range bytes.Lines(text) {
		var x sample
		if err := json.Unmarshal(line, &x); err != nil {
			return nil, fmt.Errorf("%s: line %d: %w", filepath.Join(o.Dir, file), len(samples)+1, err)
		}
		samples = append(samples, x)
	}
	return samples, err
}

// note keeps a sample for a later run.
func (s *steady) note(x sample) error {
	if s.Dir == "" {
		return nil
	}
	line, err := json.Marshal(x)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(s.Dir, file), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	return errors.Join(err, f.Close())
}

// free shortens how long the ids of purged executions and flows stay taken.
func (s *steady) free(ctx context.Context) error {
	expiry := strconv.FormatInt(taken.Milliseconds(), 10)
	for _, stones := range []string{"*:z:*", "*:fz:*"} {
		for cursor := uint64(0); ; {
			page, err := s.server.Do(ctx, "SCAN", strconv.FormatUint(cursor, 10), "MATCH", stones, "COUNT",
				"1000").AsScanEntry()
			if err != nil {
				return err
			}
			for _, key := range page.Elements {
				if err := s.server.Do(ctx, "PEXPIRE", key, expiry, "LT").Error(); err != nil {
					return err
				}
			}
			if cursor = page.Cursor; cursor == 0 {
				break
			}
		}
	}
	return nil
}
