package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/client"
	_ "github.com/flowfabric/flowfabric-go/embedded" // serves embedded://
	"github.com/flowfabric/flowfabric-go/httpapi"
)

// A program in any language submits work with a bearer token that may do so.
func Example() {
	quiet := slog.New(slog.DiscardHandler)
	c, err := client.Connect(context.Background(), client.Config{URL: "embedded://", Logger: quiet})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	// the entry goes into a file, see LoadTokens
	secret, entry, err := httpapi.NewToken("billing", httpapi.Producer, time.Time{}, "default")
	if err != nil {
		fmt.Println(err)
		return
	}
	tokens, err := httpapi.ParseTokens("[" + entry + "]")
	if err != nil {
		fmt.Println(err)
		return
	}
	api, err := httpapi.New(httpapi.Config{Admin: admin.New(c), Authorize: tokens.Authorize, Logger: quiet})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer api.Close()
	server := httptest.NewServer(api)
	defer server.Close()

	for _, bearer := range []string{secret, secret, "guessed"} {
		q, err := http.NewRequest(http.MethodPost, server.URL+"/v1/executions",
			strings.NewReader(`{"kind": "render", "input": {"pages": 10}, "idempotency_key": "order-17"}`))
		if err != nil {
			fmt.Println(err)
			return
		}
		q.Header.Set("Content-Type", "application/json")
		q.Header.Set("Authorization", "Bearer "+bearer)
		answer, err := server.Client().Do(q)
		if err != nil {
			fmt.Println(err)
			return
		}
		var said struct {
			Duplicate bool   `json:"duplicate"`
			Code      string `json:"code"` // of a refusal
		}
		err = json.NewDecoder(answer.Body).Decode(&said)
		_ = answer.Body.Close()
		fmt.Println(answer.StatusCode, said.Duplicate, said.Code, err)
	}
	// Output:
	// 201 false  <nil>
	// 200 true  <nil>
	// 401 false unauthorized <nil>
}
