// Package s3 is a [blob.Store] in a bucket of Amazon S3, or of a service that speaks its protocol, such as MinIO, Ceph,
// Cloudflare R2 or Google Cloud Storage.
//
//	client, err := minio.New("s3.eu-central-1.amazonaws.com",
//		&minio.Options{Creds: credentials.NewIAM(""), Secure: true})
//	blobs := s3.New(client, "my-bucket", "flowfabric/")
//
// The client is that of github.com/minio/minio-go/v7: keys, region, TLS and retries are its options. It needs the
// rights s3:PutObject and s3:GetObject, and s3:ListBucket, without which the service says of a missing object that
// access is denied. A rule of the bucket's life cycle may delete what is older than executions are retained: each Put
// writes the object again, in one request, so its age starts again.
package s3

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/minio/minio-go/v7"

	"github.com/flowfabric/flowfabric-go/blob"
	"github.com/flowfabric/flowfabric-go/internal/digest"
)

// New is a store in a bucket, which must exist; no call is made. The key of an object is prefix, the first two hex
// digits of its digest, a slash, and the digest. The errors of its methods are those of [blob.Store], and else those
// of the client: a missing bucket and a refused key among them.
func New(client *minio.Client, bucket, prefix string) blob.Store {
	return &store{client, bucket, prefix}
}

type store struct {
	client         *minio.Client
	bucket, prefix string
}

// Put implements [blob.Store].
func (s *store) Put(ctx context.Context, data []byte) (string, error) {
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if err := digest.Fits(len(data)); err != nil {
		return "", err
	}
	ref := digest.Ref(data)
	key, err := s.key(ref)
	if err != nil {
		return "", err
	}
	_, err = s.client.PutObject(ctx, s.bucket, key, bytes.NewReader(data), int64(len(data)),
		minio.PutObjectOptions{ContentType: "application/octet-stream", DisableMultipart: true})
	if err != nil {
		return "", failed(ctx, "put", ref, err)
	}
	return ref, nil
}

// Get implements [blob.Store].
func (s *store) Get(ctx context.Context, ref string) ([]byte, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	key, err := s.key(ref)
	if err != nil {
		return nil, err
	}
	object, err := s.client.GetObject(ctx, s.bucket, key, minio.GetObjectOptions{})
	if err != nil {
		return nil, failed(ctx, "get", ref, err)
	}
	defer object.Close()
	data, err := io.ReadAll(io.LimitReader(object, blob.MaxSize+1))
	if err != nil {
		return nil, failed(ctx, "get", ref, err)
	}
	return digest.Check(ref, data)
}

func failed(ctx context.Context, verb, ref string, err error) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case minio.ToErrorResponse(err).Code == minio.NoSuchKey:
		return digest.Missing(ref)
	}
	return fmt.Errorf("blob %s: %s: %w", ref, verb, err)
}

func (s *store) key(ref string) (string, error) {
	digits, err := digest.Of(ref)
	if err != nil {
		return "", err
	}
	return s.prefix + digits[:2] + "/" + digits, nil
}
