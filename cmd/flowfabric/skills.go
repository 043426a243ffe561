package main

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
)

// skill teaches coding agents to use the library. Its version is that of the command that installs it.
//
//go:embed skills/flowfabric/SKILL.md
var skill []byte

const skillName = "flowfabric" // of the skill, and so of its folder

func skillsCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "skills",
		Short: "Install the skill from which coding agents learn the library",
		Long:  "skills installs the skill from which coding agents learn to write code with the library.",
	}
	cmd.AddCommand(&cobra.Command{
		Use:   "install [DIR]",
		Short: "Write the skill into a folder of skills",
		Long: `install writes flowfabric/SKILL.md into DIR, the folder in which an agent looks for skills (default
.claude/skills). The skill has the version of this command. An older one there is replaced; a file that is
no skill of ours is left as it is, which is an error.`,
		Example: `  flowfabric skills install
  flowfabric skills install .agents/skills`,
		Args: cobra.MaximumNArgs(1),
		RunE: a.once(func(_ context.Context, args []string) error {
			dir := filepath.Join(".claude", "skills")
			if len(args) > 0 {
				dir = args[0]
			}
			written, err := installSkill(dir)
			if err != nil {
				return err
			}
			return a.show(written, func(p *page) { p.say("%s (version %s)", written.File, written.Version) })
		}),
	})
	return cmd
}

// installedSkill is what skills install prints with --json.
type installedSkill struct {
	File    string `json:"file"`
	Version string `json:"version"`
}

func installSkill(dir string) (w installedSkill, err error) {
	if dir == "" {
		return w, usage("DIR is empty, want a folder")
	}
	w = installedSkill{filepath.Join(dir, skillName, "SKILL.md"), version()}
	before, err := os.ReadFile(w.File)
	switch {
	case err == nil && !bytes.HasPrefix(before, []byte("---\nname: "+skillName+"\n")):
		return w, fmt.Errorf("install the skill: %s is not the skill %s; move it away, or name another DIR", w.File,
			skillName)
	case err != nil && !os.IsNotExist(err):
		return w, fmt.Errorf("install the skill: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(w.File), 0o755); err != nil {
		return w, fmt.Errorf("install the skill: %w", err)
	}
	text := bytes.Replace(skill, []byte("version: VERSION"), fmt.Appendf(nil, "version: %q", w.Version), 1)
	if err := os.WriteFile(w.File, text, fs.FileMode(0o644)); err != nil {
		return w, fmt.Errorf("install the skill: %w", err)
	}
	return w, nil
}
