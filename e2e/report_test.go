package e2e

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// shots is where the pages' pictures go, to look at them:
//
//	go test ./e2e -run ReportInChromium -shots /tmp/shots
var shots = flag.String("shots", "", "write pictures of the report's page into this `folder`")

// asked is the number of questions of the evaluation.
const asked = 1000

// evaluate runs an evaluation through the program and returns the report's file. It has 1,000
// questions over a document of 250 sections, some of them hostile.
func evaluate(t *testing.T) string {
	t.Helper()
	binary, err := build()
	if err != nil {
		t.Fatal(err)
	}
	u := user{binary: binary, home: t.TempDir()}
	dir := t.TempDir()
	docs, set, page := filepath.Join(dir, "handbook.md"), filepath.Join(dir, "questions.jsonl"), filepath.Join(dir, "report.html")
	text, questions := handbookOf(250)
	for file, data := range map[string][]byte{docs: text, set: questions} {
		if err := os.WriteFile(file, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	r := u.run(t, "eval", "answers", "--docs", docs, "--words", "--local", "--strategy", "static", "--out", filepath.Join(dir, "out"), "--report", page, set)
	if r.code != 0 {
		t.Fatalf("assay eval answers ends with %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	return page
}

// attempts are texts that a page must neither run, fetch nor be reversed by.
var attempts = []string{
	`</script><script>alert(1)</script>`, `<img src="https://example.com/pixel.png" onerror="alert(2)">`, `"><svg onload=alert(3)>`, `[click](javascript:alert(4))`,
	"\u202egnp.exe", "\u0000\u001b[31m", `<iframe src="https://example.com/"></iframe>`, `' onmouseover='alert(5)`, `<style>@import "https://example.com/a.css";</style>`,
	`{{.Policy}}`, strings.Repeat("W", 3000), "مرحبا بالعالم", `<meta http-equiv="refresh" content="0;url=https://example.com/">`, `<base href="https://example.com/">`,
}

// handbookOf returns a document with the given number of sections, and questions about them.
func handbookOf(sections int) (text, questions []byte) {
	var doc, set bytes.Buffer
	encoder := json.NewEncoder(&set)
	for i := range sections {
		aside := strings.ReplaceAll(attempts[i%len(attempts)], "\x00", "") // a file with NUL is not text
		fmt.Fprintf(&doc, "# Plan %d\n\nThe plan %d includes %d GB of storage and costs %d euros a month. %s\n\n", i, i, 10+i, 5+i%40, aside)
	}
	for i := range asked {
		c := map[string]any{
			"id": fmt.Sprintf("q%d", i), "question": fmt.Sprintf("How many GB of storage does the plan %d include?", i%sections), "answers": []string{fmt.Sprint(10 + i%sections)},
			"gold": []map[string]string{{"document": "handbook.md", "section": fmt.Sprintf("Plan %d", i%sections)}}, "slices": map[string]string{"type": []string{"number", "money"}[i/sections%2]},
		}
		switch i / sections {
		case 1:
			c["question"], c["answers"] = fmt.Sprintf("What does the plan %d cost?", i%sections), []string{fmt.Sprint(5 + i%sections%40)}
		case 2:
			c["question"] = fmt.Sprintf("How much storage is in the plan %d? %s", i%sections, attempts[i%len(attempts)])
		case 3:
			c["question"], c["unanswerable"] = fmt.Sprintf("Who invented the plan %d in Vienna?", i%sections), true
			delete(c, "answers")
			delete(c, "gold")
		}
		if err := encoder.Encode(c); err != nil {
			panic(err)
		}
	}
	return doc.Bytes(), set.Bytes()
}

// TestReportInChromium opens the report of 1,000 questions in a real browser without network
// access. The page must cause no console messages or requests, fit the width of a phone, and filter
// the table of questions.
func TestReportInChromium(t *testing.T) {
	b := startChromium(t) // first: skip the evaluation if there is no browser
	page := evaluate(t)
	for _, window := range []struct {
		name, scheme  string
		width, height int
	}{
		{"desktop-light", "light", 1200, 800}, {"desktop-dark", "dark", 1200, 800}, {"phone-light", "light", 360, 740}, {"phone-dark", "dark", 360, 740},
	} {
		v := b.open(page, window.width, window.height, window.scheme)
		if *shots != "" {
			v.shoot(filepath.Join(*shots, window.name))
		}
		checkFits(t, v, window.name)
		checkTable(t, v, window.name)
		checkLinks(t, v, window.name)
		v.call("Emulation.setEmulatedMedia", map[string]any{"media": "print"}, nil)
		v.settle()
		checkQuiet(t, v, window.name)
	}
}

// checkQuiet fails the test if a page caused console messages or requests.
func checkQuiet(t *testing.T, v *tab, name string) {
	t.Helper()
	for _, c := range v.complaints {
		t.Errorf("%s: the console says %s", name, c)
	}
	for _, r := range v.requests {
		t.Errorf("%s: the page asks for %s", name, r)
	}
}

// checkFits fails the test if the page scrolls sideways with every fold open, or if text lacks
// contrast with its background.
func checkFits(t *testing.T, v *tab, name string) {
	t.Helper()
	var got struct {
		Wide, Inner int
		Paper, Ink  string
		Dark        bool
	}
	v.eval(`(() => {
		for (const d of document.querySelectorAll('main > section details')) d.open = true;
		const s = getComputedStyle(document.body);
		const r = {wide: document.documentElement.scrollWidth, inner: innerWidth, paper: s.backgroundColor, ink: s.color, dark: matchMedia('(prefers-color-scheme: dark)').matches};
		for (const d of document.querySelectorAll('#rows details')) d.open = false;
		return r;
	})()`, &got)
	if got.Wide > got.Inner {
		t.Errorf("%s: the page is %d wide in a window of %d", name, got.Wide, got.Inner)
	}
	if dark := got.Paper != "rgb(255, 255, 255)"; dark != got.Dark || got.Paper == got.Ink {
		t.Errorf("%s: ink %s on paper %s", name, got.Ink, got.Paper)
	}
}

// A table is the visible state of the table of questions.
type table struct {
	Rows, Seen, Wrong int
	Shown             string
	Pages             bool
	First             string
}

// seen returns the current state of the table.
const seen = `(() => {
	const rows = [...document.querySelectorAll('#rows > tr')], on = rows.filter(r => r.getClientRects().length > 0);
	return {rows: rows.length, seen: on.length, wrong: on.filter(r => r.dataset.right === 'wrong').length,
		shown: document.getElementById('shown').textContent, pages: !document.getElementById('pages').hidden, first: on.length ? on[0].textContent : ''};
})()`

// choose sets a field of the filter and returns the table after it.
func (v *tab) choose(field, value string) table {
	v.t.Helper()
	var got table
	v.eval(fmt.Sprintf(`(() => { const f = document.getElementById('filter').elements[%q]; f.value = %q; f.dispatchEvent(new Event('input', {bubbles: true})); return %s })()`, field, value, seen), &got)
	return got
}

func checkTable(t *testing.T, v *tab, name string) {
	t.Helper()
	var all table
	v.eval(seen, &all)
	if all.Rows != asked || all.Seen != 50 || all.Shown != "1,000 of 1,000 rows" || !all.Pages {
		t.Errorf("%s: of %d questions the table has %d, shows %d and says %q", name, asked, all.Rows, all.Seen, all.Shown)
	}
	if got := v.choose("words", "Vienna  INVENTED 249"); got.Seen != 1 || got.Shown != "1 of 1,000 rows" || got.Pages {
		t.Errorf("%s: one question has all of three words, %d are shown: %q", name, got.Seen, got.Shown)
	}
	if got := v.choose("words", "no question says this"); got.Seen != 0 {
		t.Errorf("%s: %d questions have words that none has", name, got.Seen)
	}
	v.choose("words", "")
	if got := v.choose("right", "wrong"); got.Wrong != got.Seen {
		t.Errorf("%s: of the wrong, %d of %d shown are wrong", name, got.Wrong, got.Seen)
	}
	if got := v.choose("right", "right"); got.Wrong > 0 || got.Seen < 10 {
		t.Errorf("%s: of the right, %d are shown, %d of them wrong", name, got.Seen, got.Wrong)
	}
	v.choose("right", "")
	var second table
	v.eval(`(() => { document.getElementById('on').click(); return `+seen+` })()`, &second)
	if second.Seen != 50 || second.First == all.First {
		t.Errorf("%s: the second page shows %d rows and begins like the first: %t", name, second.Seen, second.First == all.First)
	}
	if got := v.choose("order", "score"); got.Seen != 50 {
		t.Errorf("%s: ordered by score, %d rows are shown", name, got.Seen)
	}
	v.choose("order", "")
}

// checkLinks follows a link to a question on another page of the table. It fails the test if the
// question is not shown and opened, or if an element that needs an accessible name has none.
func checkLinks(t *testing.T, v *tab, name string) {
	t.Helper()
	var got struct {
		Open, Seen       bool
		Nameless, Broken []string
		Right            bool
	}
	v.choose("words", "nothing that is there")
	v.eval(fmt.Sprintf(`new Promise(done => {
		location.hash = '#s0-q%d';
		setTimeout(() => {
			const row = document.getElementById('s0-q%d'), box = row.getBoundingClientRect();
			done({
				open: row.querySelector('details').open, seen: box.height > 0 && box.top < innerHeight,
				nameless: [...document.querySelectorAll('input, select, button, svg, [role=region]')].filter(e =>
					!(e.labels && e.labels.length) && !e.getAttribute('aria-label') && !e.getAttribute('aria-labelledby') && !e.textContent.trim()).map(e => e.outerHTML.slice(0, 80)),
				broken: [...document.querySelectorAll('a[href], [aria-labelledby]')].map(e => e.getAttribute('aria-labelledby') || e.getAttribute('href').slice(1))
					.filter(id => !document.getElementById(id)),
			});
		}, 300);
	})`, asked-1, asked-1), &got)
	if !got.Open || !got.Seen {
		t.Errorf("%s: a link to the last question opens it: %t, shows it: %t", name, got.Open, got.Seen)
	}
	if len(got.Nameless) > 0 || len(got.Broken) > 0 {
		t.Errorf("%s: without a name: %q; links to nowhere: %q", name, got.Nameless, got.Broken)
	}
}

// TestChromiumSeesFaults checks that the browser's checks detect faulty pages: each must cause a
// console message or a request.
func TestChromiumSeesFaults(t *testing.T) {
	b := startChromium(t)
	for name, test := range map[string]struct {
		page     string
		requests bool
	}{
		"script that breaks":         {page: `<script>'use strict'; missing.call()</script>`},
		"script that does not parse": {page: `<script>function (</script>`},
		"rejected promise":           {page: `<script>Promise.reject(new Error('x'))</script>`},
		"console":                    {page: `<script>console.error('x')</script>`},
		"dialogue":                   {page: `<script>alert(1)</script>`},
		"policy":                     {page: `<meta http-equiv="Content-Security-Policy" content="script-src 'none'"><script>1</script>`},
		"style against policy":       {page: `<meta http-equiv="Content-Security-Policy" content="style-src 'none'"><p style="color:red">`},
		"image":                      {page: `<img src="https://example.com/a.png">`, requests: true},
		"style sheet":                {page: `<link rel="stylesheet" href="https://example.com/a.css">`, requests: true},
		"font":                       {page: `<style>@font-face{font-family:f;src:url(https://example.com/f.woff)}p{font-family:f}</style><p>x`, requests: true},
		"fetch":                      {page: `<script>fetch('http://127.0.0.1:9/').catch(() => 0)</script>`, requests: true},
		"file beside it":             {page: `<img src="beside.png">`, requests: true},
	} {
		file := filepath.Join(t.TempDir(), "page.html")
		if err := os.WriteFile(file, []byte("<!DOCTYPE html><title>x</title>"+test.page), 0o644); err != nil {
			t.Fatal(err)
		}
		v := b.open(file, 360, 740, "light")
		if test.requests && len(v.requests) == 0 || !test.requests && len(v.complaints) == 0 {
			t.Errorf("%s: nothing is seen of it (console: %q, requests: %q)", name, v.complaints, v.requests)
		}
	}
	file := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(file, []byte(`<!DOCTYPE html><meta name="viewport" content="width=device-width, initial-scale=1"><title>x</title><p>fine<div style="width:500px">wide</div>`), 0o644); err != nil {
		t.Fatal(err)
	}
	v := b.open(file, 360, 740, "light")
	var wide, inner int
	v.eval(`document.documentElement.scrollWidth`, &wide)
	v.eval(`innerWidth`, &inner)
	if wide <= 360 {
		t.Errorf("a page with 500 pixels of width is %d wide in a window of %d", wide, inner)
	}
	checkQuiet(t, v, "a page without fault")
}
