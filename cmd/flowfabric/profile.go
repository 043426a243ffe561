package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/spf13/cobra"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/valid"
)

// profile is a deployment under a name: where it is, the token for it, and the namespace.
type profile struct {
	URL       string `json:"url"`
	Token     string `json:"token,omitempty"`
	TokenFile string `json:"token_file,omitempty"`
	Namespace string `json:"namespace,omitempty"`
}

// profiles is the file of them.
type profiles struct {
	Use string             `json:"use,omitempty"` // the one that is meant when nothing else is said
	All map[string]profile `json:"profiles"`
}

// profilesFile is where the profiles of this user are.
func profilesFile() (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("profiles: %w", err)
	}
	return filepath.Join(dir, "flowfabric", "profiles.json"), nil
}

// readProfiles reads the file, which may be missing. One that others can read must hold no secret.
func readProfiles(file string) (profiles, error) {
	p := profiles{All: map[string]profile{}}
	text, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return p, nil
	}
	if err != nil {
		return p, fmt.Errorf("profiles: %w", err)
	}
	if err := jsonv2.Unmarshal(text, &p, jsonv2.RejectUnknownMembers(true)); err != nil {
		return p, usage("%s: want profiles as 'flowfabric profile set' writes them: %v", file, err)
	}
	info, err := os.Stat(file)
	if err != nil {
		return p, fmt.Errorf("profiles: %w", err)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 && p.secret() && runtime.GOOS != "windows" {
		return p, usage("%s holds a token or a password, and others may read it (mode %04o): chmod 600 %s", file, mode,
			file)
	}
	return p, nil
}

// secret tells whether a profile has something that others must not read.
func (p profiles) secret() bool {
	for _, x := range p.All {
		if x.Token != "" || x.password() {
			return true
		}
	}
	return false
}

func (x profile) password() bool {
	at, err := url.Parse(x.URL)
	if err != nil {
		return true // who knows what is in it
	}
	_, has := at.User.Password()
	return has
}

// named is a profile of the file.
func (p profiles) named(name, file string) (profile, error) {
	x, ok := p.All[name]
	if !ok {
		names := strings.Join(slices.Sorted(maps.Keys(p.All)), ", ")
		return x, usage("no profile is called %q; %s has: %s", name, file, cmp.Or(names, "none"))
	}
	return x, nil
}

// changeProfiles changes the file, which is made with mode 0600 if it does not exist.
func changeProfiles(ctx context.Context, change func(p *profiles, file string) error) error {
	file, err := profilesFile()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return fmt.Errorf("profiles: %w", err)
	}
	return locked(ctx, file, func() error {
		p, err := readProfiles(file)
		if err == nil {
			err = change(&p, file)
		}
		if err != nil {
			return err
		}
		text, err := json.MarshalIndent(p, "", "  ")
		if err != nil {
			return err
		}
		if p.secret() {
			if err := os.Chmod(file, 0o600); err != nil && !errors.Is(err, os.ErrNotExist) {
				return fmt.Errorf("profiles: %w", err)
			}
		}
		return replaceFile(file, append(text, '\n'))
	})
}

// choose finds the profile that a command line means. What is said on it comes first: --url, then --profile, then
// FLOWFABRIC_URL, FLOWFABRIC_PROFILE, and the profile in use. A profile counts as a whole: its token goes to its own
// URL alone.
func (a *app) choose(cmd *cobra.Command) error {
	name := a.profile
	switch {
	case name != "" && a.url != "":
		return usage("--profile and --url exclude each other")
	case name == "" && (a.url != "" || os.Getenv("FLOWFABRIC_URL") != "" || local(cmd)):
		return nil
	case name == "":
		name = os.Getenv("FLOWFABRIC_PROFILE")
	}
	file, err := profilesFile()
	if err != nil && name == "" {
		return nil // no home, no profiles
	}
	if err != nil {
		return &commandError{err, nil}
	}
	all, err := readProfiles(file)
	if err != nil {
		return &commandError{err, nil}
	}
	if name == "" {
		name = all.Use
	}
	if name == "" {
		return nil
	}
	if a.chosen, err = all.named(name, file); err != nil {
		return err
	}
	if path := a.chosen.TokenFile; path != "" {
		text, err := os.ReadFile(path)
		if err != nil {
			return &commandError{fmt.Errorf("token of profile %s: %w", name, err), nil}
		}
		a.chosen.Token = strings.TrimSpace(string(text))
	}
	if flags := cmd.Root().PersistentFlags(); a.chosen.Namespace != "" && !flags.Changed("namespace") {
		a.byProfile = true
		return flags.Set("namespace", a.chosen.Namespace)
	}
	return nil
}

// local tells whether a command is about this machine, and takes no profile that is not named.
func local(cmd *cobra.Command) bool {
	for cmd.HasParent() && cmd.Parent().HasParent() {
		cmd = cmd.Parent()
	}
	return cmd.GroupID == groupLocal || cmd.GroupID == ""
}

func profileCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "profile",
		Short: "Name deployments: URL, token and namespace",
		Long: `profile keeps deployments under names, in the file flowfabric/profiles.json of the user's
configuration folder, with mode 0600. A command takes --url first, then --profile, FLOWFABRIC_URL,
FLOWFABRIC_PROFILE, and the profile in use. A profile counts as a whole: its token is sent to its URL and
nowhere else. Without a token in it FLOWFABRIC_TOKEN is sent. Commands about this machine take only a profile
that --profile names. A file that holds a token or a password is refused while others can read it. No
command prints a token.`,
	}
	list := profileListCommand(a)
	cmd.AddCommand(list, profileSetCommand(a), profileUseCommand(a), profileRemoveCommand(a))
	listsAlone(cmd, list)
	return cmd
}

// listedProfile is a profile without its secrets.
type listedProfile struct {
	Name      string `json:"name"`
	URL       string `json:"url"`
	Namespace string `json:"namespace,omitempty"`
	Token     string `json:"token,omitempty"` // where it is
	Used      bool   `json:"used"`
}

func profileListCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "ls", Short: "List profiles",
		Long:    "ls lists the profiles of this user. It shows no tokens and no passwords.",
		Example: "  flowfabric profile ls",
		Args:    cobra.NoArgs,
		RunE: a.once(func(context.Context, []string) error {
			file, err := profilesFile()
			if err != nil {
				return err
			}
			all, err := readProfiles(file)
			if err != nil {
				return err
			}
			list, rows := []listedProfile{}, [][]any{}
			for _, name := range slices.Sorted(maps.Keys(all.All)) {
				x := all.All[name]
				l := listedProfile{name, redact(x.URL), x.Namespace, x.TokenFile, name == all.Use}
				if x.Token != "" {
					l.Token = "in the profile"
				}
				used := ""
				if l.Used {
					used = "in use"
				}
				list, rows = append(list, l), append(rows, []any{name, l.URL, l.Namespace, l.Token, used})
			}
			return a.show(list, func(p *page) {
				p.table([]string{"NAME", "URL", "NAMESPACE", "TOKEN", ""}, rows)
			})
		}),
	}
}

func profileSetCommand(a *app) *cobra.Command {
	var token, tokenFile string
	cmd := &cobra.Command{
		Use: "set NAME", Short: "Make or change a profile",
		Long: `set makes a profile of --url, --namespace and a token, or changes what is named and keeps
the others. The token is
read from stdin or a file, never from the command line, which others can see. --token-file names a file that
is read at every use instead. An empty --token-file takes the token away.`,
		Example: `  flowfabric profile set prod --url https://flow.example.com --namespace shop --token - < token.txt
  flowfabric profile set local --url redis://127.0.0.1:7700`,
		Args: exactly("NAME"),
	}
	cmd.Flags().StringVar(&token, "token", "", "`-` reads the token from stdin, @file from a file")
	cmd.Flags().StringVar(&tokenFile, "token-file", "", "`file` with the token, read at every use")
	cmd.MarkFlagsMutuallyExclusive("token", "token-file")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		said := cmd.Flags().Changed
		return a.once(func(ctx context.Context, args []string) error {
			name := args[0]
			if err := valid.Name("NAME", name); err != nil {
				return usage("%v", err)
			}
			if said("token") && token != "-" && !strings.HasPrefix(token, "@") {
				return usage("--token: want - or @file, since others can see a command line")
			}
			secret, err := a.secret("--token", token)
			if err != nil {
				return err
			}
			if said("token") && secret == "" {
				return usage("--token: it is empty")
			}
			err = changeProfiles(ctx, func(p *profiles, _ string) error {
				x := p.All[name]
				if a.url != "" {
					x.URL = a.url
				}
				if said("namespace") {
					x.Namespace = a.namespace
				}
				if said("token") {
					x.Token, x.TokenFile = secret, ""
				}
				if said("token-file") {
					x.Token, x.TokenFile = "", tokenFile
					if tokenFile != "" {
						x.TokenFile, err = filepath.Abs(tokenFile)
					}
				}
				switch {
				case err != nil:
					return err
				case x.URL == "":
					return usage("profile %s has no URL yet: set --url", name)
				case (x.Token != "" || x.TokenFile != "") && !served(x.URL):
					return usage("a token goes with https:// of a process that serves; " +
						"the password of a store is in its URL")
				}
				p.All[name] = x
				return nil
			})
			return a.changedProfile(name, "set", err)
		})(cmd, args)
	}
	return cmd
}

func profileUseCommand(a *app) *cobra.Command {
	var nothing bool
	cmd := &cobra.Command{
		Use: "use [NAME]", Short: "Use a profile when nothing else is named",
		Long: `use makes a profile the one that commands take when neither flags nor environment name another place.
--none uses none.`,
		Example: "  flowfabric profile use prod\n  flowfabric profile use --none",
		Args:    between(0, "NAME"),
	}
	cmd.Flags().BoolVar(&nothing, "none", false, "use no profile")
	cmd.RunE = a.once(func(ctx context.Context, args []string) error {
		if nothing == (len(args) == 1) {
			return usage("use: name a profile, or use --none")
		}
		name := strings.Join(args, "")
		err := changeProfiles(ctx, func(p *profiles, file string) error {
			p.Use = name
			if nothing {
				return nil
			}
			_, err := p.named(name, file)
			return err
		})
		return a.changedProfile(name, map[bool]string{false: "in use", true: "no profile is in use"}[nothing], err)
	})
	return cmd
}

func profileRemoveCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "rm NAME", Short: "Forget a profile",
		Long:    "rm forgets a profile with its token. A token file stays.",
		Example: "  flowfabric profile rm prod",
		Args:    exactly("NAME"),
		RunE: a.once(func(ctx context.Context, args []string) error {
			err := changeProfiles(ctx, func(p *profiles, file string) error {
				if _, ok := p.All[args[0]]; !ok {
					return fmt.Errorf("profile %q of %s: %w", args[0], file, flowfabric.ErrNotFound)
				}
				delete(p.All, args[0])
				if p.Use == args[0] {
					p.Use = ""
				}
				return nil
			})
			return a.changedProfile(args[0], "removed", err)
		}),
	}
}

// changedProfile says what was done to a profile.
func (a *app) changedProfile(name, done string, err error) error {
	if err != nil {
		return err
	}
	return a.show(changed{Name: name, Done: done}, func(p *page) { p.say("%s", join(" ", name, done)) })
}
