package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var tuned = []Setting{{"retrieval.vector_weight", 0.5}, {"retrieval.rerank", false}, {"strategies.corrective.floor", 0.3}}

func TestEdit(t *testing.T) {
	tests := map[string]struct{ before, after string }{
		"empty":    {"", "retrieval:\n  rerank: false\n  vector_weight: 0.5\nstrategies:\n  corrective:\n    floor: 0.3\n"},
		"comments": {"# mine\nlarge: local # no model\n", "# mine\nlarge: local # no model\nretrieval:\n  rerank: false\n  vector_weight: 0.5\nstrategies:\n  corrective:\n    floor: 0.3\n"},
		"there": {
			"retrieval:\n  # by hand\n  vector_weight: 0.7 # of words\n\n  rerank: true\nstrategies:\n    corrective:\n        keep: 7\n        floor: 0.5   # low\n",
			"retrieval:\n  # by hand\n  vector_weight: 0.5 # of words\n\n  rerank: false\nstrategies:\n    corrective:\n        keep: 7\n        floor: 0.3   # low\n",
		},
		"some": {
			"strategies:\n  # of all\n  default: auto\n  crag: {correct: 0.9}\nlarge: local\n",
			"strategies:\n  corrective:\n    floor: 0.3\n  # of all\n  default: auto\n  crag: {correct: 0.9}\nlarge: local\nretrieval:\n  rerank: false\n  vector_weight: 0.5\n",
		},
		"flow":    {"strategies: {corrective: {keep: 7}}\nretrieval: {}\n", "strategies: {corrective: {floor: 0.3, keep: 7}}\nretrieval: {rerank: false, vector_weight: 0.5}\n"},
		"flow 2":  {"strategies: {default: auto, corrective: {floor: 0.55}}\nretrieval: {rerank: true, vector_weight: 1}\n", "strategies: {default: auto, corrective: {floor: 0.3}}\nretrieval: {rerank: false, vector_weight: 0.5}\n"},
		"nothing": {"strategies:\n  corrective:\nretrieval: # none\n", "strategies:\n  corrective:\n    floor: 0.3\nretrieval: # none\n  rerank: false\n  vector_weight: 0.5\n"},
		"null":    {"retrieval:\n  vector_weight:\n  rerank: null\n", "retrieval:\n  vector_weight: 0.5\n  rerank: false\nstrategies:\n  corrective:\n    floor: 0.3\n"},
		"windows": {"large: local\r\nretrieval:\r\n  rerank: true\r\n", "large: local\r\nretrieval:\r\n  vector_weight: 0.5\r\n  rerank: false\r\nstrategies:\r\n  corrective:\r\n    floor: 0.3\r\n"},
		"no end":  {"large: local", "large: local\nretrieval:\n  rerank: false\n  vector_weight: 0.5\nstrategies:\n  corrective:\n    floor: 0.3\n"},
		"umlauts": {"# Gewicht für Vektoren\nretrieval: {vector_weight: 0.9, rerank: true} # größer\n", "# Gewicht für Vektoren\nretrieval: {vector_weight: 0.5, rerank: false} # größer\nstrategies:\n  corrective:\n    floor: 0.3\n"},
	}
	for name, test := range tests {
		got, err := edit([]byte(test.before), tuned)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(test.after, string(got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		again, err := edit(got, tuned)
		if err != nil || string(again) != string(got) {
			t.Errorf("%s: edited again it is %q, %v", name, again, err)
		}
		if _, err := parse("config.yaml", got); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestEditRefuses checks that text that cannot be edited stays unchanged and causes an error.
func TestEditRefuses(t *testing.T) {
	for name, before := range map[string]string{
		"a value":   "retrieval: 3\n",
		"an anchor": "a: &x {rerank: true}\nretrieval: *x\n",
		"a list":    "strategies: [corrective]\n",
		"no YAML":   "a: [\n",
		"old ends":  "retrieval:\r\r0",
	} {
		if got, err := edit([]byte(before), tuned); err == nil {
			t.Errorf("%s is edited to %q", name, got)
		}
	}
}

func FuzzEdit(f *testing.F) {
	for _, seed := range []string{"", "retrieval:\n  rerank: true\n", "strategies: {corrective: {floor: 0.5}}", "a:\r\n  - b\r\n", "retrieval: &a\n  rerank: yes\nb: *a", "---\nretrieval: null\n...", "\"retrieval\":\n  'rerank': true"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, before string) {
		want, err := plain([]byte(before))
		if err != nil {
			return
		}
		got, err := edit([]byte(before), tuned)
		if err != nil {
			return
		}
		for _, s := range tuned {
			put(want, strings.Split(s.Path, "."), s.Value)
		}
		after, err := plain(got)
		if err != nil || cmp.Diff(want, after) != "" {
			t.Errorf("%q is edited to %q: %v\n%s", before, got, err, cmp.Diff(want, after))
		}
	})
}

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "assay", "config.yaml")
	backup, err := Write(path, tuned)
	if err != nil || backup != "" {
		t.Fatalf("a new file: %q, %v", backup, err)
	}
	const mine = "# mine\nretrieval:\n  rerank: true # slow\n"
	if err := errors.Join(os.WriteFile(path, []byte(mine), 0o600), os.Chmod(path, 0o640)); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link.yaml")
	if err := os.Symlink(path, link); err != nil {
		t.Skip(err)
	}
	for range 2 {
		if backup, err = Write(link, tuned[1:2]); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(path)
	if err != nil || string(data) != "# mine\nretrieval:\n  rerank: false # slow\n" {
		t.Errorf("%q, %v", data, err)
	}
	if kept, err := os.ReadFile(path + ".bak"); err != nil || string(kept) != mine || backup != path+".bak.2" {
		t.Errorf("kept are %q and %q, %v", kept, backup, err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("the link is a link no more: %v", err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("the file's mode is %v, %v", info.Mode(), err)
	}

	// An invalid file is left unchanged.
	if err := os.WriteFile(path, []byte("retrievel: 3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = Write(path, tuned)
	if _, ok := errors.AsType[*Error](err); !ok {
		t.Errorf("a wrong file: %v", err)
	}
	if entries, err := filepath.Glob(filepath.Join(dir, "assay", "*")); err != nil || len(entries) != 3 {
		t.Errorf("the folder holds %v, %v", entries, err)
	}
}
