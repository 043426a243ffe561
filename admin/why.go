package admin

import (
	"context"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/explain"
	"github.com/flowfabric/flowfabric-go/internal/link"
)

// Why explains where an execution is and what moves it next. It reads one consistent snapshot of the execution's
// partition and, for one that waits, the registered workers, and writes nothing. An id that names nothing, a purged
// execution, and a frozen or missing partition are explained too, without an error.
//
// Errors: flowfabric.ErrInvalidInput for the zero id and one of a partition that this store does not have; ErrTransport
// and its kin; client.ErrClosed.
func (a *Admin) Why(ctx context.Context, id flowfabric.ExecutionID) (flowfabric.Explanation, error) {
	if err := a.admit("explain", id); err != nil {
		return flowfabric.Explanation{}, err
	}
	e, err := explain.Of(ctx, a.store, id)
	if err != nil {
		return flowfabric.Explanation{}, link.Operated("explain", id, err)
	}
	return e, nil
}
