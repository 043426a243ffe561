package handler

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/flowfabric/flowfabric-go/blob"
	"github.com/flowfabric/flowfabric-go/internal/digest"
)

// offloadTimeout bounds one call of a store by a codec, which has no context.
const offloadTimeout = time.Minute

// Offloaded stores what codec encodes in blobs if it has more than above bytes, 1 KiB or more (less is taken as that),
// and leaves a reference of about 100 bytes in its place. So inputs, results and step values may have up to 64 MiB
// (blob.MaxSize), and the server of executions holds little of them:
//
//	var Render = handler.Define[Scene, Film]("render",
//		handler.WithCodec(handler.Offloaded(handler.JSON, blobs, 64<<10)))
//
// Every process that submits, works or reads results needs the same store and the codec. Dashboard, command and HTTP
// API show the reference, {"flowfabric_blob":"sha256:…","size":70000}; inputs that they submit are not offloaded and
// decode all the same. Other codecs read nothing of it, but this one reads what codec alone has written, so it can be
// added while executions are retained. The store gets plain bytes, whatever cipher the process has: to encrypt those,
// too, give it blob.Encrypted.
//
// A call of the store may take a minute. Its errors are retried by policy, as those of a cipher are, but for
// flowfabric.ErrNotFound, ErrCorrupt and ErrPayloadTooLarge. Blobs must be kept for as long as executions are
// retained; a value that was stored and whose execution was never recorded, as after a crash, is left behind. What is
// offloaded is stored again, under the same digest, when it is encoded again.
func Offloaded(codec Codec, blobs blob.Store, above int) Codec {
	return offloaded{codec, blobs, max(above, 1<<10)}
}

type offloaded struct {
	codec Codec
	blobs blob.Store
	above int
}

// reference is what is left in the place of a payload.
type reference struct {
	Blob string `json:"flowfabric_blob"`
	Size int    `json:"size"`
}

var referenceStart = []byte(`{"flowfabric_blob":"`)

func (o offloaded) Encode(v any) ([]byte, error) {
	_, outer, err := o.both(v)
	return outer, err
}

// encodeBoth returns what v is before and after offloading.
func encodeBoth(c Codec, v any) (plain, outer []byte, err error) {
	if o, ok := c.(offloaded); ok {
		return o.both(v)
	}
	plain, err = c.Encode(v)
	return plain, plain, err
}

func (o offloaded) both(v any) (plain, outer []byte, err error) {
	plain, outer, err = encodeBoth(o.codec, v)
	// A payload that looks like a reference is offloaded, too: so none is mistaken for one.
	if err != nil || len(outer) <= o.above && !bytes.HasPrefix(outer, referenceStart) {
		return plain, outer, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), offloadTimeout)
	defer cancel()
	ref, err := o.blobs.Put(ctx, outer)
	if err != nil {
		return nil, nil, awayError("store", err)
	}
	outer, err = json.Marshal(reference{ref, len(outer)})
	return plain, outer, err
}

func (o offloaded) Decode(data []byte, v any) error {
	if !bytes.HasPrefix(data, referenceStart) {
		return o.codec.Decode(data, v)
	}
	var r reference
	if err := json.Unmarshal(data, &r); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), offloadTimeout)
	defer cancel()
	data, err := o.blobs.Get(ctx, r.Blob)
	if err != nil {
		return awayError("fetch", err)
	}
	return o.codec.Decode(data, v)
}

// storeError is the error of a store of blobs. One that another attempt may do without is retried.
type storeError struct {
	verb string
	err  error
}

func (e *storeError) Error() string { return fmt.Sprintf("%s payload: %v", e.verb, e.err) }
func (e *storeError) Unwrap() error { return e.err }

// awayError is the error of a store: final if another attempt does not repair it.
func awayError(verb string, err error) error {
	if digest.Final(err) {
		err = Permanent(err)
	}
	return &storeError{verb, err}
}
