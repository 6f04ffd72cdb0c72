package main

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/assay-rag/assay/internal/parseworker"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == parseWorkerName { // started by a test that runs commands in this process
		parseworker.Serve()
	}
	testscript.Main(cleaning{m}, map[string]func(){
		"assay": func() {
			a := newApp()
			a.pages = testPages()
			os.Exit(a.execute())
		},
	})
}

// cleaning runs the tests and then removes the files they share.
type cleaning struct{ *testing.M }

func (c cleaning) Run() int {
	forgetSettings()
	code := c.M.Run()
	if err := os.RemoveAll(binaryDir); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return code
}

// forgetSettings removes the developer's configuration from the environment, so that no test calls
// the developer's models.
func forgetSettings() {
	for _, pair := range os.Environ() {
		name, _, _ := strings.Cut(pair, "=")
		for _, prefix := range []string{"ASSAY_MODEL", "ASSAY_CONFIG", "ASSAY_DATA", "OPENAI_", "ANTHROPIC_", "GEMINI_", "GOOGLE_", "OLLAMA_", "COHERE_", "JINA_", "AWS_", "AZURE_", "SEARXNG_", "BRAVE_", "TAVILY_", "OTEL_"} {
			if strings.HasPrefix(name, prefix) || strings.HasSuffix(strings.ToLower(name), "_proxy") {
				os.Unsetenv(name)
			}
		}
	}
}

// binaryDir is the folder of the built binary. It is empty if the binary was not built.
var binaryDir string

// TestScripts runs testdata/script/*.txtar. Each script starts in an empty folder with the files of
// its archive, its own cache directory and no data directory. $TINY is the folder of a very small
// encoder.
func TestScripts(t *testing.T) {
	t.Parallel()
	tiny, err := filepath.Abs(filepath.Join("..", "..", "provider", "local", "testdata", "tiny"))
	if err != nil {
		t.Fatal(err)
	}
	var binary string
	if underRace {
		if binary, err = buildBinary(); err != nil {
			t.Fatal(err)
		}
	}
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "script"),
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			if underRace {
				env.Setenv("PATH", filepath.Dir(binary)+string(filepath.ListSeparator)+env.Getenv("PATH"))
			}
			env.Setenv("XDG_CACHE_HOME", filepath.Join(env.WorkDir, ".cache"))
			env.Setenv("LocalAppData", filepath.Join(env.WorkDir, ".cache"))
			env.Setenv("XDG_CONFIG_HOME", filepath.Join(env.WorkDir, ".config"))
			env.Setenv("AppData", filepath.Join(env.WorkDir, ".config"))
			env.Setenv("TINY", tiny)
			env.Setenv("HOME", filepath.Join(env.WorkDir, ".home"))
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits,
			"fill":  fill,
			"model": startModel,
			"web":   startWeb,
			"hook":  startHook,

			"collector": startCollector,

			"picture": picture,

			"envsubst": substitute,
			"runid":    runID,
		},
	})
}

// exits implements the script command "exits CODE COMMAND...", which checks the exit code of a
// command.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND [ARGUMENT...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	err = ts.Exec(args[1], args[2:]...)
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("%s ended with exit code %d, want %d", strings.Join(args[1:], " "), got, want)
	}
}

// fill implements the script command "fill FILE BYTES [WORD]", which makes a file of the given
// size. The file is filled with the word, or with zeros if there is none.
func fill(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: fill FILE BYTES [WORD]")
	}
	size, err := strconv.Atoi(args[1])
	ts.Check(err)
	data := make([]byte, size)
	if len(args) > 2 {
		data = []byte(strings.Repeat(args[2]+" ", size/(len(args[2])+1)+1))[:size]
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), data, 0o600))
}

// picture implements the script command "picture FILE SHADE", which makes a PNG of one colour.
func picture(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: picture FILE SHADE")
	}
	shade, err := strconv.ParseUint(args[1], 10, 8)
	ts.Check(err)
	img := image.NewGray(image.Rect(0, 0, 100, 80))
	draw.Draw(img, img.Rect, image.NewUniform(color.Gray{uint8(shade)}), image.Point{}, draw.Src)
	var b bytes.Buffer
	ts.Check(png.Encode(&b, img))
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), b.Bytes(), 0o600))
}

// runID implements the script command "runid NAME", which sets a variable to the ID of the newest
// run in the output of "assay runs".
func runID(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: runid NAME")
	}
	id, _, ok := strings.Cut(ts.ReadFile("stdout"), " ")
	if !ok {
		ts.Fatalf("no run was listed")
	}
	ts.Setenv(args[0], id)
}
