// Package mint makes ids that no user of this module has to make.
package mint

import (
	"github.com/google/uuid"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/ids"
)

// ID makes a time-ordered id (UUIDv7) in a partition. Order of making inside one process is order of the ids, which
// breaks ties between executions created in one millisecond.
func ID(partition uint16) flowfabric.ExecutionID { return Join(partition, uuid.Must(uuid.NewV7())) }

// Join makes an id of its parts.
func Join(partition uint16, id uuid.UUID) flowfabric.ExecutionID { return ids.Join(partition, id) }

// UUID makes a random one (UUIDv4).
func UUID() flowfabric.UUID { return flowfabric.UUID(uuid.New()) }
