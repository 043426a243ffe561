package main

import (
	"cmp"
	"context"
	"encoding/json"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/flowfabric/flowfabric-go/httpapi"
)

func tokenCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Make, list and remove tokens for the HTTP API",
		Long:  "token makes, lists and removes the bearer tokens of flowfabric serve.",
	}
	cmd.AddCommand(tokenNewCommand(a), tokenListCommand(a), tokenRemoveCommand(a))
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
	var expires time.Duration
	var namespaces []string
	cmd := &cobra.Command{
		Use:   "new NAME",
		Short: "Make a token and show its secret once",
		Long: `new makes a token. It prints the secret once, for the caller, and the entry for the file of
tokens, which holds a hash of the secret. --file adds the entry to the file, which keeps its mode and
owner. A new file belongs to the user who runs the command, so give it to the user that serves (chown).
Concurrent commands keep each other's changes. A serving process reads the file again within seconds.
After --expires the token is refused; its entry stays until 'token rm'.

Every change that is made with the token records its name. Roles: viewer reads; producer also submits,
signals, sends messages, cancels, stops answers, rewinds and forks; operator also changes existing work
and settings; admin also purges; worker takes work. With --in the token sees and changes one namespace alone: no gates, checks and partitions,
which belong to no namespace.`,
		Example: `  flowfabric token new anna --role operator --file /etc/flowfabric/tokens.json
  flowfabric token new shop --role producer --in default --expires 720h --file /etc/flowfabric/tokens.json`,
		Args: exactly("NAME"),
		RunE: a.once(func(ctx context.Context, args []string) error {
			if expires < 0 {
				return usage("--expires is %s, want a time from now, or 0 for never", expires)
			}
			var at time.Time
			if expires > 0 {
				at = time.Now().Add(expires).Truncate(time.Millisecond)
			}
			secret, entry, err := httpapi.NewToken(args[0], httpapi.Role(role), at, namespaces...)
			if err != nil {
				return usage("%v", err)
			}
			if file != "" {
				if err := addToken(ctx, file, entry); err != nil {
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
	cmd.Flags().DurationVar(&expires, "expires", 0, "refuse it after this time from now, such as 720h (default never)")
	cmd.Flags().StringVar(&file, "file", "", "`file` of tokens to add it to; made if it does not exist")
	return cmd
}

// listedToken is an entry of the file of tokens, without its hash.
type listedToken struct {
	httpapi.Principal
	Expires time.Time `json:"expires,omitzero"`
	Expired bool      `json:"expired"`
}

func tokenListCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List the tokens of a file",
		Long:    "ls lists the tokens of a file: name, role, namespace and expiry. It shows no secrets.",
		Example: `  flowfabric token ls --file /etc/flowfabric/tokens.json`,
		Args:    cobra.NoArgs,
	}
	file := tokenFileFlag(cmd)
	cmd.RunE = a.once(func(context.Context, []string) error {
		entries, err := readTokens(*file)
		if err != nil {
			return err
		}
		list, rows := make([]listedToken, len(entries)), make([][]any, len(entries))
		for i, entry := range entries {
			t := &list[i]
			if err := json.Unmarshal(entry, t); err != nil {
				return err
			}
			until := any("never")
			if !t.Expires.IsZero() {
				t.Expired = !time.Now().Before(t.Expires)
				until = t.Expires
			}
			state := styled(green, "good")
			if t.Expired {
				state = styled(red, "expired")
			}
			rows[i] = []any{t.Name, string(t.Role), cmp.Or(strings.Join(t.Namespaces, ", "), "all"), until, state}
		}
		return a.show(list, func(p *page) {
			p.table([]string{"NAME", "ROLE", "NAMESPACES", "EXPIRES", ""}, rows)
		})
	})
	return cmd
}

func tokenRemoveCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "rm NAME",
		Aliases: []string{"remove"},
		Short:   "Remove a token from a file",
		Long: `rm removes a token from a file, which keeps its mode and owner. A serving process refuses the
token within seconds, and ends the streams that the token opened within a minute.`,
		Example: `  flowfabric token rm shop --file /etc/flowfabric/tokens.json`,
		Args:    exactly("NAME"),
	}
	file := tokenFileFlag(cmd)
	cmd.RunE = a.once(func(ctx context.Context, args []string) error {
		if err := removeToken(ctx, *file, args[0]); err != nil {
			return err
		}
		return a.show(map[string]string{"removed": args[0], "file": *file}, func(p *page) {
			p.say("removed %s from %s", args[0], *file)
		})
	})
	return cmd
}

// tokenFileFlag is the file of a command that needs one.
func tokenFileFlag(cmd *cobra.Command) *string {
	return cmd.Flags().String("file", os.Getenv("FLOWFABRIC_API_TOKENS_FILE"),
		"`file` of tokens (default $FLOWFABRIC_API_TOKENS_FILE)")
}
