// Command assay answers questions from your own documents and shows the evidence for its answers:
// every sentence is cited and checked against the words it cites.
//
//	assay ask --docs PATH "question"
//
// This package reads flags, environment variables and standard input, calls the package engine and
// prints the results. There is a file for each subcommand. The table of exit codes is in exit.go.
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/cmd/assay/internal/config"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/parse"
	"github.com/assay-rag/assay/telemetry"
)

func main() { os.Exit(newApp().execute()) }

// execute runs the command line of this process and returns its exit code. The first SIGINT or
// SIGTERM cancels the command. The second one kills the process.
func (a *app) execute() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	parsers := newParsers()
	defer parsers.Close()
	a.walk, a.ocr = parsers.Walk, parse.FindOCR
	return a.run(ctx, os.Args[1:])
}

// An app holds the process's streams and the global flags, which all commands share.
type app struct {
	stdin          io.Reader
	stdout, stderr *output
	terminal       io.Writer // unfiltered standard error, for control sequences
	getenv         func(string) string
	cacheDir       func() (string, error)

	piped    bool // standard input is not a terminal
	watched  bool // standard error is a terminal
	escapes  bool // that terminal understands escape sequences
	color    bool // it may be sent faint text
	faintOut bool // standard output is a terminal that may be sent faint text

	width, watchedWidth int // columns of standard output and standard error

	// walk parses documents in child processes; nil: in this process, which in a test is not assay.
	walk engine.WalkFunc

	// ocr finds the program that recognises text in images; nil: none is used.
	ocr func(context.Context) (*parse.OCR, error)

	installed engine.Encoders   // nil: none, text search only
	pages     assay.PageFetcher // reads pages that a web search finds; nil: a fetcher limited to the public internet

	configDir func() (string, error) // the user's configuration folder
	set       *config.Set            // the configuration; nil: not loaded yet

	telemetry *telemetry.Telemetry // nil: nothing is reported
	emf       io.Closer            // the file of telemetry.cloudwatch_emf; nil: none

	indexes *sharedIndexes // nil: none was named yet
	redis   *sharedRedis   // set by run

	ownLimits bool // requests set all their limits; ignore the configured ones

	data    string   // --data
	store   string   // --store
	index   string   // --index
	queue   string   // --queue
	tenant  string   // --tenant
	docs    []string // --docs
	config  string   // --config
	models  []string // --model
	offline bool     // --offline
}

// newApp returns the app of this process.
func newApp() *app {
	a := &app{
		stdin:     os.Stdin,
		stdout:    &output{w: os.Stdout},
		stderr:    &output{w: os.Stderr},
		terminal:  os.Stderr,
		getenv:    os.Getenv,
		cacheDir:  os.UserCacheDir,
		configDir: os.UserConfigDir,
		piped:     !term.IsTerminal(int(os.Stdin.Fd())),
		watched:   term.IsTerminal(int(os.Stderr.Fd())),

		width:        columns(os.Stdout),
		watchedWidth: columns(os.Stderr),
	}
	a.installed = installedEncoders{folder: a.modelsFolder}
	a.escapes = a.watched && os.Getenv("TERM") != "dumb"
	colors := os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	a.color = a.escapes && colors
	a.faintOut = colors && term.IsTerminal(int(os.Stdout.Fd()))
	return a
}

// columns returns the width of text for people on f.
func columns(f *os.File) int {
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil || width <= 0 {
		return pipeWidth
	}
	return min(max(width, minWidth), maxWidth)
}

// The widths for wrapped text: in a pipe, and the bounds on a terminal. Longer lines are hard to
// read.
const (
	pipeWidth = 80
	minWidth  = 40
	maxWidth  = 100
)
