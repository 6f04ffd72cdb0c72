//go:build unix

package main

import (
	"archive/zip"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestKilledIngest kills ingests of a changing folder at random moments. An ingest that ends then
// leaves the store that one undisturbed ingest makes.
func TestKilledIngest(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	kills := 60
	if testing.Short() {
		kills = 8
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	files := killedFiles(t, s)
	for i := range 12 {
		changeFile(s, rng, files, i)
	}
	killed := 0
	for range kills {
		for range 2 {
			changeFile(s, rng, files, rng.IntN(12))
		}
		cmd := s.command("ingest", "--data", "killed", "mixed")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		timer := time.AfterFunc(time.Duration(rng.IntN(500))*time.Millisecond, func() { _ = cmd.Process.Signal(syscall.SIGKILL) })
		if cmd.Wait() != nil {
			killed++
		}
		timer.Stop()
	}
	t.Logf("%d of %d ingests were killed", killed, kills)
	s.want(exitAnswered, "", "ingest", "--retry-failed", "--data", "killed", "mixed")
	s.want(exitAnswered, "", "ingest", "--data", "whole", "mixed")
	if diff := cmp.Diff(s.storeOf("whole"), s.storeOf("killed")); diff != "" {
		t.Errorf("the store after kills (-undisturbed +killed):\n%s", diff)
	}
	s.want(exitAnswered, "0 added, 0 updated", "ingest", "--verify", "--data", "killed", "mixed")
	s.want(exitAnswered, "mixed/boiler.txt", "search", "--data", "killed", "serial number of the boiler")
}

// killedFiles returns contents of files by extension.
func killedFiles(t *testing.T, s *sandbox) map[string][][]byte {
	t.Helper()
	files := map[string][][]byte{"md": {[]byte("# One\n\nThe first note is short.\n"), []byte("# Two\n\nThe second note is short.\n")}}
	var parts []string
	for i := range 3 {
		parts = append(parts, strings.Repeat(fmt.Sprintf("Part %d of the quarterly maintenance report is about pumps. ", i), 20))
		files["zip"] = append(files["zip"], zipOfFiles(t, 30*i+5, parts[i]))
		files["eml"] = append(files["eml"], []byte(fmt.Sprintf("From: a@example.org\nTo: b@example.org\nSubject: Pumps %d\nMIME-Version: 1.0\n"+
			"Content-Type: multipart/mixed; boundary=x\n\n--x\nContent-Type: text/plain\n\nThe pumps are attached.\n--x\n"+
			"Content-Type: application/zip\nContent-Disposition: attachment; filename=pumps.zip\nContent-Transfer-Encoding: base64\n\n%s\n--x--\n",
			i, base64.StdEncoding.EncodeToString(files["zip"][i]))))
	}
	if data := os.Getenv("ASSAY_TESTDATA"); data != "" {
		for ext, names := range map[string][]string{
			"pdf":  {"multi_page.pdf", "code_and_formula.pdf", "2305.03393v1-pg9.pdf"},
			"docx": {"word_sample.docx", "word_tables.docx", "equations.docx"},
		} {
			for _, name := range names {
				content, err := os.ReadFile(filepath.Join(data, "data", "parsing", ext, "sources", name))
				if err != nil {
					t.Fatal(err)
				}
				files[ext] = append(files[ext], content)
			}
		}
	}
	s.write("mixed/boiler.txt", "The serial number of the boiler is 4711.\n")
	return files
}

func zipOfFiles(t *testing.T, n int, text string) []byte {
	t.Helper()
	var buf bytes.Buffer
	z := zip.NewWriter(&buf)
	for i := range n {
		w, err := z.Create(fmt.Sprintf("folder/%d.txt", i))
		if err == nil {
			_, err = fmt.Fprintf(w, "File %d. %s", i, text)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// changeFile writes, replaces or removes the files with a number.
func changeFile(s *sandbox, rng *rand.Rand, files map[string][][]byte, number int) {
	for _, ext := range slices.Sorted(maps.Keys(files)) {
		name := fmt.Sprintf("mixed/%d/file.%s", number, ext)
		if rng.IntN(8) == 0 {
			_ = os.Remove(filepath.Join(s.dir, name)) // it may not exist
			continue
		}
		which := rng.IntN(len(files[ext]))
		s.write(name, string(files[ext][which]))
		// A file with other content has another time. One that is written again with the same bytes
		// keeps its time, because the metadata of its documents do.
		modified := time.Date(2025, 1, 1+which, 0, 0, 0, 0, time.UTC)
		if err := os.Chtimes(filepath.Join(s.dir, name), modified, modified); err != nil {
			s.t.Fatal(err)
		}
	}
}

// storeOf returns the documents and failures of a data directory.
func (s *sandbox) storeOf(data string) []map[string]any {
	s.t.Helper()
	var all []map[string]any
	for _, args := range [][]string{{"documents", "--json", "--data", data}, {"documents", "--failed", "--json", "--data", data}} {
		out, err := s.command(args...).Output()
		if err != nil {
			s.t.Fatal(err)
		}
		var list []map[string]any
		if err := json.Unmarshal(out, &list); err != nil {
			s.t.Fatal(err)
		}
		for _, d := range list {
			delete(d, "time")
		}
		all = append(all, list...)
	}
	if len(all) < 20 {
		s.t.Errorf("only %d documents in %s", len(all), data)
	}
	return all
}
