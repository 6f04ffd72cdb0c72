// Package browsertest drives a real Chromium in tests, by the DevTools protocol and chromedp.
//
// A test binary has one browser, which [Run] closes, and each [Page] has a browser context of its own:
// cookies, cache and storage are not shared, and tests may run in parallel. The browser reaches this
// machine alone. A page records what a good page never does, such as messages on the console, and the
// test fails at its end if there are any, see [Page.Expect].
//
// The package has the flag -update, which writes the golden pictures of [Page.Shot].
package browsertest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// A Browser is the browser of a test binary.
type Browser struct {
	ctx  context.Context
	axe  string // the source of axe-core; empty: not fetched
	ours bool   // it is the one of scripts/chromium, with its fonts
}

var (
	startOnce sync.Once
	shared    *Browser
	startErr  error
	stop      = func() {}
)

// Run runs the tests of a package and then closes the browser. It is for TestMain:
//
//	func TestMain(m *testing.M) { os.Exit(browsertest.Run(m)) }
func Run(m *testing.M) int {
	defer func() { stop() }()
	return m.Run()
}

// Start returns the browser, which the first call starts. It skips the test if there is no Chromium, with
// -short, and if ASSAY_CHROMIUM is "off".
func Start(t testing.TB) *Browser {
	t.Helper()
	found := find(t)
	startOnce.Do(func() { shared, startErr = start(found) })
	if startErr != nil {
		t.Fatalf("start the browser: %v", startErr)
	}
	return shared
}

// A program is the command that starts a browser.
type program struct {
	path string
	args []string // before those of the browser
	env  []string
	ours bool // it is the one that scripts/chromium has fetched, with its fonts
}

// find returns the browser that ASSAY_CHROMIUM names (an executable, or a folder of scripts/chromium), the
// one that scripts/chromium has fetched, or an installed one.
func find(t testing.TB) program {
	t.Helper()
	place := os.Getenv("ASSAY_CHROMIUM")
	switch {
	case testing.Short():
		t.Skip("a real browser takes its time: not with -short")
	case place == "off":
		t.Skip("ASSAY_CHROMIUM is off")
	case runtime.GOOS == "windows":
		t.Skip("the browser is spoken to over inherited pipes")
	}
	if info, err := os.Stat(place); err == nil && !info.IsDir() {
		return program{path: place}
	}
	if place == "" {
		place = cached("chromium")
	}
	if _, err := os.Stat(filepath.Join(place, "edition")); err == nil {
		_, err := os.Stat(filepath.Join(place, "fonts-edition"))
		return program{
			path: filepath.Join(root(t), "scripts", "chromium"), args: []string{"run"}, ours: err == nil,
			// A folder of another version is not downloaded again, since a test must not do that.
			env: []string{"ASSAY_CHROMIUM=" + place, "ASSAY_CHROMIUM_ARCHIVE=" + filepath.Join(place, "none")},
		}
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if path, err := exec.LookPath(name); err == nil {
			return program{path: path}
		}
	}
	t.Skip("no Chromium here: scripts/chromium fetch brings one, ASSAY_CHROMIUM names another")
	return program{}
}

// cached returns the folder of a program that a script has fetched; empty if there is no cache.
func cached(name string) string {
	cache, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(cache, "assay", name)
}

// root returns the folder of the repository, which the test runs in.
func root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "scripts", "chromium")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			t.Fatal("the test does not run in the repository")
		}
		dir = parent
	}
}

// startTimeout is the longest time that a busy machine may take to start the browser.
const startTimeout = 3 * time.Minute

// start starts a browser and sets stop.
func start(p program) (*Browser, error) {
	profile, err := os.MkdirTemp("", "browsertest-")
	if err != nil {
		return nil, err
	}
	allocated, release := chromedp.NewExecAllocator(context.Background(), flags(p, profile)...)
	ctx, cancel := chromedp.NewContext(allocated)
	stop = func() {
		cancel()
		release()
		if err := os.RemoveAll(profile); err != nil {
			fmt.Fprintln(os.Stderr, "browsertest:", err)
		}
	}
	started := make(chan error, 1)
	go func() { started <- chromedp.Do(ctx) }()
	select {
	case err = <-started:
	case <-time.After(startTimeout):
		err = errors.New("it takes too long")
	}
	if err != nil {
		stop()
		stop = func() {}
		return nil, err
	}
	axe, err := os.ReadFile(filepath.Join(cached("axe"), "axe.min.js"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	return &Browser{ctx: ctx, axe: string(axe), ours: p.ours}, nil
}

// flags are the options of the browser: no window, no network but this machine, and nothing that makes
// pictures differ.
func flags(p program, profile string) []chromedp.ExecAllocatorOption {
	options := append([]chromedp.ExecAllocatorOption(nil), chromedp.DefaultExecAllocatorOptions[:]...)
	options = append(options,
		chromedp.ExecPath(p.path), chromedp.UserDataDir(profile), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.ModifyCmdFunc(func(cmd *exec.Cmd) {
			cmd.Args = append(append(cmd.Args[:1:1], p.args...), cmd.Args[1:]...)
			if cmd.Env == nil {
				cmd.Env = os.Environ()
			}
			cmd.Env = append(cmd.Env, p.env...)
		}),
	)
	for name, value := range map[string]any{
		"hide-scrollbars": true, "disable-component-update": true, "font-render-hinting": "none", "disable-lcd-text": true,
		"proxy-server": "http://127.0.0.1:9", "proxy-bypass-list": "127.0.0.1;localhost",
		"host-resolver-rules": "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
	} {
		options = append(options, chromedp.Flag(name, value))
	}
	return options
}

// isGone reports whether an error of an expression says that its page has been left.
func isGone(err error) bool {
	for _, text := range []string{"context was destroyed", "Cannot find context", "navigated or closed", "Cannot find default execution context"} {
		if err != nil && strings.Contains(err.Error(), text) {
			return true
		}
	}
	return false
}
