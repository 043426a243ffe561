package blob

import (
	"context"
	"fmt"

	flowfabric "github.com/flowfabric/flowfabric-go"
)

// overhead is how much room a cipher may need of a blob.
const overhead = 1 << 10

// Encrypted keeps in store what cipher has sealed, so that a bucket or a folder has no plain bytes. References are of
// the sealed bytes. A cipher may seal the same bytes to others each time: then the same bytes have several blobs, as
// after a crash before a reference was recorded, of which one is referred to.
//
// A blob has 1 KiB less room than [MaxSize]. Errors are those of store and of the cipher; what cipher does not open is
// not the store's damage, so it has the cipher's error alone. It is as safe for concurrent use as both are.
func Encrypted(store Store, cipher flowfabric.Cipher) Store { return encrypted{store, cipher} }

type encrypted struct {
	store  Store
	cipher flowfabric.Cipher
}

func (e encrypted) Put(ctx context.Context, data []byte) (ref string, err error) {
	if len(data) > MaxSize-overhead {
		return "", fmt.Errorf("%w: %d bytes, want at most %d", flowfabric.ErrPayloadTooLarge, len(data),
			MaxSize-overhead)
	}
	sealed, err := e.cipher.Seal(data)
	if err != nil {
		return "", fmt.Errorf("seal blob: %w", err)
	}
	return e.store.Put(ctx, sealed)
}

func (e encrypted) Get(ctx context.Context, ref string) ([]byte, error) {
	sealed, err := e.store.Get(ctx, ref)
	if err != nil {
		return nil, err
	}
	data, err := e.cipher.Open(sealed)
	if err != nil {
		return nil, fmt.Errorf("open blob: %w", err)
	}
	return data, nil
}
