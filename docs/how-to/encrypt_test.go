package howto_test

import (
	"context"
	"strings"
	"testing"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/runtime"
)

// connect is for a program that gets its keys from a vault instead of the environment.
func connect(ctx context.Context, url string, vault flowfabric.Cipher) (*client.Client, error) {
	return client.Connect(ctx, client.Config{URL: url, Cipher: vault}) // as in runtime.Config
}

func TestConnectWithACipher(t *testing.T) {
	cipher, err := flowfabric.CipherKeys("k1:" + strings.Repeat("ab", 32))
	must(t, err)
	ctx, _ := start(t, runtime.Config{Cipher: cipher}, handler.Bind(WriteUp, writeUp))
	c, err := connect(ctx, "embedded://", cipher)
	must(t, err)
	defer c.Close()
	x, err := client.Submit(ctx, c, WriteUp, Draft{"tides"})
	must(t, err)
	if got, err := x.Result(ctx); err != nil || got.Text != "on tides" {
		t.Errorf("%+v, %v", got, err)
	}
}
