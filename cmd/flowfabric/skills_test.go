package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric-go/internal/must"
)

var frontMatter = regexp.MustCompile(`^---\nname: flowfabric\ndescription: (.+)\nmetadata:\n  version: "(.+)"\n---\n`)

// install writes the skill with the version of the command, replaces an older one, and no other file.
func TestSkillsInstall(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "skills")
	file := filepath.Join(dir, "flowfabric", "SKILL.md")
	install := func() (code int, out, problems string) {
		var said, wrong bytes.Buffer
		code = run(t.Context(), []string{"skills", "install", dir}, strings.NewReader(""), &said, &wrong)
		return code, said.String(), wrong.String()
	}
	for range 2 {
		if code, out, problems := install(); code != 0 || !strings.HasPrefix(out, file) {
			t.Fatalf("exit %d: %s%s", code, out, problems)
		}
		text, err := os.ReadFile(file)
		must.No(t, err)
		front := frontMatter.FindSubmatch(text)
		if front == nil || len(front[1]) > 1024 || string(front[2]) != version() {
			t.Errorf("front matter: %.600s", text)
		}
		must.No(t, os.WriteFile(file, []byte("---\nname: flowfabric\nan older one"), 0o600))
	}
	must.No(t, os.WriteFile(file, []byte("mine"), 0o600))
	if code, _, problems := install(); code == 0 || !strings.Contains(problems, "is not the skill flowfabric") {
		t.Errorf("exit %d: %s", code, problems)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "mine" {
		t.Errorf("%s, %v", text, err)
	}
}

// The skill is short enough to be read as a whole.
func TestTheSkillIsShort(t *testing.T) {
	if lines := bytes.Count(skill, []byte("\n")); lines > 350 || len(skill) > 16<<10 {
		t.Errorf("%d lines, %d bytes", lines, len(skill))
	}
}
