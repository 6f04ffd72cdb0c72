package assay_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// fetches are the ways in which a script brings something from the network. A line that matches needs
// the words of pinned in it, or, if that is empty, is not allowed.
var fetches = []struct {
	name    string
	pattern *regexp.Regexp
	pinned  string
}{
	{"npm install", regexp.MustCompile(`\bnpm (install|i|exec)\b|\bnpx\b`), ""},
	{"npm ci", regexp.MustCompile(`\bnpm ci\b`), "--ignore-scripts"}, // takes the hashes of package-lock.json
	{"pip install", regexp.MustCompile(`\bpip["']?,?( ["']?-[\w-]+["']?,?)* ["']?install\b`), "--require-hashes"},
	{"go install", regexp.MustCompile(`\bgo (install|run|get) [^ ]*\S+@`), ""},
	{"a download", regexp.MustCompile(`\b(curl|wget|git clone)\b`), ""},
	{"apt-get install", regexp.MustCompile(`\bapt-get .*install\b`), "tesseract-ocr"}, // its archive is signed
}

// TestPins checks that all that CI and the scripts fetch is held to a checksum: packages of npm by
// SHA-256, those of Python by pip's hashes, and Go's by go.sum.
func TestPins(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("scripts", "*"))
	if err != nil || len(files) < 8 {
		t.Fatalf("%d scripts, %v", len(files), err)
	}
	for _, file := range append(files, filepath.Join(".ci", "run")) {
		if info, err := os.Stat(file); err != nil || info.IsDir() || strings.HasSuffix(file, ".jinja") {
			continue
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, problem := range unpinned(string(data)) {
			t.Errorf("%s: %s", file, problem)
		}
	}
}

// unpinned returns what a script fetches without a checksum.
func unpinned(script string) []string {
	var found []string
	packs, sums := 0, 0
	for line := range strings.Lines(joined(script)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "#") || strings.HasPrefix(line, "echo ") || strings.HasPrefix(line, `absent "npm ci`) {
			continue
		}
		if strings.Contains(line, "npm pack ") && !strings.Contains(line, `absent "npm pack`) || strings.HasPrefix(line, "npm pack ") {
			packs++
		}
		if strings.Contains(line, "sha256sum") && strings.Contains(line, "got=") {
			sums++
		}
		for _, f := range fetches {
			if f.pattern.MatchString(line) && (f.pinned == "" || !strings.Contains(line, f.pinned)) && !strings.Contains(line, "--dry-run") {
				found = append(found, f.name+": "+line)
			}
		}
	}
	if packs > sums {
		found = append(found, "npm pack without a comparison of the package's SHA-256")
	}
	return found
}

// joined joins continued lines, and the lines that build a list of arguments in Python.
func joined(script string) string {
	script = strings.ReplaceAll(script, "\\\n", " ")
	return regexp.MustCompile(`\]\n\s+\w+ \+= \[`).ReplaceAllString(script, ", ")
}

func TestUnpinned(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]int{
		"npm pack x@1 --pack-destination d\n":    1,
		"npm pack x@1\ngot=\"$(sha256sum x)\"\n": 0,
		"npm install x@1\n":                      1,
		"npx x\n":                                1,
		"npm ci\n":                               1,
		"npm ci --ignore-scripts\n":              0,
		"python -m pip install x==1\n":           1,
		"python -m pip install --require-hashes \\\n  -r x.txt\n":                       0,
		"c = [python, \"-m\", \"pip\", \"install\"]\n    c += [\"--require-hashes\"]\n": 0,
		"go install example.com/x@v1\n":                                                 1,
		"go install ./x\n":                                                              0,
		"curl -O https://example.com/x\n":                                               1,
		"apt-get install -y nmap\n":                                                     1,
		"# npm install x\n":                                                             0,
	} {
		if got := unpinned(script); len(got) != want {
			t.Errorf("unpinned(%q) = %q, want %d", script, got, want)
		}
	}
}

// TestLockedPackages checks that each package that npm ci installs is held to a hash.
func TestLockedPackages(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("scripts", "*", "package-lock.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var lock struct {
			Packages map[string]struct {
				Integrity, Resolved string
			}
		}
		if err := json.Unmarshal(data, &lock); err != nil || len(lock.Packages) < 2 {
			t.Fatalf("%s: %d packages, %v", file, len(lock.Packages), err)
		}
		for name, p := range lock.Packages {
			if name != "" && !strings.HasPrefix(p.Integrity, "sha512-") {
				t.Errorf("%s: %s has no SHA-512", file, name)
			}
			if p.Resolved != "" {
				t.Errorf("%s: %s names a host", file, name)
			}
		}
	}
}

var requirement = regexp.MustCompile(`^[A-Za-z0-9._\[\]-]+==[^ ]+( --hash=sha256:[0-9a-f]{64})+$`)

// TestRequirements checks that each Python package is held to a version and hashes.
func TestRequirements(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("scripts", "python", "*.txt"))
	if err != nil || len(files) < 6 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(regexp.MustCompile(` *\\\n *`).ReplaceAllString(string(data), " ")) {
			if line = strings.TrimSpace(line); !strings.HasPrefix(line, "#") && !requirement.MatchString(line) {
				t.Errorf("%s: %q has no version or hash", file, line)
			}
		}
	}
}

// TestTools checks that go.sum has the hashes of the tools that CI builds.
func TestTools(t *testing.T) {
	t.Parallel()
	for _, dir := range []string{"tools", "deploytools", "weaviate-server"} {
		sums, err := os.ReadFile(filepath.Join("scripts", dir, "go.sum"))
		if err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(filepath.Join("scripts", dir, "go.mod"))
		if err != nil {
			t.Fatal(err)
		}
		required := regexp.MustCompile(`(?m)^\t(\S+) (v\S+)`).FindAllStringSubmatch(string(data), -1)
		if len(required) < 5 {
			t.Fatalf("%s: %d requirements", dir, len(required))
		}
		for _, m := range required {
			if !strings.Contains(string(sums), m[1]+" "+m[2]+" h1:") {
				t.Errorf("%s: go.sum lacks %s %s", dir, m[1], m[2])
			}
		}
	}
}
