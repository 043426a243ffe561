package bullmq

import (
	"context"
	"slices"
	"time"
)

// chunk is how many payloads go into one request.
const chunk = 1000

func (s *store) Submit(ctx context.Context, payload []byte) error {
	_, err := s.SubmitAt(ctx, payload)
	return err
}

// SubmitAt implements [driver.Producer].
func (s *store) SubmitAt(ctx context.Context, payload []byte) (time.Time, error) {
	answer, err := s.producer.call(ctx, request{Op: "add", Payloads: [][]byte{payload}})
	return answer.at(), err
}

func (s *store) SubmitMany(ctx context.Context, payloads [][]byte) error {
	for some := range slices.Chunk(payloads, chunk) {
		if _, err := s.producer.call(ctx, request{Op: "fill", Payloads: some}); err != nil {
			return err
		}
	}
	return nil
}

// Prepare implements [driver.Producer].
func (s *store) Prepare(ctx context.Context, payloads [][]byte, submitters,
	perCall int) (func(context.Context) ([]time.Duration, error), error) {
	batch := s.number()
	for some := range slices.Chunk(payloads, chunk) {
		if _, err := s.producer.call(ctx, request{Op: "prepare", Batch: batch, Payloads: some}); err != nil {
			return nil, err
		}
	}
	return func(ctx context.Context) ([]time.Duration, error) {
		answer, err := s.producer.call(ctx, request{Op: "send", Batch: batch, Submitters: submitters, PerCall: perCall})
		return answer.Took, err
	}, nil
}

// Done implements [driver.Counter].
func (s *store) Done(ctx context.Context) (int, error) {
	answer, err := s.producer.call(ctx, request{Op: "done"})
	return answer.Count, err
}
