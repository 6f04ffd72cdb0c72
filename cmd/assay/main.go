// Command assay answers questions from your own documents and shows that the
// answer holds: every sentence is cited, and checked against the words it cites.
//
//	assay ask --docs PATH "question"
//
// This package reads flags, environment variables and standard input, calls the
// package engine, and prints what it says. There is a file for each subcommand;
// exit.go holds the table of exit codes.
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"

	"github.com/assay-rag/assay/cmd/assay/internal/config"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/internal/webfetch"
)

func main() { os.Exit(newApp().execute()) }

// execute runs the command line of this process and returns its exit code. The
// first SIGINT or SIGTERM cancels what is being done, the second one kills.
func (a *app) execute() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	return a.run(ctx, os.Args[1:])
}

// An app is what the commands share: the streams of the process and the flags
// that every command has.
type app struct {
	stdin          io.Reader
	stdout, stderr *output
	terminal       io.Writer // standard error as it is, for what is written there to steer it
	getenv         func(string) string
	cacheDir       func() (string, error)

	piped    bool // standard input is not a terminal
	watched  bool // standard error is a terminal: a person sees what is done
	escapes  bool // that terminal understands escape sequences
	color    bool // and may be sent faint text
	faintOut bool // standard output is a terminal that may, too

	width, watchedWidth int // columns of standard output and standard error

	installed engine.Encoders   // nil: none, text alone
	pages     *webfetch.Fetcher // reads what a search of the web finds; nil: the one that reaches nothing but the public internet

	configDir func() (string, error) // the user's folder of configuration
	set       *config.Set            // what is configured; nil: nobody has asked

	ownLimits bool // the command's requests have all their limits: those configured are left out

	data   string   // --data
	docs   []string // --docs
	config string   // --config
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

// columns returns how wide text for people is to be on f.
func columns(f *os.File) int {
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil || width <= 0 {
		return pipeWidth
	}
	return min(max(width, minWidth), maxWidth)
}

// The widths to which text is wrapped: in a pipe, and at least and at most on a
// terminal. Longer lines are hard to read.
const (
	pipeWidth = 80
	minWidth  = 40
	maxWidth  = 100
)
