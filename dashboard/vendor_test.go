package dashboard

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric-go/internal/must"
)

// vendored is what assets/vendor/vendor.json says of the files that are not ours: where each comes from, and what is
// in it.
type vendored struct {
	File    string `json:"file"`
	Package string `json:"package"` // of npm
	Version string `json:"version"`
	Path    string `json:"path"` // in the package
	Licence string `json:"licence"`
	Text    string `json:"text"` // file of the licence's text
	SHA256  string `json:"sha256"`
}

// The files of others are as they were published, with version, licence and checksum.
func TestVendoredFiles(t *testing.T) {
	const folder = "assets/vendor"
	text, err := files.ReadFile(folder + "/vendor.json")
	must.No(t, err)
	var list []vendored
	must.No(t, json.Unmarshal(text, &list))
	known := []string{"vendor.json"}
	for _, v := range list {
		body, err := files.ReadFile(path.Join(folder, v.File))
		if err != nil {
			t.Error(err)
			continue
		}
		if sum := sha256.Sum256(body); hex.EncodeToString(sum[:]) != v.SHA256 {
			t.Errorf("%s is not %s %s: sha256 is %x", v.File, v.Package, v.Version, sum)
		}
		if v.Package == "" || v.Version == "" || v.Path == "" || v.Licence != "MIT" && v.Licence != "Apache-2.0" {
			t.Errorf("%+v", v)
		}
		for name := range strings.FieldsSeq(v.Text) {
			if licence, err := files.ReadFile(path.Join(folder, name)); err != nil || len(licence) < 500 {
				t.Errorf("the licence of %s: %d bytes, %v", v.File, len(licence), err)
			}
			known = append(known, name)
		}
		known = append(known, v.File)
	}
	entries, err := fs.ReadDir(files, folder)
	must.No(t, err)
	for _, e := range entries {
		if !slices.Contains(known, e.Name()) {
			t.Errorf("%s is in no entry of vendor.json", e.Name())
		}
	}
}

// What is ours refers to no other host, runs no text as code and puts no text in as markup.
func TestOwnFilesKeepToThePolicy(t *testing.T) {
	err := fs.WalkDir(files, "assets", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasPrefix(name, "assets/vendor/") {
			return err
		}
		text, err := files.ReadFile(name)
		if err != nil {
			return err
		}
		for _, bad := range []string{"http://", "https://", "innerHTML", "outerHTML", "insertAdjacentHTML",
			"dangerouslySetInnerHTML", "document.write", "eval(", "new Function", " onclick=", " style=\"", "<script>",
			"@import"} {
			if i := strings.Index(string(text), bad); i >= 0 && !(bad == "http://" && strings.HasSuffix(name, ".svg")) {
				t.Errorf("%s has %q: …%.80s", name, bad, text[max(0, i-20):])
			}
		}
		return nil
	})
	must.No(t, err)
	if _, err := os.Stat("assets/package.json"); err == nil {
		t.Error("there is something to build")
	}
}

var (
	imports = regexp.MustCompile(`(?m)^import \{ ([^}]*) \} from "([^"]*)"`)
	exports = regexp.MustCompile(`(?m)^export (?:async )?(?:function|const|class) (\w+)`)
)

// Nothing is built, so nobody else says that a name that is imported does not exist, or is not used.
func TestImports(t *testing.T) {
	exported := func(name string) (all []string) {
		text, err := files.ReadFile(name)
		if err != nil {
			t.Error(err)
		}
		for _, m := range exports.FindAllStringSubmatch(string(text), -1) {
			all = append(all, m[1])
		}
		return all
	}
	err := fs.WalkDir(files, "assets", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || path.Ext(name) != ".js" || strings.HasPrefix(name, "assets/vendor/") {
			return err
		}
		text, err := files.ReadFile(name)
		if err != nil {
			return err
		}
		for _, m := range imports.FindAllStringSubmatch(string(text), -1) {
			from := path.Join(path.Dir(name), m[2])
			known := exported(from)
			for word := range strings.SplitSeq(m[1], ", ") {
				if !strings.HasPrefix(from, "assets/vendor/") && !slices.Contains(known, word) {
					t.Errorf("%s imports %s, which %s does not export", name, word, from)
				}
				if n := len(regexp.MustCompile(`\b`+word+`\b`).FindAll(text, -1)); n < 2 {
					t.Errorf("%s imports %s and does not use it", name, word)
				}
			}
		}
		return nil
	})
	must.No(t, err)
}
