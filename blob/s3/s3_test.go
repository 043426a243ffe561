package s3_test

import (
	"bytes"
	"context"
	"errors"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/blob"
	"github.com/flowfabric/flowfabric-go/blob/s3"
	"github.com/flowfabric/flowfabric-go/internal/must"
)

// newClient is a client of a server of its own, which has the bucket "blobs".
func newClient(t *testing.T) *minio.Client {
	t.Helper()
	backend := s3mem.New()
	must.No(t, backend.CreateBucket("blobs"))
	server := httptest.NewServer(gofakes3.New(backend).Server())
	t.Cleanup(server.Close)
	at, err := url.Parse(server.URL)
	must.No(t, err)
	client, err := minio.New(at.Host, &minio.Options{Creds: credentials.NewStaticV4("key", "secret", ""),
		Region: "us-east-1", MaxRetries: 1})
	must.No(t, err)
	return client
}

func TestPutAndGet(t *testing.T) {
	client := newClient(t)
	store := s3.New(client, "blobs", "a/")
	for _, data := range [][]byte{[]byte("hello"), bytes.Repeat([]byte{0, 255, '\r', '\n'}, 6<<20)} {
		ref, err := store.Put(t.Context(), data)
		must.No(t, err)
		again, err := store.Put(t.Context(), data)
		if err != nil || again != ref || ref != blob.Ref(data) {
			t.Errorf("%s, then %s: %v", ref, again, err)
		}
		if got, err := store.Get(t.Context(), ref); err != nil || !bytes.Equal(got, data) {
			t.Errorf("%d bytes of %d: %v", len(got), len(data), err)
		}
		if _, err := client.StatObject(t.Context(), "blobs", "a/"+ref[7:9]+"/"+ref[7:],
			minio.StatObjectOptions{}); err != nil {
			t.Error(err)
		}
	}
}

func TestErrors(t *testing.T) {
	client := newClient(t)
	store := s3.New(client, "blobs", "")
	ref := blob.Ref([]byte("hello"))
	if _, err := store.Get(t.Context(), ref); !errors.Is(err, flowfabric.ErrNotFound) ||
		flowfabric.CodeOf(err) != "blob_not_found" {
		t.Error(err)
	}
	_, err := client.PutObject(t.Context(), "blobs", ref[7:9]+"/"+ref[7:], bytes.NewReader([]byte("jello")), 5,
		minio.PutObjectOptions{})
	must.No(t, err)
	if got, err := store.Get(t.Context(), ref); !errors.Is(err, flowfabric.ErrCorrupt) || got != nil {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := store.Get(t.Context(), "md5:1"); !errors.Is(err, flowfabric.ErrInvalidInput) {
		t.Error(err)
	}
	if _, err := store.Put(t.Context(), make([]byte, blob.MaxSize+1)); !errors.Is(err,
		flowfabric.ErrPayloadTooLarge) {
		t.Error(err)
	}
	nowhere := s3.New(client, "nowhere", "")
	_, put := nowhere.Put(t.Context(), nil)
	if _, get := nowhere.Get(t.Context(), ref); put == nil || get == nil || errors.Is(get, flowfabric.ErrNotFound) {
		t.Error(put, get)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	boom := errors.New("boom")
	cancel(boom)
	_, put = store.Put(ctx, nil)
	if _, get := store.Get(ctx, ref); put != boom || get != boom {
		t.Error(put, get)
	}
}
