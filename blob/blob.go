// Package blob stores bytes by their digest, outside of the store of executions: images and files of agents
// (agent.Config.Blobs), and inputs, results and step values that are too large for Valkey (handler.Offloaded).
//
//	blobs := blob.Folder("/mnt/shared/blobs") // or s3.New of module blob/s3
//	ref, err := blobs.Put(ctx, png)           // "sha256:9f86d0…"
//	png, err = blobs.Get(ctx, ref)
//
// A reference says what the bytes are, so nothing is ever overwritten by something else, a repeated Put changes
// nothing, and bytes that were damaged are noticed. Who knows a reference can read the bytes through a program that
// resolves it, as with the bytes' digest itself: do not put guessable secrets there unencrypted.
//
// Nothing deletes blobs, because several executions may refer to the same one. Each Put makes a blob new again, so
// what was not put for longer than executions are retained can be deleted by its age: by a rule of the bucket, or
// find DIR -type f -mtime +90 -delete.
package blob

import (
	"context"

	"github.com/flowfabric/flowfabric-go/internal/digest"
)

// MaxSize is how many bytes a blob has at most: 64 MiB.
const MaxSize = digest.Max

// Store keeps bytes by their digest. It is safe for concurrent use, also by several processes.
//
// A store that is away makes errors that are none of the following; a repeated call may succeed. Both methods return
// the cause of a context that has ended. A store of your own should check with [Ref] what it has read.
type Store interface {
	// Put stores data, at most [MaxSize] bytes, and returns its reference, that of [Ref]. The bytes are durable when
	// it returns. It is idempotent. It does not keep data. Error: flowfabric.ErrPayloadTooLarge.
	Put(ctx context.Context, data []byte) (ref string, err error)
	// Get returns the bytes of a reference, which are the caller's. Errors: flowfabric.ErrNotFound if the store does
	// not have them (code blob_not_found); flowfabric.ErrCorrupt if what it has does not fit the reference (code
	// blob_damaged); flowfabric.ErrInvalidInput if ref is not a reference.
	Get(ctx context.Context, ref string) ([]byte, error)
}

// Ref is the reference of bytes: "sha256:" and 64 lower-case hex digits, 71 bytes. It stores nothing.
func Ref(data []byte) string { return digest.Ref(data) }
