package denied

import "errors"

// Lasting is an error that every later attempt of the same handler would get again: what was handed over is too large
// or not well formed. Retries would only repeat the effects before it.
type Lasting struct{ error }

// Unwrap returns what is not valid.
func (l Lasting) Unwrap() error { return l.error }

// Last marks an error that lasts, and leaves others alone.
func Last(err error) error {
	for _, lasts := range []error{PayloadTooLarge, SummaryTooLarge, StepLimit, Input, Condition, Dimension, Delta} {
		if errors.Is(err, lasts) {
			return Lasting{err}
		}
	}
	return err
}
