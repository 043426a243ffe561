package chat

import (
	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/stream"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// item is an event of the tail that counts. A conversation is made from its items, and can be made from them again.
type item struct {
	what     what
	at       stream.Position
	attempt  uint32
	sequence uint64 // 0 if it is no frame

	typ         string // of a frame
	correlation string
	payload     []byte
	fleeting    bool // a best-effort frame

	said  agent.Message   // itemSaid, itemFound
	waits *suspend.Record // itemWaits
	name  string          // of a child
	end   stream.TailEvent
}

// what is the type of an item.
type what uint8

const (
	itemSaid   what = iota // a message of before, which no frame shows
	itemFound              // the result of a call, as its step recorded it
	itemFrame              // a frame of the execution
	itemChild              // a message of a child
	itemWaits              // the execution waits
	itemGoesOn             // it waits no longer
	itemRetry
	itemGap
	itemEnd
)

// Types of frames that an application appends to be shown, beside those that begin with dataPrefix.
const (
	frameSource = "source" // a JSON object: url, or media_type; title, id, filename
	dataPrefix  = "data-"
)
