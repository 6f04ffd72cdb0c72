package main

import (
	"encoding/json"
	"errors"
	goformat "go/format"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay/internal/role/prompted"
)

// A docBlock is a fenced block of a Markdown file.
type docBlock struct {
	line int      // of the opening fence
	kind string   // the first word of the info string: "console"
	opts []string // the other words: "norun", "exit=3"
	text string
}

// norun reports whether the block is marked as one that no test runs, because it needs a network,
// a key, much time or data that is not in the repository.
func (b docBlock) norun() bool { return slices.Contains(b.opts, "norun") }

// background reports whether the command of the block goes on during the blocks after it.
func (b docBlock) background() bool { return slices.Contains(b.opts, "background") }

// exit returns the exit code that the last command of the block has to end with.
func (b docBlock) exit() string {
	for _, o := range b.opts {
		if code, ok := strings.CutPrefix(o, "exit="); ok {
			return code
		}
	}
	return "0"
}

// A docCommand is a command of a block and the output that the block shows for it.
type docCommand struct {
	line    int
	command string
	want    []string
}

// TestDocExamples runs the examples of README.md, CONTRIBUTING.md and docs. Blocks of one file run
// in their order in one folder, which has a copy of engine/testdata/handbook.
//
//   - sh: commands that have to succeed.
//   - console: lines that begin with "$ " are commands, the lines after each are its output. A line
//     "..." stands for any number of lines. With "exit=3" in the info string the last command ends
//     with that code.
//   - go: a whole program is run, and the next block of text is its output.
//   - json and yaml are parsed. A block of yaml that begins with "# NAME.yaml" is a file in the folder.
//   - markdown is a domain file, and is parsed as one.
//
// A block marked "norun" is not run. Other commands must be in one of these blocks. The command of a
// block marked "background" is assay serve, which goes on during the blocks after it, until the end
// of the file or the next one. It listens on a free port, which replaces serveAddress in commands.
func TestDocExamples(t *testing.T) {
	if testing.Short() {
		t.Skip("runs every command of the docs")
	}
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil || len(files) == 0 {
		t.Fatalf("docs: %d files, %v", len(files), err)
	}
	files = append(files, filepath.Join(root, "README.md"), filepath.Join(root, "CONTRIBUTING.md"))
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			runBlocks(t, root, docBlocks(t, string(data)))
		})
	}
}

// docBlocks returns the fenced blocks of a Markdown text, and reports commands outside of them.
func docBlocks(t *testing.T, text string) []docBlock {
	t.Helper()
	var blocks []docBlock
	var open *docBlock
	for i, line := range strings.Split(text, "\n") {
		info, fence := strings.CutPrefix(strings.TrimSpace(line), "```")
		switch {
		case fence && open == nil:
			words := append(strings.Fields(info), "")
			open = &docBlock{line: i + 1, kind: words[0], opts: words[1:]}
		case fence:
			blocks = append(blocks, *open)
			open = nil
		case open != nil:
			open.text += line + "\n"
		case strings.HasPrefix(line, "    assay ") || strings.HasPrefix(line, "    $ "):
			t.Errorf("line %d: a command outside of a fenced block: %s", i+1, line)
		}
	}
	if open != nil {
		t.Errorf("line %d: the block does not end", open.line)
	}
	return blocks
}

// runBlocks checks the blocks of one file.
func runBlocks(t *testing.T, root string, blocks []docBlock) {
	var shell *docShell
	for i, b := range blocks {
		if b.norun() {
			continue
		}
		switch b.kind {
		case "sh", "console":
			if shell == nil {
				shell = newDocShell(t, root)
			}
			if b.background() {
				shell.serve(t, b)
			} else {
				shell.run(t, b)
			}
		case "go":
			if i+1 == len(blocks) || blocks[i+1].kind != "text" {
				t.Errorf("line %d: no block of text with the output of the program", b.line)
				continue
			}
			runProgram(t, root, b, blocks[i+1].text)
		case "json":
			if !json.Valid([]byte(b.text)) {
				t.Errorf("line %d: not JSON", b.line)
			}
		case "yaml":
			var v any
			if err := yaml.Unmarshal([]byte(b.text), &v); err != nil {
				t.Errorf("line %d: %v", b.line, err)
			}
			if shell == nil {
				shell = newDocShell(t, root)
			}
			shell.write(t, b)
		case "markdown":
			if _, err := prompted.ParseDomain("domain.md", []byte(b.text)); err != nil {
				t.Errorf("line %d: %v", b.line, err)
			}
		case "text":
		default:
			t.Errorf("line %d: a block of kind %q: say what it is, and norun if no test can run it", b.line, b.kind)
		}
	}
}

// A docShell runs the commands of one file.
type docShell struct {
	dir, home string
	env       []string
	server    *docServer // nil: none
}

// newDocShell returns a shell in a folder of its own, or nil if there is no shell on this system.
func newDocShell(t *testing.T, root string) *docShell {
	t.Helper()
	if _, err := exec.LookPath("sh"); err != nil || runtime.GOOS == "windows" {
		return nil
	}
	s := &docShell{dir: t.TempDir(), home: t.TempDir()}
	handbook := filepath.Join("engine", "testdata", "handbook")
	if err := os.CopyFS(filepath.Join(s.dir, handbook), os.DirFS(filepath.Join(root, handbook))); err != nil {
		t.Fatal(err)
	}
	s.env = append(os.Environ(), "HOME="+s.home, "XDG_CACHE_HOME="+filepath.Join(s.home, ".cache"), "XDG_CONFIG_HOME="+filepath.Join(s.home, ".config"))
	return s
}

// fileName matches the name of the file that a block of YAML shows.
var fileName = regexp.MustCompile(`^# ([a-z]+\.yaml)\b`)

// write writes the file that a block shows, if it names one.
func (s *docShell) write(t *testing.T, b docBlock) {
	t.Helper()
	m := fileName.FindStringSubmatch(b.text)
	if s == nil || m == nil {
		return
	}
	if err := os.WriteFile(filepath.Join(s.dir, m[1]), []byte(b.text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// run runs the commands of a block and compares their output.
func (s *docShell) run(t *testing.T, b docBlock) {
	t.Helper()
	if s == nil {
		return
	}
	commands := b.commands()
	if len(commands) == 0 {
		t.Errorf("line %d: no command", b.line)
	}
	for i, c := range commands {
		wantCode := "0"
		if i == len(commands)-1 {
			wantCode = b.exit()
		}
		cmd := exec.CommandContext(t.Context(), "sh", "-c", s.server.replace(c.command)+"\necho \"exit $?\"")
		cmd.Dir, cmd.Env = s.dir, s.env
		out, err := cmd.CombinedOutput()
		if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
			t.Fatalf("line %d: %v", c.line, err)
		}
		lines := strings.Split(strings.TrimRight(string(out), "\n"), "\n")
		got, code := lines[:len(lines)-1], lines[len(lines)-1]
		if code != "exit "+wantCode {
			t.Errorf("line %d: %s: %s, want %s\n%s", c.line, c.command, code, wantCode, out)
		}
		if b.kind == "sh" {
			continue
		}
		if diff := cmp.Diff(c.want, s.comparable(c.want, got)); diff != "" {
			t.Errorf("line %d: %s (-documented +printed):\n%s", c.line, c.command, diff)
		}
	}
}

// commands returns the commands of a block. A command goes on after a backslash at the end of a line.
func (b docBlock) commands() []docCommand {
	var commands []docCommand
	goesOn := false
	for i, line := range strings.Split(strings.TrimRight(b.text, "\n"), "\n") {
		command, prompt := strings.CutPrefix(line, "$ ")
		isCommand := prompt || b.kind == "sh" && strings.TrimSpace(line) != "" && !strings.HasPrefix(line, "#")
		switch {
		case goesOn:
			commands[len(commands)-1].command += "\n" + line
			goesOn = strings.HasSuffix(line, `\`)
		case isCommand:
			commands = append(commands, docCommand{line: b.line + 1 + i, command: command})
			goesOn = strings.HasSuffix(line, `\`)
		case b.kind == "console" && len(commands) > 0:
			last := &commands[len(commands)-1]
			last.want = append(last.want, line)
		}
	}
	for i := range commands {
		for n := len(commands[i].want); n > 0 && commands[i].want[n-1] == ""; n-- {
			commands[i].want = commands[i].want[:n-1]
		}
	}
	return commands
}

// varying matches the parts of an output that differ from run to run.
var varying = []struct{ pattern, name string }{
	{`\b[a-z2-7]{16}\b`, "RUN"},
	{`\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\dZ?`, "TIME"},
	{`\b[\d.]+ (ms|s)\b`, "DURATION"},
	{`\(\d+ a second\)`, "(RATE)"},
	{`[\d.]+ (MB|MiB)\b`, "SIZE"},
	{`(documents and vectors|index|runs) \d+\.\d`, "SIZE"},
	{` +`, " "},
}

// comparable returns the lines printed, with each line that differs from the documented one only in
// varying parts replaced by it, and the lines that a documented "..." stands for replaced by that.
func (s *docShell) comparable(want, got []string) []string {
	var same []string
	for i := 0; i < len(want); i++ {
		if want[i] != "..." {
			if len(got) == 0 {
				return same
			}
			if s.fixed(got[0]) == s.fixed(want[i]) {
				same = append(same, want[i])
			} else {
				same = append(same, got[0])
			}
			got = got[1:]
			continue
		}
		same = append(same, "...")
		if i+1 == len(want) {
			return same
		}
		for len(got) > 0 && s.fixed(got[0]) != s.fixed(want[i+1]) {
			got = got[1:]
		}
	}
	return append(same, got...)
}

// fixed returns the line without its varying parts and its folders.
func (s *docShell) fixed(line string) string {
	line = strings.ReplaceAll(line, s.home, "/home/ann")
	line = strings.ReplaceAll(line, s.dir, "/home/ann/work")
	for _, v := range varying {
		line = regexp.MustCompile(v.pattern).ReplaceAllString(line, v.name)
	}
	return strings.TrimSpace(line)
}

// runProgram builds a Go program, runs it and compares its output.
func runProgram(t *testing.T, root string, b docBlock, want string) {
	t.Helper()
	formatted, err := goformat.Source([]byte(b.text))
	if err != nil {
		t.Errorf("line %d: %v", b.line, err)
		return
	}
	if diff := cmp.Diff(b.text, string(formatted)); diff != "" {
		t.Errorf("line %d (-documented +formatted):\n%s", b.line, diff)
	}
	if testing.Short() {
		return // linking takes seconds
	}
	s := newDocShell(t, root)
	if s == nil {
		return
	}
	source, binary := filepath.Join(t.TempDir(), "main.go"), filepath.Join(t.TempDir(), "example")
	if err := os.WriteFile(source, []byte(b.text), 0o600); err != nil {
		t.Fatal(err)
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-o", binary, source)
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("line %d: %v\n%s", b.line, err, out)
	}
	cmd := exec.CommandContext(t.Context(), binary)
	cmd.Dir, cmd.Env = s.dir, s.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("line %d: %v\n%s", b.line, err, out)
	}
	if diff := cmp.Diff(want, string(out)); diff != "" {
		t.Errorf("line %d (-documented +printed):\n%s", b.line, diff)
	}
}

// docLink matches a link of Markdown and its target.
var docLink = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// TestDocLinks checks that links between documents lead to files and headings that exist.
func TestDocLinks(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	files, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"README.md", "CONTRIBUTING.md", "CHANGELOG.md"} {
		files = append(files, filepath.Join(root, name))
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range docLink.FindAllStringSubmatch(string(data), -1) {
			path, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(path, "://") {
				continue
			}
			target := file
			if path != "" {
				target = filepath.Join(filepath.Dir(file), path)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: the link %s leads nowhere", file, m[1])
			} else if anchor != "" && !slices.Contains(headingAnchors(t, target), anchor) {
				t.Errorf("%s: the link %s leads to no heading", file, m[1])
			}
		}
	}
}

// headingAnchors returns the anchors that GitHub gives the headings of a Markdown file.
func headingAnchors(t *testing.T, file string) []string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var anchors []string
	for line := range strings.SplitSeq(string(data), "\n") {
		if title, ok := strings.CutPrefix(line, "#"); ok {
			title = strings.ToLower(strings.TrimSpace(strings.TrimLeft(title, "#")))
			anchors = append(anchors, strings.ReplaceAll(notAnchor.ReplaceAllString(title, ""), " ", "-"))
		}
	}
	return anchors
}

// notAnchor matches what an anchor leaves out of a heading.
var notAnchor = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
