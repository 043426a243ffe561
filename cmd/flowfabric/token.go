package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/flowfabric/flowfabric-go/httpapi"
)

func tokenCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Make tokens for the HTTP API",
		Long:  "token makes bearer tokens for flowfabric serve.",
	}
	cmd.AddCommand(tokenNewCommand(a))
	return cmd
}

// madeToken is what token new prints. The secret is made to be shown, once.
type madeToken struct {
	Name   string          `json:"name"`
	Secret string          `json:"secret"`
	Entry  json.RawMessage `json:"entry"`
	File   string          `json:"file,omitempty"`
}

func tokenNewCommand(a *app) *cobra.Command {
	var role, file string
	var namespaces []string
	cmd := &cobra.Command{
		Use:   "new NAME",
		Short: "Make a token and show its secret once",
		Long: `new makes a token: its secret, which is for whoever calls and is shown only here, and the entry for the
file of tokens, which has a hash of it. --file adds the entry to the file. A process that serves reads the
file again within seconds.

The name is noted with every change that is made with the token. Roles: viewer reads; producer also submits,
signals and cancels; operator also changes what there is; admin also purges; worker takes work.`,
		Example: `  flowfabric token new shop --role producer --in default --file /etc/flowfabric/tokens.json`,
		Args:    exactly("NAME"),
		RunE: a.once(func(_ context.Context, args []string) error {
			secret, entry, err := httpapi.NewToken(args[0], httpapi.Role(role), namespaces...)
			if err != nil {
				return usage("%v", err)
			}
			if file != "" {
				if err := addToken(file, entry); err != nil {
					return err
				}
			}
			return a.show(madeToken{args[0], secret, json.RawMessage(entry), file}, func(p *page) {
				p.say("secret: %s", secret)
				if file == "" {
					p.say("entry for the file of tokens, a JSON array:\n%s", entry)
				} else {
					p.say("added to %s", file)
				}
			})
		}),
	}
	cmd.Flags().StringVar(&role, "role", "viewer", "`role`: viewer, producer, operator, admin or worker")
	cmd.Flags().StringArrayVar(&namespaces, "in", nil, "`namespace` that it is bound to; may be repeated (default all)")
	cmd.Flags().StringVar(&file, "file", "", "`file` of tokens to add it to; made if it does not exist")
	return cmd
}

// addToken adds an entry to a file, which is replaced at once.
func addToken(file, entry string) error {
	list := []json.RawMessage{}
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &list)
	} else if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	if err != nil {
		return fmt.Errorf("tokens of %s: %w", file, err)
	}
	if text, err = json.MarshalIndent(append(list, json.RawMessage(entry)), "", "  "); err != nil {
		return err
	}
	if _, err := httpapi.ParseTokens(string(text)); err != nil {
		return err
	}
	made, err := os.CreateTemp(filepath.Dir(file), ".tokens-*")
	if err != nil {
		return err
	}
	defer os.Remove(made.Name())
	if _, err = made.Write(append(text, '\n')); err == nil {
		err = made.Sync()
	}
	if err := errors.Join(err, made.Close()); err != nil {
		return err
	}
	return os.Rename(made.Name(), file)
}
