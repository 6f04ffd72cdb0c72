package ui

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"slices"
	"strings"
)

//go:embed assets all:templates
var files embed.FS

// assetsPath is the path of the style sheet, the modules of JavaScript and the icons. A version, which
// changes with their content, follows.
const assetsPath = "/assets/"

// assets are the files that pages load. The style sheet is made of the files of assets/css in the order
// of their names.
type assets struct {
	version string // hash of all
	files   map[string]asset
}

// An asset is one file.
type asset struct {
	media  string
	plain  []byte
	packed []byte // by gzip
}

// mediaTypes of assets by extension.
var mediaTypes = map[string]string{
	".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml", ".png": "image/png",
}

// loadAssets reads the embedded files.
func loadAssets() (*assets, error) {
	a := &assets{files: map[string]asset{}}
	var style bytes.Buffer
	hash := sha256.New()
	err := fs.WalkDir(files, "assets", func(name string, d fs.DirEntry, err error) error { // in the order of names
		if err != nil || d.IsDir() {
			return err
		}
		data, err := files.ReadFile(name)
		if err != nil {
			return err
		}
		fmt.Fprintf(hash, "%s %d\n", name, len(data))
		hash.Write(data)
		if path.Dir(name) == "assets/css" {
			style.Write(data)
			return nil
		}
		return a.add(strings.TrimPrefix(name, "assets/"), data)
	})
	if err != nil {
		return nil, err
	}
	a.version = hex.EncodeToString(hash.Sum(nil)[:6])
	return a, a.add("style.css", style.Bytes())
}

func (a *assets) add(name string, data []byte) error {
	media, ok := mediaTypes[path.Ext(name)]
	if !ok {
		return fmt.Errorf("ui: the asset %s has no media type", name)
	}
	a.files[name] = asset{media, data, pack(data)}
	return nil
}

// path returns the path of an asset, which is another one when the assets have changed.
func (a *assets) path(name string) (string, error) {
	if _, ok := a.files[name]; !ok {
		return "", fmt.Errorf("ui: there is no asset %s", name)
	}
	return assetsPath + a.version + "/" + name, nil
}

// ServeHTTP sends an asset. Modules import each other by relative paths, so that each has the version in
// its path.
func (a *assets) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	version, name, _ := strings.Cut(r.PathValue("file"), "/")
	file, ok := a.files[name]
	if !ok || version != a.version {
		http.NotFound(w, r)
		return
	}
	h := w.Header()
	h.Set("Content-Type", file.media)
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
	h.Set("Vary", "Accept-Encoding")
	data := file.plain
	if acceptsGzip(r) {
		h.Set("Content-Encoding", "gzip")
		data = file.packed
	}
	_, _ = w.Write(data) // the client may be gone
}

// pack compresses data.
func pack(data []byte) []byte {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err == nil {
		_, err = z.Write(data)
	}
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		panic(err) // a buffer takes everything
	}
	return b.Bytes()
}

// minPacked is the least bytes of a page that is compressed.
const minPacked = 1 << 10

// encodeBody compresses a page if its client takes that, and sets the header.
func encodeBody(w http.ResponseWriter, r *http.Request, text []byte) []byte {
	if len(text) < minPacked || !acceptsGzip(r) {
		return text
	}
	w.Header().Set("Content-Encoding", "gzip")
	return pack(text)
}

// acceptsGzip reports whether a client takes bodies compressed by gzip.
func acceptsGzip(r *http.Request) bool {
	for part := range strings.SplitSeq(strings.Join(r.Header.Values("Accept-Encoding"), ","), ",") {
		coding, weight, _ := strings.Cut(strings.TrimSpace(part), ";")
		if strings.EqualFold(coding, "gzip") && !slices.Contains([]string{"q=0", "q=0.0", "q=0.00", "q=0.000"}, strings.ReplaceAll(weight, " ", "")) {
			return true
		}
	}
	return false
}
