package models

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
)

// A server is a web server with a model in the folder /m. It may misbehave.
type server struct {
	*httptest.Server
	good http.Handler

	mu       sync.Mutex
	requests []string // path and range of each request
	wicked   func(w http.ResponseWriter, r *http.Request, nth int) bool
	weights  int // number of requests for the weights
}

// newServer returns a server of the files. wicked, which may be nil, handles the requests for the
// weights, counted from 1. If it returns false, the server answers correctly.
func newServer(t *testing.T, files map[string][]byte, wicked func(w http.ResponseWriter, r *http.Request, nth int) bool) *server {
	s := &server{good: serve(files), wicked: wicked}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.requests = append(s.requests, strings.TrimPrefix(r.URL.Path, "/m/")+" "+r.Header.Get("Range"))
	nth := 0
	if strings.HasSuffix(r.URL.Path, weightsFile) {
		s.weights++
		nth = s.weights
	}
	s.mu.Unlock()
	if nth > 0 && s.wicked != nil && s.wicked(w, r, nth) {
		return
	}
	s.good.ServeHTTP(w, r)
}

// ranges returns the ranges of the requests for the weights.
func (s *server) ranges() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	for _, r := range s.requests {
		if rest, ok := strings.CutPrefix(r, weightsFile+" "); ok {
			all = append(all, rest)
		}
	}
	return all
}

// cut sends n bytes of a file and then breaks off.
func cut(w http.ResponseWriter, data []byte, n int) {
	sum := sha256.Sum256(data)
	w.Header().Set("ETag", `"`+hex.EncodeToString(sum[:4])+`"`)
	w.Header().Set("Content-Length", fmt.Sprint(len(data)))
	w.Write(data[:n])
	panic(http.ErrAbortHandler)
}

func TestPullURL(t *testing.T) {
	files := modelFiles(t)
	s := newServer(t, files, nil)
	f := newFolder(t)
	var last Progress
	m, err := f.Pull(t.Context(), PullRequest{What: s.URL + "/m", Name: "small", Progress: func(p Progress) { last = p }})
	if err != nil {
		t.Fatal(err)
	}
	n := int64(len(files[weightsFile]))
	if got := (Progress{File: weightsFile, Done: n, Total: n}); last != got {
		t.Errorf("the last progress is %+v, want %+v", last, got)
	}
	if m.Source != s.URL+"/m" || len(m.Files) != len(files) {
		t.Errorf("installed %+v", m)
	}
	entries, err := os.ReadDir(f.Path("small"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.Contains(e.Name(), ".part") {
			t.Errorf("%s was left in the model's folder", e.Name())
		}
	}
	if again, err := f.Pull(t.Context(), PullRequest{What: s.URL + "/m", Name: "small"}); err != nil || !cmp.Equal(again, m) || len(s.ranges()) != 1 {
		t.Errorf("pulled again: %+v, %v, with the requests %q", again, err, s.ranges())
	}
	if err := os.Truncate(filepath.Join(f.Path("small"), weightsFile), 10); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Pull(t.Context(), PullRequest{What: s.URL + "/m", Name: "small"}); err != nil {
		t.Errorf("pulled again where it is torn: %v", err)
	}
	if err := f.Verify(t.Context(), m); err != nil {
		t.Errorf("it was not mended: %v", err)
	}
}

// TestPullMirror pulls a known name from a mirror with the layout of Hugging Face, which redirects
// to the files.
func TestPullMirror(t *testing.T) {
	files := modelFiles(t)
	store := newServer(t, files, nil)
	sum := sha256.Sum256(files[weightsFile])
	linked := hex.EncodeToString(sum[:])
	mirror := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, ok := strings.CutPrefix(r.URL.Path, "/intfloat/e5-small-v2/resolve/main/")
		if !ok || files[name] == nil {
			http.Error(w, "Repository not found", http.StatusUnauthorized)
			return
		}
		if name == weightsFile {
			w.Header().Set("X-Linked-Etag", `"`+linked+`"`)
		}
		http.Redirect(w, r, store.URL+"/m/"+name, http.StatusFound)
	}))
	defer mirror.Close()
	f := newFolder(t)
	m, err := f.Pull(t.Context(), PullRequest{What: "e5-small-v2", Mirror: mirror.URL})
	if err != nil {
		t.Fatal(err)
	}
	note, err := os.ReadFile(filepath.Join(f.Path("e5-small-v2"), settingsFile))
	if err != nil || !strings.Contains(string(note), `"passage": "passage: "`) {
		t.Errorf("the prompts are not written down: %s, %v", note, err)
	}
	if m.Source != mirror.URL+"/intfloat/e5-small-v2" {
		t.Errorf("source %q", m.Source)
	}
	linked = strings.Repeat("0", 64)
	if _, err := f.Pull(t.Context(), PullRequest{What: "e5-small-v2", Mirror: mirror.URL, Name: "other"}); !errors.Is(err, assay.ErrDamaged) {
		t.Errorf("a mirror that names another sum: %v, want ErrDamaged", err)
	}
}

// TestPullGoesOn checks that transfers succeed after breaking off, stalling or temporary errors,
// and that no data is downloaded twice unnecessarily.
func TestPullGoesOn(t *testing.T) {
	files := modelFiles(t)
	data := files[weightsFile]
	from := func(n int) string { return fmt.Sprintf("bytes=%d-", n) }
	tests := map[string]struct {
		wicked func(w http.ResponseWriter, r *http.Request, nth int) bool
		want   []string // ranges requested
	}{
		"broken off twice": {func(w http.ResponseWriter, r *http.Request, nth int) bool {
			if nth == 1 {
				cut(w, data, 60_000)
			}
			if nth == 2 {
				w.Header().Set("Content-Range", fmt.Sprintf("bytes 60000-%d/%d", len(data)-1, len(data)))
				sum := sha256.Sum256(data)
				w.Header().Set("ETag", `"`+hex.EncodeToString(sum[:4])+`"`)
				w.Header().Set("Content-Length", fmt.Sprint(len(data)-60_000))
				w.WriteHeader(http.StatusPartialContent)
				w.Write(data[60_000:90_000])
				panic(http.ErrAbortHandler)
			}
			return false
		}, []string{"", from(60_000), from(90_000)}},
		"errors that pass": {func(w http.ResponseWriter, r *http.Request, nth int) bool {
			status := []int{0, http.StatusServiceUnavailable, http.StatusTooManyRequests, http.StatusBadGateway, http.StatusRequestTimeout}
			if nth < len(status) {
				http.Error(w, "later", status[nth])
				return true
			}
			return false
		}, []string{"", "", "", "", ""}},
		"stalls": {func(w http.ResponseWriter, r *http.Request, nth int) bool {
			if nth == 1 {
				sum := sha256.Sum256(data)
				w.Header().Set("ETag", `"`+hex.EncodeToString(sum[:4])+`"`)
				w.Header().Set("Content-Length", fmt.Sprint(len(data)))
				w.Write(data[:70_000])
				w.(http.Flusher).Flush()
				<-r.Context().Done()
				return true
			}
			return false
		}, []string{"", from(70_000)}},
		"ranges ignored": {func(w http.ResponseWriter, r *http.Request, nth int) bool {
			if nth == 1 {
				cut(w, data, 60_000)
			}
			w.Write(data)
			return true
		}, []string{"", from(60_000)}},
		"nothing to tell versions by": {func(w http.ResponseWriter, r *http.Request, nth int) bool {
			if nth == 1 {
				w.Header().Set("Content-Length", fmt.Sprint(len(data)))
				w.Write(data[:60_000])
				panic(http.ErrAbortHandler)
			}
			return false
		}, []string{"", ""}},
		"another version now": {func(w http.ResponseWriter, r *http.Request, nth int) bool {
			if nth == 1 {
				cut(w, bytes.Repeat([]byte("old"), len(data)), 60_000)
			}
			return false
		}, []string{"", from(60_000)}},
		"another version now, and no care for If-Range": {func(w http.ResponseWriter, r *http.Request, nth int) bool {
			if nth == 1 {
				cut(w, bytes.Repeat([]byte("old"), len(data)), 60_000)
			}
			if nth == 2 {
				w.Header().Set("Content-Range", fmt.Sprintf("bytes 60000-%d/%d", len(data)-1, len(data)))
				w.Header().Set("ETag", `"new"`)
				w.WriteHeader(http.StatusPartialContent)
				w.Write(data[60_000:])
				return true
			}
			return false
		}, []string{"", from(60_000), ""}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, files, test.wicked)
			f := newFolder(t)
			if name == "stalls" {
				f.fetch.stall = 2 * time.Second
			}
			m, err := f.Pull(t.Context(), PullRequest{What: s.URL + "/m"})
			if err != nil {
				t.Fatal(err)
			}
			sum := sha256.Sum256(data)
			if m.WeightsSHA256() != hex.EncodeToString(sum[:]) {
				t.Error("the weights are others")
			}
			if diff := cmp.Diff(test.want, s.ranges()); diff != "" {
				t.Errorf("ranges (-want +got):\n%s", diff)
			}
		})
	}
}

// TestPullRefuses checks that bad data from a server is not installed, that the error names the
// problem, and that the number of tries is limited.
func TestPullRefuses(t *testing.T) {
	files := modelFiles(t)
	data := files[weightsFile]
	flipped := bytes.Clone(data)
	flipped[len(flipped)-5] ^= 4
	tests := map[string]struct {
		wicked func(w http.ResponseWriter, r *http.Request, nth int) bool
		kind   error
		want   string
	}{
		"always breaks off": {func(w http.ResponseWriter, r *http.Request, nth int) bool {
			cut(w, data, 0)
			return true
		}, nil, "tried 5 times"},
		"a byte at a time": {func(w http.ResponseWriter, r *http.Request, nth int) bool {
			w.Header().Set("ETag", `"x"`)
			w.Header().Set("Content-Length", "1000")
			if nth > 1 {
				w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-999/1000", nth-1))
				w.Header().Set("Content-Length", fmt.Sprint(1001-nth))
				w.WriteHeader(http.StatusPartialContent)
			}
			w.Write([]byte("x"))
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}, nil, "broke off 50 times"},
		"never there": {func(w http.ResponseWriter, r *http.Request, nth int) bool {
			http.Error(w, "down", http.StatusInternalServerError)
			return true
		}, nil, "500 Internal Server Error (tried 5 times)"},
		"no safetensors": {func(w http.ResponseWriter, r *http.Request, nth int) bool {
			http.NotFound(w, r)
			return true
		}, assay.ErrNotFound, "pytorch_model.bin"},
		"says it is shorter": {func(w http.ResponseWriter, r *http.Request, nth int) bool {
			w.Header().Set("Content-Length", "50000")
			w.Write(data[:50_000])
			return true
		}, assay.ErrDamaged, "cut short"},
		"a web page": {func(w http.ResponseWriter, r *http.Request, nth int) bool {
			w.Write([]byte("<!DOCTYPE html><title>Sign in to the hotel's network</title>"))
			return true
		}, assay.ErrDamaged, "not a file of tensors"},
		"a bit differs": {func(w http.ResponseWriter, r *http.Request, nth int) bool {
			w.Write(flipped)
			return true
		}, assay.ErrDamaged, "SHA-256"},
		"too large": {func(w http.ResponseWriter, r *http.Request, nth int) bool {
			w.Header().Set("Content-Length", fmt.Sprint(maxWeights+1))
			return true
		}, assay.ErrInvalid, "more than"},
		"compressed": {func(w http.ResponseWriter, r *http.Request, nth int) bool {
			w.Header().Set("Content-Encoding", "gzip")
			w.Write(data)
			return true
		}, nil, "gzip"},
		"redirects in circles": {func(w http.ResponseWriter, r *http.Request, nth int) bool {
			http.Redirect(w, r, r.URL.Path, http.StatusFound)
			return true
		}, nil, "redirected"},
		"another part": {func(w http.ResponseWriter, r *http.Request, nth int) bool {
			if nth == 1 {
				cut(w, data, 60_000)
			}
			w.Header().Set("Content-Range", fmt.Sprintf("bytes 70000-%d/%d", len(data)-1, len(data)))
			w.WriteHeader(http.StatusPartialContent)
			w.Write(data[70_000:])
			return true
		}, nil, "of another file"},
	}
	sum := sha256.Sum256(data)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, files, test.wicked)
			f := newFolder(t)
			req := PullRequest{What: s.URL + "/m"}
			if name == "a bit differs" {
				req.SHA256 = strings.ToUpper(hex.EncodeToString(sum[:]))
			}
			_, err := f.Pull(t.Context(), req)
			if err == nil || test.kind != nil && !errors.Is(err, test.kind) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %v with %q", err, test.kind, test.want)
			}
			if all, listErr := f.List(); len(all) > 0 || listErr != nil {
				t.Errorf("installed all the same: %v, %v", all, listErr)
			}
		})
	}
}

// TestPullSums checks that all files are compared with the SHA256SUMS of the source.
func TestPullSums(t *testing.T) {
	files := modelFiles(t)
	var sums []File
	for name, data := range files {
		sum := sha256.Sum256(data)
		sums = append(sums, File{Name: name, SHA256: hex.EncodeToString(sum[:])})
	}
	files[sumsFile] = formatSums(sums)
	s := newServer(t, files, nil)
	f := newFolder(t)
	if _, err := f.Pull(t.Context(), PullRequest{What: s.URL + "/m", Name: "right"}); err != nil {
		t.Error(err)
	}
	files["modules.json"] = []byte("[ ]")
	if _, err := f.Pull(t.Context(), PullRequest{What: s.URL + "/m", Name: "changed"}); !errors.Is(err, assay.ErrDamaged) || !strings.Contains(err.Error(), "modules.json") {
		t.Errorf("a changed file: %v, want ErrDamaged that names modules.json", err)
	}
	delete(files, "modules.json")
	if _, err := f.Pull(t.Context(), PullRequest{What: s.URL + "/m", Name: "missing"}); !errors.Is(err, assay.ErrDamaged) || !strings.Contains(err.Error(), "modules.json") {
		t.Errorf("a missing file: %v, want ErrDamaged that names modules.json", err)
	}
}

// TestPullInterrupted checks that the next pull continues one that was cancelled or whose process
// died, even if only the last step was missing.
func TestPullInterrupted(t *testing.T) {
	files := modelFiles(t)
	data := files[weightsFile]
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s := newServer(t, files, func(w http.ResponseWriter, r *http.Request, nth int) bool {
		if nth > 1 {
			return false
		}
		sum := sha256.Sum256(data)
		w.Header().Set("ETag", `"`+hex.EncodeToString(sum[:4])+`"`)
		w.Header().Set("Content-Length", fmt.Sprint(len(data)))
		w.Write(data[:120_000])
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		return true
	})
	f := newFolder(t)
	f.fetch.stall = 0
	_, err := f.Pull(ctx, PullRequest{What: s.URL + "/m", Progress: func(p Progress) {
		if p.File == weightsFile && p.Done == 120_000 {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("called off: %v", err)
	}
	open := f.Open
	second, cancelSecond := context.WithCancel(t.Context())
	defer cancelSecond()
	f.Open = func(context.Context, string, string, string) (Facts, error) {
		cancelSecond()
		return Facts{}, context.Canceled
	}
	if _, err := f.Pull(second, PullRequest{What: s.URL + "/m"}); !errors.Is(err, context.Canceled) {
		t.Fatalf("called off before it was opened: %v", err)
	}
	f.Open = open
	if _, err := f.Pull(t.Context(), PullRequest{What: s.URL + "/m"}); err != nil {
		t.Fatal(err)
	}
	want := []string{"", "bytes=120000-", fmt.Sprintf("bytes=%d-", len(data))}
	if diff := cmp.Diff(want, s.ranges()); diff != "" {
		t.Errorf("ranges (-want +got):\n%s", diff)
	}
}

// TestPullTwice checks that concurrent pulls of one name are rejected.
func TestPullTwice(t *testing.T) {
	f := newFolder(t)
	_, release, err := f.lockStaging("m")
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	s := newServer(t, modelFiles(t), nil)
	if _, err := f.Pull(t.Context(), PullRequest{What: s.URL + "/m"}); !errors.Is(err, assay.ErrLocked) {
		t.Errorf("got %v, want ErrLocked", err)
	}
}

// TestPullUnwritable checks the error for a folder that is not writable.
func TestPullUnwritable(t *testing.T) {
	f := newFolder(t)
	if err := os.WriteFile(f.Dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	src := filepath.Join(t.TempDir(), "small")
	writeModel(t, src, modelFiles(t))
	if _, err := f.Pull(t.Context(), PullRequest{What: src}); err == nil || !strings.Contains(err.Error(), f.Dir) {
		t.Errorf("got %v, want an error that names %s", err, f.Dir)
	}
	for err, kind := range map[error]error{
		&os.PathError{Op: "open", Path: "x", Err: os.ErrPermission}: assay.ErrReadOnly,
	} {
		if !errors.Is(wrap(err), kind) {
			t.Errorf("wrap(%v) = %v, want %v", err, wrap(err), kind)
		}
	}
}

// TestPullNoEncryption checks that redirects from https to http are not followed.
func TestPullNoEncryption(t *testing.T) {
	plain := newServer(t, modelFiles(t), nil)
	secure := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, plain.URL+r.URL.Path, http.StatusFound)
	}))
	defer secure.Close()
	f := newFolder(t)
	f.fetch.client = secure.Client()
	if _, err := f.Pull(t.Context(), PullRequest{What: secure.URL + "/m"}); !errors.Is(err, errRedirect) {
		t.Errorf("got %v, want a refusal", err)
	}
}

func FuzzParseSums(f *testing.F) {
	f.Add([]byte(strings.Repeat("a", 64) + "  model.safetensors\n"))
	f.Add([]byte(strings.Repeat("A", 64) + " *./config.json\r\nnonsense"))
	f.Fuzz(func(t *testing.T, data []byte) {
		for name, sum := range parseSums(data) {
			if !isSum(sum) || sum != strings.ToLower(sum) {
				t.Errorf("%q has the sum %q", name, sum)
			}
		}
	})
}
