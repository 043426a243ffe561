package client

import (
	"fmt"

	flowfabric "github.com/flowfabric/flowfabric-go"
)

// admit refuses a call that cannot be made: on a closed client, or about no execution.
func (c *Client) admit(verb string, id flowfabric.ExecutionID) error {
	var err error
	switch {
	case c.closed.Load():
		err = ErrClosed
	case id.IsZero():
		err = fmt.Errorf("%w: the execution id is empty", flowfabric.ErrInvalidInput)
	default:
		return nil
	}
	if id.IsZero() {
		return fmt.Errorf("%s: %w", verb, err)
	}
	return fmt.Errorf("%s %s: %w", verb, id, err)
}
