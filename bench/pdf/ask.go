package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// A question is one of a file of questions, asked about a PDF.
type question struct {
	text  string
	first []cost // with an empty cache
	next  []cost // with the store of the first
}

// ask asks the questions, one a line, about a PDF, each in a new process: first with an empty cache,
// then again with --no-cache. It prints the costs and looks up each quotation on its page by
// pdftotext.
func ask(ctx context.Context, assay, questions, file string, rounds int) error {
	list, err := readQuestions(questions)
	if err != nil {
		return err
	}
	pages := map[int]string{}
	var first, next []cost
	right, cited, answered := 0, 0, 0
	for i := range list {
		q := &list[i]
		var reply answer
		for range rounds {
			if reply, err = q.ask(ctx, assay, file); err != nil {
				return err
			}
		}
		found := 0
		for _, c := range reply.Citations {
			ok, err := onPage(ctx, file, c, pages)
			if err != nil {
				return err
			}
			if ok {
				found++
			} else {
				fmt.Printf("not on page %d: %s\n", c.Page, c.Quote)
			}
		}
		if len(reply.Citations) > 0 {
			answered++
		}
		right, cited = right+found, cited+len(reply.Citations)
		first, next = append(first, q.first...), append(next, q.next...)
		fmt.Printf("%s: %s, %d of %d quotations on their pages\n", q.text, reply.Status, found, len(reply.Citations))
	}
	fmt.Printf("\n%d questions, %d with citations; %d of %d quotations on their pages\n", len(list), answered, right, cited)
	printCosts("first answer, empty cache", first)
	printCosts("next answer", next)
	return nil
}

func printCosts(name string, costs []cost) {
	wall := median(costs, func(c cost) time.Duration { return c.wall })
	cpu := median(costs, func(c cost) time.Duration { return c.cpu })
	peak := median(costs, func(c cost) int64 { return c.peak })
	fmt.Printf("%s: %.1f s by the clock, %.1f s of processor time, %d MB (medians of %d)\n", name, wall.Seconds(), cpu.Seconds(), peak>>20, len(costs))
}

func readQuestions(file string) ([]question, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var list []question
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if text := strings.TrimSpace(lines.Text()); text != "" {
			list = append(list, question{text: text})
		}
	}
	if len(list) == 0 && lines.Err() == nil {
		return nil, fmt.Errorf("%s has no questions", file)
	}
	return list, lines.Err()
}

// An answer is the part of the output of assay ask --json that is measured.
type answer struct {
	Status    string     `json:"status"`
	Citations []citation `json:"citations"`
}

type citation struct {
	Page  int    `json:"page"`
	Link  string `json:"link"`
	Quote string `json:"quote"`
}

// ask asks twice in a cache of its own.
func (q *question) ask(ctx context.Context, assay, file string) (answer, error) {
	cache, err := os.MkdirTemp("", "pdf")
	if err != nil {
		return answer{}, err
	}
	defer os.RemoveAll(cache)
	t := tool{name: assay, env: []string{"XDG_CACHE_HOME=" + cache, "HOME=" + cache}, command: func(file string) []string {
		return []string{assay, "ask", "--json", "--no-cache", "--local", "--docs", file, q.text}
	}}
	first, _, err := t.output(ctx, file)
	if err != nil {
		return answer{}, err
	}
	next, out, err := t.output(ctx, file)
	if err != nil {
		return answer{}, err
	}
	q.first, q.next = append(q.first, first), append(q.next, next)
	var reply answer
	return reply, json.Unmarshal(out, &reply)
}

// output runs the tool. An answer without citations ends with a status other than 0.
func (t tool) output(ctx context.Context, file string) (cost, []byte, error) {
	args := t.command(file)
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = append(os.Environ(), t.env...)
	start := time.Now()
	out, err := cmd.Output()
	wall := time.Since(start)
	var exit *exec.ExitError
	if errors.As(err, &exit) && len(out) > 0 {
		err = nil
	}
	if err != nil {
		return cost{}, nil, fmt.Errorf("%s: %w", strings.Join(args, " "), err)
	}
	return costOf(cmd, wall), out, nil
}

// onPage reports whether the letters and digits of a quotation are on its page, or start there and
// go on on the next one, and whether the link is to that page.
func onPage(ctx context.Context, file string, c citation, pages map[int]string) (bool, error) {
	if !strings.HasSuffix(c.Link, filepath.Base(file)+"#page="+strconv.Itoa(c.Page)) {
		return false, nil
	}
	for _, n := range []int{c.Page, c.Page + 1} {
		if _, ok := pages[n]; ok {
			continue
		}
		out, err := exec.CommandContext(ctx, "pdftotext", "-f", strconv.Itoa(n), "-l", strconv.Itoa(n), file, "-").Output()
		if err != nil && n == c.Page {
			return false, fmt.Errorf("pdftotext: %w", err)
		}
		pages[n] = letters(string(out))
	}
	quote := letters(c.Quote)
	if strings.Contains(pages[c.Page], quote) {
		return true, nil
	}
	const start = 20 // letters on the first page
	head := []rune(quote)[:min(start, len([]rune(quote)))]
	return strings.Contains(pages[c.Page], string(head)) && strings.Contains(pages[c.Page]+pages[c.Page+1], quote), nil
}

// letters returns the letters and digits of s, without ligatures.
func letters(s string) string {
	s = strings.NewReplacer("ﬁ", "fi", "ﬂ", "fl", "ﬀ", "ff", "ﬃ", "ffi", "ﬄ", "ffl").Replace(s)
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return -1
	}, s)
}
