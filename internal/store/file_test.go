package store

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric-go/internal/must"
)

func TestInspectShowsWhatIsAroundDamage(t *testing.T) {
	all, _, ends := written(t)
	path := filepath.Join(folderOf(t, t.TempDir(), all), "log-0.resp")
	inspect := func(path string, offset int64) string {
		var out bytes.Buffer
		err := Inspect(&out, path, offset)
		if errors.Is(err, ErrDamaged) != strings.Contains(strings.ToLower(out.String()), "damage") {
			t.Errorf("%s at %d: %v of %s", path, offset, err, out.String())
		}
		return out.String()
	}
	whole := inspect(path, ends[1]+3)
	for _, want := range []string{"log-0.resp: log 0\n", `["SET" "a" "1"]`, `["HSET" "h" "f" "1"]`} {
		if !strings.Contains(whole, want) || strings.Contains(whole, "DAMAGE") {
			t.Errorf("of a whole file: %s, want %s", whole, want)
		}
	}
	damaged := all["log-0.resp"]
	damaged[ends[1]+40] ^= 1
	must.No(t, os.WriteFile(path, damaged, fileMode))
	_, err := Open(filepath.Dir(path), Options{})
	if out := inspect(path, ends[1]); !strings.Contains(out, "DAMAGE at offset ") ||
		!strings.Contains(out, "the next whole record begins at offset ") || err == nil {
		t.Errorf("of a damaged file: %s, opened: %v", out, err)
	}
	if out := inspect(filepath.Dir(path), 0); !strings.Contains(out, "log-0.resp: damaged at offset ") {
		t.Errorf("of a folder: %s", out)
	}
	if out := inspect(path, 0); !strings.Contains(out, `["SET" "a" "1"]`) {
		t.Errorf("at the beginning: %s", out)
	}
	must.No(t, os.WriteFile(path, damaged[:ends[1]+60], fileMode)) // no whole record follows
	if out := inspect(filepath.Dir(path), 0); !strings.Contains(out, "log-0.resp: whole up to offset ") {
		t.Errorf("of a folder with a torn end: %s", out)
	}
}

// FuzzFiles reads files of any bytes: what is read is in the file, and what is not is damage.
func FuzzFiles(f *testing.F) {
	head := header{kind: logged, salt: "0123456789abcdef", before: noFile}
	one, _ := appendRecord([]byte(head.String()), head.seed(),
		effects{text: AppendCommand(AppendCommand(nil, "SET", "a", "1"), "DEL", "b"), count: 2})
	f.Add(one)
	f.Add(append(one[:len(one):len(one)], one...))
	f.Add([]byte(header{kind: base, number: 1, salt: head.salt, before: noFile}.String() + "#end 0\r\n"))
	f.Add([]byte(magic + "2 x\r\n"))
	path := filepath.Join(f.TempDir(), "file")
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := readRecords(bytes.NewReader(data))
		for err == nil {
			var commands [][]string
			if commands, err = r.next(); err == nil {
				e := effects{}
				for _, c := range commands {
					e.add(c)
				}
				again, _ := appendRecord(nil, r.head.seed(), e)
				if text := data[r.at:r.Offset()]; len(commands) > 1 && !bytes.Equal(text, again) {
					t.Fatalf("%q was read as %q", text, again)
				}
			}
		}
		d := (*damage)(nil)
		if !errors.As(err, &d) {
			if errors.Is(err, io.EOF) && r.at != int64(len(data)) {
				t.Fatalf("it ends at %d of %d", r.at, len(data))
			}
			return
		}
		must.No(t, os.WriteFile(path, data, fileMode))
		file, err := os.Open(path)
		must.No(t, err)
		defer file.Close()
		if good, err := goodBehind(file, r.head, d.offset); err != nil || good > int64(len(data)) {
			t.Fatalf("%d, %v", good, err)
		}
	})
}
