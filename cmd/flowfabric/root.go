package main

import (
	"cmp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

// Groups of commands in the help.
const (
	groupWork    = "work"
	groupOperate = "operate"
	groupHealth  = "health"
	groupLocal   = "local"
)

func rootCommand(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "flowfabric",
		Short: "Durable execution on Valkey and Redis",
		Long: `FlowFabric runs durable executions on Valkey, on Redis, or in a folder: handlers that survive
crashes, stream their output, and wait for days without holding a process. This command submits
work, follows it, explains why it does not move, and repairs it.

'flowfabric dev --data ./data' and 'flowfabric serve --data ./data' are a store in a folder, with
nothing else to install. Name the store with --url or FLOWFABRIC_URL. With --json every command prints one JSON
value, and those that go on (tail, top) one value per line; errors are JSON on stderr.

` + exitHelp(),
		Example: `  flowfabric dev --data ./data                     # a store in a folder, in one terminal
  export FLOWFABRIC_URL=redis://127.0.0.1:7700     # what it printed, in another
  flowfabric submit write-article --input '{"Topic":"tides"}' --tail
  flowfabric doctor                                # is the deployment healthy?`,
		SilenceErrors:     true,
		SilenceUsage:      true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return a.choose(cmd) },
	}
	flags := root.PersistentFlags()
	flags.StringVar(&a.url, "url", "",
		"`address` of the store: redis://, rediss://, valkey://, valkeys://, redis+sentinel:// or unix://; or https:// of a process that serves it, with its token in FLOWFABRIC_TOKEN (default $FLOWFABRIC_URL)")
	flags.StringVar(&a.profile, "profile", "",
		"`name` of a deployment, see flowfabric profile (default $FLOWFABRIC_PROFILE, or the profile in use)")
	flags.StringVar(&a.namespace, "namespace", "default", "`namespace` of executions and lanes")
	flags.DurationVar(&a.timeout, "timeout", 30*time.Second,
		"how long the command may take; those that wait (tail, top, submit --wait) have no limit unless this is set")
	flags.StringVar(&a.reason, "reason", "",
		"reason as `text`, for the audit trail and histories, which keep 1 KiB; hold, gate adjust and raise take 256")
	flags.StringVar(&a.by, "by", "",
		"your `name`, for histories and answers, at most 64 bytes (default $FLOWFABRIC_BY, or the system's user)")
	flags.BoolVar(&a.json, "json", false, "print JSON")
	flags.BoolVar(&a.plain, "no-color", false, "no colours; also with NO_COLOR set, or when output is not a terminal")
	root.AddGroup(
		&cobra.Group{ID: groupWork, Title: "Executions:"},
		&cobra.Group{ID: groupOperate, Title: "Flows, lanes, workers, schedules, gates:"},
		&cobra.Group{ID: groupHealth, Title: "Health and maintenance:"},
		&cobra.Group{ID: groupLocal, Title: "This machine:"},
	)
	keys := a.group("keys", "List and rotate the keys that sign tokens", `keys shows and rotates the keys that
sign the tokens of waitpoints. Secrets never travel: the store
knows fingerprints, and this command reads the keys of FLOWFABRIC_TOKEN_KEYS.`, keyVerbs)
	for _, group := range []struct {
		id       string
		commands []*cobra.Command
	}{
		{groupWork, append(a.commands(slices.Concat(
			[]verb{submitVerb, publishVerb, lsVerb, failuresVerb, showVerb, tailVerb, logsVerb},
			executionVerbs, answerVerbs)),
			bulkCommand(a))},
		{groupOperate, []*cobra.Command{
			a.group("flow", "List, show, draw, cancel, replay and seal flows", `flow manages flows: graphs of
executions in which each waits for those that it depends on. Members of a flow are executions: show, why,
history and tail work for them as for any other`, flowVerbs),
			queuesVerb.command(a), applyVerb.command(a), settingsVerb.command(a),
			a.group("lane",
				"List, pause, resume, drain and disable lanes, and set their retention and weights",
				"", laneVerbs),
			a.group("workers", "List worker processes, and declare one dead", "", workerVerbs),
			a.group("index", "Show and choose the tags that find executions", "", indexVerbs), timesVerb.command(a),
			versionsVerb.command(a), schemaVerb.command(a), typesCommand(a),
			a.group("schedules", "List, put, edit, pause, resume and remove schedules, and show when they are due", "",
				scheduleVerbs),
			a.group("triggers", "List, put and remove triggers, which start work for published events", "",
				triggerVerbs),
			a.group("gate", "Create, change, show, attach and remove gates, and correct their usage",
				`gate manages gates: how much work may use in a period, how often it may start, and how much of it
may run at once. Work that names a gate (submit --gate), or was created in a scope that the gate is
attached to, waits while it has no room`, gateVerbs)}},
		{groupHealth, append([]*cobra.Command{topCommand(a), doctorCommand(a), healthCommand(a),
			checkCommand(a), repairCommand(a),
			trailVerb.command(a), loadCommand(a), keys}, a.commands(freezeVerbs)...)},
		{groupLocal, []*cobra.Command{devCommand(a), serveCommand(a), backupCommand(a), exportCommand(a),
			importCommand(a), storeCommand(a), mcpCommand(a), profileCommand(a), skillsCommand(a), tokenCommand(a),
			versionCommand(a)}},
	} {
		for _, c := range group.commands {
			c.GroupID = group.id
			root.AddCommand(c)
		}
	}
	addForms(root)
	reflow(root)
	root.SetHelpCommandGroupID(groupLocal)
	root.SetCompletionCommandGroupID(groupLocal)
	return root
}

// forms are the words that mean the same command, wherever there is one of them.
var forms = [][]string{
	{"list", "ls"}, {"remove", "rm"}, {"update", "set"}, {"show", "get"},
	{"flow", "flows"}, {"lane", "lanes"}, {"worker", "workers"}, {"schedule", "schedules"},
	{"gate", "gates"}, {"key", "keys"}, {"queue", "queues"}, {"token", "tokens"},
}

// addForms makes all commands below one understand every form of their names.
func addForms(cmd *cobra.Command) {
	for _, c := range cmd.Commands() {
		for _, words := range forms {
			if !slices.Contains(words, c.Name()) {
				continue
			}
			for _, word := range words {
				if word != c.Name() && !slices.Contains(c.Aliases, word) {
					c.Aliases = append(c.Aliases, word)
				}
			}
		}
		addForms(c)
	}
}

// helpWidth is how wide the text of the help is.
const helpWidth = 100

// reflow breaks the lines of the help of all commands at the same width, whatever they are in the source. Lines that
// stand in stay as they are.
func reflow(cmd *cobra.Command) {
	var out []string
	begins := true // a paragraph
	for line := range strings.SplitSeq(cmd.Long, "\n") {
		if line == "" || strings.HasPrefix(line, " ") {
			out, begins = append(out, line), true
			continue
		}
		for word := range strings.FieldsSeq(line) {
			last := len(out) - 1
			if begins || utf8.RuneCountInString(out[last])+1+utf8.RuneCountInString(word) > helpWidth {
				out, begins = append(out, word), false
			} else {
				out[last] += " " + word
			}
		}
	}
	cmd.Long = strings.Join(out, "\n")
	for _, c := range cmd.Commands() {
		reflow(c)
	}
}

// listsAlone makes a command that groups others list when nothing else is said, and take the flags of list.
func listsAlone(group, list *cobra.Command) {
	group.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		var names []string
		for _, c := range cmd.Commands() {
			if c.IsAvailableCommand() {
				names = append(names, c.Name())
			}
		}
		return usage("%s has no command %q; it has: %s", cmd.Name(), args[0], strings.Join(names, ", "))
	}
	group.RunE = list.RunE
	group.Flags().AddFlagSet(list.Flags())
	group.Long = strings.TrimRight(cmp.Or(group.Long, group.Short),
		".") + ". Alone it does what " + list.Name() + " does."
}
