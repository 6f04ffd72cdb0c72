package models

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/safetensors"
)

// weightsOf returns a model.safetensors with one tensor of n numbers.
func weightsOf(t testing.TB, n int) []byte {
	t.Helper()
	values := make([]float32, n)
	for i := range values {
		values[i] = float32(i%97) / 97
	}
	var b bytes.Buffer
	if err := safetensors.Write(&b, nil, []safetensors.Data{safetensors.Float32Data("x", values, n)}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// openWhole is a Folder.Open that accepts any complete tensor file.
func openWhole(_ context.Context, dir, name, sum string) (Facts, error) {
	data, err := os.ReadFile(filepath.Join(dir, weightsFile))
	if err != nil {
		return Facts{}, err
	}
	if got := sha256.Sum256(data); hex.EncodeToString(got[:]) != sum {
		return Facts{}, fmt.Errorf("%s was said to be %s: %w", weightsFile, sum, assay.ErrDamaged)
	}
	if _, err := safetensors.OpenBytes(data); err != nil {
		return Facts{}, fmt.Errorf("%s: %w", weightsFile, err)
	}
	return Facts{Model: name + "@" + sum[:8] + "/4", Dimensions: 4, MaxTokens: 512, Languages: []string{"en"}}, nil
}

// newFolder returns a Folder for tests, with short waits between tries.
func newFolder(t *testing.T) *Folder {
	t.Helper()
	return &Folder{
		Dir:   filepath.Join(t.TempDir(), "models"),
		Open:  openWhole,
		Now:   func() time.Time { return time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC) },
		fetch: fetcher{client: http.DefaultClient, stall: time.Minute, pause: time.Millisecond},
	}
}

// modelFiles returns the files of a small model.
func modelFiles(t testing.TB) map[string][]byte {
	return map[string][]byte{
		configFile:              []byte(`{"model_type": "bert"}`),
		tokenizerFile:           []byte(`{}`),
		"modules.json":          []byte(`[]`),
		"1_Pooling/config.json": []byte(`{}`),
		weightsFile:             weightsOf(t, 50_000),
	}
}

func writeModel(t testing.TB, dir string, files map[string][]byte) {
	t.Helper()
	for name, data := range files {
		if err := writeFile(filepath.Join(dir, filepath.FromSlash(name)), data); err != nil {
			t.Fatal(err)
		}
	}
}

// serve returns a handler that serves files correctly, with ranges and ETags.
func serve(files map[string][]byte) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, ok := files[strings.TrimPrefix(r.URL.Path, "/m/")]
		if !ok {
			http.NotFound(w, r)
			return
		}
		sum := sha256.Sum256(data)
		w.Header().Set("ETag", `"`+hex.EncodeToString(sum[:4])+`"`)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
	})
}

func TestPullFolder(t *testing.T) {
	f := newFolder(t)
	src := filepath.Join(t.TempDir(), "small")
	files := modelFiles(t)
	files["evil.sh"] = []byte("rm -rf /")
	writeModel(t, src, files)
	ctx := t.Context()
	m, err := f.Pull(ctx, PullRequest{What: src})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, file := range m.Files {
		names = append(names, file.Name)
	}
	if diff := cmp.Diff([]string{"1_Pooling/config.json", "config.json", "model.safetensors", "modules.json", "tokenizer.json"}, names); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if m.Name != "small" || m.Source != src || !strings.HasPrefix(m.Model, "small@") {
		t.Errorf("installed %+v", m)
	}
	for _, name := range []string{"small", m.Model} {
		if got, err := f.Find(name); err != nil || !cmp.Equal(got, m) {
			t.Errorf("Find(%q) = %+v, %v", name, got, err)
		}
	}
	if all, err := f.List(); err != nil || len(all) != 1 || !cmp.Equal(all[0], m) {
		t.Errorf("List() = %+v, %v", all, err)
	}
	if err := f.Verify(ctx, m); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(f.Path("small"), "evil.sh")); err == nil {
		t.Error("a file that is none of a model's was copied")
	}
	if again, err := f.Pull(ctx, PullRequest{What: src}); err != nil || !cmp.Equal(again, m) {
		t.Errorf("pulled again: %+v, %v", again, err)
	}

	files[weightsFile] = weightsOf(t, 60_000)
	writeModel(t, src, files)
	if _, err := f.Pull(ctx, PullRequest{What: src}); !errors.Is(err, assay.ErrInvalid) {
		t.Errorf("another model of that name: %v, want ErrInvalid", err)
	}
	other, err := f.Pull(ctx, PullRequest{What: src, Replace: true})
	if err != nil || other.Model == m.Model {
		t.Errorf("replaced: %+v, %v", other, err)
	}
	if err := f.Remove("small"); err != nil {
		t.Error(err)
	}
	if err := f.Remove("small"); !errors.Is(err, assay.ErrNotFound) {
		t.Errorf("removed twice: %v, want ErrNotFound", err)
	}
	left, err := os.ReadDir(filepath.Join(f.Dir, stagingDir))
	if err != nil || len(left) != 1 || left[0].Name() != "small.lock" {
		t.Errorf("left over: %v, %v", left, err)
	}
}

// TestVerify checks that any change of a file is detected, and that the error names the file.
func TestVerify(t *testing.T) {
	f := newFolder(t)
	src := filepath.Join(t.TempDir(), "small")
	writeModel(t, src, modelFiles(t))
	m, err := f.Pull(t.Context(), PullRequest{What: src})
	if err != nil {
		t.Fatal(err)
	}
	weights := filepath.Join(f.Path("small"), weightsFile)
	whole, err := os.ReadFile(weights)
	if err != nil {
		t.Fatal(err)
	}
	flipped := bytes.Clone(whole)
	flipped[len(flipped)/2] ^= 1
	for name, change := range map[string]func() error{
		"cut short": func() error { return os.WriteFile(weights, whole[:100], 0o600) },
		"a bit":     func() error { return os.WriteFile(weights, flipped, 0o600) },
		"missing":   func() error { return os.Remove(weights) },
	} {
		if err := os.WriteFile(weights, whole, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := change(); err != nil {
			t.Fatal(err)
		}
		if err := f.Verify(t.Context(), m); !errors.Is(err, assay.ErrDamaged) || !strings.Contains(err.Error(), weights) {
			t.Errorf("%s: %v, want ErrDamaged that names %s", name, err, weights)
		}
	}
	m.Files[0].Name = "../../../etc/passwd"
	if err := f.Verify(t.Context(), m); !errors.Is(err, assay.ErrDamaged) {
		t.Errorf("a record with a path out of the folder: %v, want ErrDamaged", err)
	}
}

// TestRecords checks that other contents of the folder do not prevent listing the models, and that
// a damaged record is named.
func TestRecords(t *testing.T) {
	f := newFolder(t)
	if all, err := f.List(); err != nil || len(all) != 0 {
		t.Errorf("no folder: %v, %v", all, err)
	}
	if err := f.Remove("a"); !errors.Is(err, assay.ErrNotFound) {
		t.Errorf("remove from no folder: %v", err)
	}
	if _, err := os.Stat(f.Dir); err == nil {
		t.Error("looking made the folder")
	}
	writeModel(t, f.Dir, map[string][]byte{"empty/x": nil, "file": nil, "sp ace/installed.json": []byte("{}")})
	if all, err := f.List(); err != nil || len(all) != 0 {
		t.Errorf("no models: %v, %v", all, err)
	}
	for name, record := range map[string]string{"torn": `{"name": "to`, "none": `{}`} {
		writeModel(t, f.Dir, map[string][]byte{"bad/installed.json": []byte(record)})
		if _, err := f.List(); !errors.Is(err, assay.ErrDamaged) || !strings.Contains(err.Error(), "installed.json") {
			t.Errorf("%s record: %v, want ErrDamaged", name, err)
		}
	}
	if err := f.Remove("bad"); err != nil {
		t.Errorf("remove what is damaged: %v", err)
	}
}

func TestCheckName(t *testing.T) {
	for _, name := range []string{"a", "all-MiniLM-L6-v2", "e5_small.v2", "com", "con-x", "comet"} {
		if err := checkName(name); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{"", ".", "..", "-", "--force", ".pulling", "a/b", `a\b`, "a b", "a.", "nul", "CON", "aux.txt", "com1", "LPT9.x", "ä", "a\x00", "a:b", strings.Repeat("a", 101)} {
		if err := checkName(name); !errors.Is(err, assay.ErrInvalid) {
			t.Errorf("checkName(%q) = %v, want ErrInvalid", name, err)
		}
	}
}

func TestLocate(t *testing.T) {
	f := newFolder(t)
	tests := []struct {
		req  PullRequest
		want place
	}{
		{PullRequest{What: "E5-small-v2", Mirror: "http://mirror:8080/hf/"}, place{name: "e5-small-v2", source: "http://mirror:8080/hf/intfloat/e5-small-v2",
			bases: []string{"http://mirror:8080/hf/intfloat/e5-small-v2/resolve/main", "http://mirror:8080/hf/intfloat/e5-small-v2"}}},
		{PullRequest{What: "owner/model", Name: "mine"}, place{name: "mine", source: "https://huggingface.co/owner/model",
			bases: []string{"https://huggingface.co/owner/model/resolve/main", "https://huggingface.co/owner/model"}}},
		{PullRequest{What: "https://host/a/b/"}, place{name: "b", source: "https://host/a/b", bases: []string{"https://host/a/b", "https://host/a/b/resolve/main"}}},
	}
	for _, test := range tests {
		got, err := f.locate(test.req)
		if err != nil {
			t.Error(err)
		}
		if known := test.req.What == "E5-small-v2"; known != strings.Contains(string(got.note), `"query": "query: "`) {
			t.Errorf("%s has the note %s", test.req.What, got.note)
		}
		got.note = nil
		if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(place{})); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", test.req, diff)
		}
	}
	for what, kind := range map[string]error{
		"nothing-known": assay.ErrNotFound, "../no/folder": assay.ErrNotFound, "a/b/c": assay.ErrNotFound, "": assay.ErrNotFound,
		"ftp://host/x": assay.ErrInvalid, "https://": assay.ErrInvalid, "https://user:secret@host/x": assay.ErrInvalid, "https://host/x?y=z": assay.ErrInvalid,
	} {
		if _, err := f.locate(PullRequest{What: what}); !errors.Is(err, kind) || err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("locate(%q) = %v, want %v", what, err, kind)
		}
	}
}

// TestKnown checks that the notes of the known models can be read by provider/local.
func TestKnown(t *testing.T) {
	for _, k := range AllKnown() {
		var note struct {
			Pooling, Query, Passage string
			Languages               []string
		}
		d := json.NewDecoder(bytes.NewReader(k.note()))
		d.DisallowUnknownFields()
		if err := d.Decode(&note); err != nil {
			t.Errorf("%s: %v", k.Name, err)
		}
		if checkName(k.Name) != nil || len(note.Languages) != 1 || strings.Count(k.Path, "/") != 1 {
			t.Errorf("%+v with %+v", k, note)
		}
	}
}

// TestParseSums checks that a very long line, such as a comment, does not hide the following ones.
func TestParseSums(t *testing.T) {
	sum := strings.Repeat("Ab", 32)
	data := "# " + strings.Repeat("x", 100_000) + "\r\n" + sum + " *./model.safetensors\r\nno sum\n" + sum + "  config.json"
	want := map[string]string{"model.safetensors": strings.ToLower(sum), "config.json": strings.ToLower(sum)}
	if diff := cmp.Diff(want, parseSums([]byte(data))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestVerifyNoFile checks that something else in place of a file is named and does not block.
func TestVerifyNoFile(t *testing.T) {
	f := newFolder(t)
	src := filepath.Join(t.TempDir(), "small")
	writeModel(t, src, modelFiles(t))
	m, err := f.Pull(t.Context(), PullRequest{What: src})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(f.Path("small"), configFile)
	if err := errors.Join(os.Remove(path), os.Mkdir(path, 0o755)); err != nil {
		t.Fatal(err)
	}
	if err := f.Verify(t.Context(), m); !errors.Is(err, assay.ErrInvalid) || !strings.Contains(err.Error(), path) {
		t.Errorf("got %v, want an error of kind %v that names %s", err, assay.ErrInvalid, path)
	}
}
