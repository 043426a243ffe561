package main

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric-go/internal/must"
)

// A profile says where a command goes, with which token and namespace; what is said on the command line wins, and its
// token goes nowhere else. No output has the token.
func TestProfiles(t *testing.T) {
	home := t.TempDir()
	for _, name := range []string{"XDG_CONFIG_HOME", "HOME"} {
		t.Setenv(name, home)
	}
	for _, name := range []string{"FLOWFABRIC_URL", "FLOWFABRIC_TOKEN", "FLOWFABRIC_PROFILE"} {
		t.Setenv(name, "")
	}
	seen := "" // the token and the namespace of the last request
	serve := func(name string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			seen = name + " " + q.Header.Get("Authorization") + " " + q.URL.Query().Get("namespace")
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"items":[]}`))
		}))
		t.Cleanup(s.Close)
		return s.URL
	}
	a, b := serve("a"), serve("b")
	do := func(want int, stdin, line string) string {
		t.Helper()
		var out bytes.Buffer
		code := run(context.Background(), words(t.Fatalf, line), strings.NewReader(stdin), &out, &out)
		if code != want || strings.Contains(out.String(), "s3cret") {
			t.Errorf("%s: exit %d, want %d, and no token: %s", line, code, want, &out)
		}
		return out.String()
	}
	asked := func(want, line string) {
		t.Helper()
		seen = ""
		if do(exitOK, "", line); seen != want {
			t.Errorf("%s: asked %q, want %q", line, seen, want)
		}
	}
	file, err := profilesFile()
	must.No(t, err)

	do(exitUsage, "", "lane list")
	do(exitUsage, "", "profile set prod --namespace shop")
	do(exitUsage, "", "profile set prod --url "+a+" --token s3cret")
	do(exitUsage, "s3cret", "profile set prod --url redis://localhost --token -")
	do(exitOK, "s3cret\n", "profile set prod --url "+a+" --namespace shop --token -")
	must.No(t, os.WriteFile(filepath.Join(home, "token"), []byte("file-s3cret\n"), 0o600))
	do(exitOK, "", "profile set test --url "+b+" --token-file "+filepath.Join(home, "token"))
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%s: %v, %v", file, info.Mode(), err)
	}
	if list := do(exitOK, "", "profile"); !strings.Contains(list, "in the profile") || !strings.Contains(list, a) {
		t.Errorf("the list is %s", list)
	}

	asked("a Bearer s3cret shop", "lane list --profile prod")
	asked("a Bearer s3cret other", "lane list --profile prod --namespace other")
	asked("a Bearer s3cret *", "lane list --profile prod --all-namespaces")
	asked("b Bearer file-s3cret ", "lane list --profile test")
	do(exitUsage, "", "lane list --profile nobody")
	do(exitUsage, "", "lane list --profile prod --url "+b)
	do(exitOK, "", "profile use prod")
	asked("a Bearer s3cret shop", "lane list")
	asked("b  ", "lane list --url "+b)
	t.Setenv("FLOWFABRIC_PROFILE", "test")
	asked("b Bearer file-s3cret ", "lane list")
	t.Setenv("FLOWFABRIC_URL", b)
	asked("b  ", "lane list")
	asked("a Bearer s3cret shop", "lane list --profile prod")
	t.Setenv("FLOWFABRIC_URL", "")
	t.Setenv("FLOWFABRIC_PROFILE", "")

	must.No(t, os.Chmod(file, 0o644))
	for _, line := range []string{"lane list", "profile ls", "profile rm test"} {
		if said := do(exitUsage, "", line); !strings.Contains(said, "chmod 600") {
			t.Errorf("%s says of a file that others can read: %s", line, said)
		}
	}
	must.No(t, os.Chmod(file, 0o600))
	do(exitOK, "", "profile use --none")
	do(exitUsage, "", "lane list")
	do(exitOK, "", "profile rm prod")
	do(exitNotFound, "", "profile rm prod")
	do(exitUsage, "", "profile use prod")
	text, err := os.ReadFile(file)
	if must.No(t, err); strings.Contains(string(text), "s3cret") {
		t.Errorf("the removed token is still there: %s", text)
	}
}
