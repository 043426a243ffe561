// Command chatserver serves the conversations of a store to readers that are measured: chatserver URL ADDRESS.
package main

import (
	"context"
	"log"
	"net/http"
	"os"
	"os/signal"

	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/chat"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/handler"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := serve(ctx, os.Args[1], os.Args[2]); err != nil {
		log.Fatal(err)
	}
}

func serve(ctx context.Context, url, address string) error {
	c, err := client.Connect(ctx, client.Config{URL: url})
	if err != nil {
		return err
	}
	defer c.Close()
	h, err := chat.New(c, handler.Define[chat.Conversation, agent.Result]("chats"), chat.Config{
		Who: func(*http.Request) (string, error) { return "anna", nil }})
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/chat/", http.StripPrefix("/chat", h))
	mux.HandleFunc("/readyz", func(http.ResponseWriter, *http.Request) {})
	s := &http.Server{Addr: address, Handler: mux}
	defer context.AfterFunc(ctx, func() {
		h.Close()
		_ = s.Close()
	})()
	if err := s.ListenAndServe(); ctx.Err() == nil {
		return err
	}
	return nil
}
