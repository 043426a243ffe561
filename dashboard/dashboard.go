package dashboard

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"

	flowfabric "github.com/flowfabric/flowfabric-go"
)

//go:embed assets
var files embed.FS

// policy is the content security policy of the page.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"

// Config holds the dependencies of the page.
type Config struct {
	// API is an *httpapi.Handler, or a handler around one; required. It gets every request that is not for a file of
	// the page, with the path as it came, so paths that begin with /v1/ must be its own.
	API http.Handler
	// TraceURL is where somebody sees the trace of an execution: an http or https address of at most 2,048 bytes with
	// {trace} in the place of its id of 32 hexadecimal digits, such as https://traces.example/trace/{trace}. Default:
	// none, and pages have no such link.
	TraceURL string
	// SignInURL is where the page sends somebody who has no token, or whose token is refused: an http or https
	// address, or a path that begins with one slash, of at most 2,048 bytes. {return} in it stands for the address of
	// the page. The page behind it sends them back with a cookie that Authorize of the API knows, or with
	// #token=SECRET behind that address. Default: the page has a form for the token.
	SignInURL string
	// Title is what the page is called, 1..40 bytes in one line. Default FlowFabric.
	Title string
	// Colors are colours of the page by name: main, on-main, main-soft, paper, card, ink, dim, line and soft, and with
	// dark- before it the same in the dark. Each is #rgb or #rrggbb. Choose pairs that people can tell apart: ink on
	// card, on-main on main. Default: those of FlowFabric.
	Colors map[string]string
}

// page serves its files and lets the API answer the rest.
type page struct {
	api   http.Handler
	files map[string]*file // by path
}

// file is one file of the page, ready to be sent.
type file struct {
	media, tag  string
	plain, gzip []byte // gzip is nil where it does not help
}

// New makes the page, which is safe for concurrent use. Errors wrap flowfabric.ErrConfig.
func New(cfg Config) (http.Handler, error) {
	if cfg.API == nil {
		return nil, fmt.Errorf("%w: dashboard: API is nil: make one with httpapi.New", flowfabric.ErrConfig)
	}
	h := &page{api: cfg.API, files: map[string]*file{}}
	head, err := cfg.head()
	if err != nil {
		return nil, err
	}
	if css := cfg.theme(); css != "" {
		if h.files[themePath], err = newFile(themePath, []byte(css)); err != nil {
			return nil, fmt.Errorf("dashboard: %w", err)
		}
	}
	err = fs.WalkDir(files, "assets", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := files.ReadFile(name)
		if err != nil {
			return err
		}
		if name == "assets/index.html" {
			text = bytes.Replace(text, []byte("</head>"), []byte(head+"</head>"), 1)
		}
		h.files["/"+name], err = newFile(name, text)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("dashboard: %w", err)
	}
	h.files["/"] = h.files["/assets/index.html"]
	delete(h.files, "/assets/index.html") // its links are relative to the root
	return h, nil
}

// medias are the types of the files, whatever the machine thinks.
var medias = map[string]string{
	".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
	".svg": "image/svg+xml", ".txt": "text/plain; charset=utf-8", ".json": "application/json",
}

func newFile(name string, text []byte) (*file, error) {
	media := medias[path.Ext(name)]
	if media == "" {
		media = mime.TypeByExtension(path.Ext(name))
	}
	sum := sha256.Sum256(text)
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err = w.Write(text); err == nil {
		err = w.Close()
	}
	if err != nil {
		return nil, err
	}
	f := &file{media: media, tag: hex.EncodeToString(sum[:8]), plain: text}
	if packed.Len() < len(text) {
		f.gzip = packed.Bytes()
	}
	return f, nil
}

// ServeHTTP answers a file of the page, or lets the API answer.
func (h *page) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	f := h.files[q.URL.Path]
	switch {
	case f == nil && q.URL.Path == "": // under http.StripPrefix, without the slash that relative links need
		where := q.RequestURI // the path before the prefix was taken away
		if i := strings.IndexByte(where, '?'); i >= 0 {
			where = where[:i]
		}
		http.Redirect(w, q, where+"/", http.StatusMovedPermanently)
	case f == nil:
		h.api.ServeHTTP(w, q)
	case q.Method != http.MethodGet && q.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "want GET, HEAD", http.StatusMethodNotAllowed)
	default:
		f.serve(w, q)
	}
}

func (f *file) serve(w http.ResponseWriter, q *http.Request) {
	header, text, tag := w.Header(), f.plain, f.tag
	if f.gzip != nil && acceptsGzip(q) {
		text, tag = f.gzip, tag+"-gz"
		header.Set("Content-Encoding", "gzip")
	}
	header.Set("Content-Type", f.media)
	header.Set("Content-Security-Policy", policy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("X-Frame-Options", "DENY")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Cache-Control", "no-cache") // asked for again with every load, and mostly answered 304
	header.Add("Vary", "Accept-Encoding")
	tag = `"` + tag + `"`
	header.Set("ETag", tag)
	for known := range strings.SplitSeq(q.Header.Get("If-None-Match"), ",") {
		if strings.TrimPrefix(strings.TrimSpace(known), "W/") == tag {
			header.Del("Content-Encoding")
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	header.Set("Content-Length", strconv.Itoa(len(text)))
	if q.Method == http.MethodGet {
		_, _ = w.Write(text)
	}
}

func acceptsGzip(q *http.Request) bool {
	for coding := range strings.SplitSeq(q.Header.Get("Accept-Encoding"), ",") {
		name, weight, _ := strings.Cut(strings.TrimSpace(coding), ";")
		if name == "gzip" && strings.ReplaceAll(weight, " ", "") != "q=0" {
			return true
		}
	}
	return false
}
