// Command pdf compares how fast assay parses PDF files with pdftotext of poppler, pypdf and pymupdf:
//
//	go run ./pdf -python PYTHON FILE...
//
// Each tool is a process of its own that reads one file, from its start to its end, and all tools
// take turns in each round. assay parses the file to a Document with boxes and outcomes of pages;
// the others write plain text. "assay, first" has no cache of compiled code, which a user has only
// for the first PDF. PYTHON is the interpreter of an environment with pypdf and pymupdf. Tools that
// are not installed are left out. The command needs a Unix system.
//
// The table gives medians of the rounds: pages per second by the clock, processor seconds, the most
// memory that the process had, and the time in proportion to assay's.
//
//	go run ./pdf -rounds 1 -ask ASSAY -questions QUESTIONS FILE
//
// measures how long "assay ask --docs FILE" takes for each question, in a process of its own: with
// an empty cache and with the store of that. It looks up all quotations on their pages. The default
// questions are about the manual of gnuplot.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"time"

	"github.com/assay-rag/assay/parse"
)

// childCommand is the first argument of the process that parses a file.
const childCommand = "child"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	if len(os.Args) == 3 && os.Args[1] == childCommand {
		err = child(ctx, os.Args[2])
	} else {
		err = compare(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "pdf:", err)
		os.Exit(1)
	}
}

// child parses a file and prints the numbers of its pages and of the bytes of its text.
func child(ctx context.Context, file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	doc, err := parse.Parse(ctx, parse.Input{Name: filepath.Base(file), Data: data})
	if err != nil {
		return err
	}
	fmt.Println(len(doc.Pages), len(doc.Text))
	return nil
}

// A tool reads a file in a process.
type tool struct {
	name    string
	command func(file string) []string
	env     []string // besides that of this process
}

// A cost is what one process took.
type cost struct {
	wall, cpu time.Duration
	peak      int64 // bytes
}

func compare(ctx context.Context) error {
	rounds := flag.Int("rounds", 5, "rounds, of which each tool reads each file once")
	python := flag.String("python", "python3", "interpreter with pypdf and pymupdf")
	assay := flag.String("ask", "", "ask with this `program` instead")
	questions := flag.String("questions", "pdf/questions.txt", "`file` with a question in each line, for -ask")
	flag.Parse()
	if *assay != "" && flag.NArg() == 1 && *rounds > 0 {
		return ask(ctx, *assay, *questions, flag.Arg(0), *rounds)
	}
	if flag.NArg() == 0 || *rounds < 1 {
		return errors.New("usage: pdf [-rounds N] [-python PYTHON] FILES")
	}
	all, err := tools(*python)
	if err != nil {
		return err
	}
	fmt.Printf("%d rounds, %d cores\n\n", *rounds, runtime.NumCPU())
	fmt.Println("| file | pages | tool | pages/s | CPU s | peak MB | time |")
	fmt.Println("| --- | ---: | --- | ---: | ---: | ---: | ---: |")
	for _, file := range flag.Args() {
		if err := compareFile(ctx, file, all, *rounds); err != nil {
			return err
		}
	}
	return nil
}

// tools returns the tools that are installed, assay first.
func tools(python string) ([]tool, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	script := func(code string) func(file string) []string {
		return func(file string) []string { return []string{python, "-c", code, file} }
	}
	parser := func(file string) []string { return []string{self, childCommand, file} }
	out := []tool{{name: "assay", command: parser}, {name: "assay, first", command: parser, env: []string{"XDG_CACHE_HOME=", "HOME="}}}
	if _, err := exec.LookPath("pdftotext"); err == nil {
		out = append(out, tool{name: "pdftotext", command: func(file string) []string { return []string{"pdftotext", file, "-"} }})
	}
	for _, t := range []tool{
		{name: "pypdf", command: script("import sys, pypdf\nfor p in pypdf.PdfReader(sys.argv[1]).pages: print(len(p.extract_text()))")},
		{name: "pymupdf", command: script("import sys, pymupdf\nfor p in pymupdf.open(sys.argv[1]): print(len(p.get_text()))")},
	} {
		if exec.Command(python, "-c", "import "+t.name).Run() == nil {
			out = append(out, t)
		}
	}
	return out, nil
}

// compareFile prints the rows of a file.
func compareFile(ctx context.Context, file string, all []tool, rounds int) error {
	costs := make([][]cost, len(all))
	pages := 0
	for range rounds {
		for i, t := range all {
			c, n, err := t.run(ctx, file)
			if err != nil {
				return fmt.Errorf("%s: %s: %w", t.name, file, err)
			}
			if i == 0 {
				pages = n
			}
			costs[i] = append(costs[i], c)
		}
	}
	base := median(costs[0], func(c cost) time.Duration { return c.wall })
	for i, t := range all {
		wall := median(costs[i], func(c cost) time.Duration { return c.wall })
		cpu := median(costs[i], func(c cost) time.Duration { return c.cpu })
		peak := median(costs[i], func(c cost) int64 { return c.peak })
		fmt.Printf("| %s | %d | %s | %.0f | %.2f | %d | %.2f |\n", filepath.Base(file), pages, t.name,
			float64(pages)/wall.Seconds(), cpu.Seconds(), peak>>20, wall.Seconds()/base.Seconds())
	}
	return nil
}

// run reads a file. pages is the first number that the process printed, which only assay's is.
func (t tool) run(ctx context.Context, file string) (c cost, pages int, err error) {
	args := t.command(file)
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = append(os.Environ(), t.env...)
	start := time.Now()
	out, err := cmd.Output()
	c.wall = time.Since(start)
	if err != nil {
		return c, 0, err
	}
	_, _ = fmt.Sscan(string(out), &pages)
	return costOf(cmd, c.wall), pages, nil
}

// costOf returns the cost of a process that has ended, with its children.
func costOf(cmd *exec.Cmd, wall time.Duration) cost {
	usage := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	c := cost{wall: wall, cpu: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), peak: int64(usage.Maxrss)}
	if runtime.GOOS != "darwin" {
		c.peak <<= 10 // KiB
	}
	return c
}

func median[T cmp.Ordered](costs []cost, value func(cost) T) T {
	var values []T
	for _, c := range costs {
		values = append(values, value(c))
	}
	slices.Sort(values)
	return values[len(values)/2]
}
