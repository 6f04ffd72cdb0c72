// Package report writes the results of an evaluation as an HTML page for people, as JSON and as
// CSV. The main function is HTML.
//
// The page is self-contained and works offline. It includes its styles, its plots and the few lines
// of script that filter the questions. Its content security policy refuses every request and any
// other script. Questions, answers and names are treated as hostile text: they are escaped, and
// control and bidirectional characters are made visible. Without script the page shows the same,
// with all questions at once.
//
// The package computes no figures itself. They are those of the [answers.Report].
package report

import (
	"bufio"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"sync"

	"github.com/assay-rag/assay/eval/answers"
	"github.com/assay-rag/assay/internal/plot"
)

//go:embed page.html page.css page.js
var files embed.FS

var (
	style  = mustRead("page.css") + plot.CSS
	script = mustRead("page.js")
	pages  = sync.OnceValue(func() *template.Template {
		return template.Must(template.New("page.html").ParseFS(files, "page.html"))
	})
)

func mustRead(name string) string {
	data, err := files.ReadFile(name)
	if err != nil {
		panic(err)
	}
	return string(data)
}

// policy returns the page's content security policy. It forbids all requests, and allows only this
// package's own script and styles. An empty icon keeps browsers from requesting one.
func policy() string {
	return "default-src 'none'; script-src " + hash(script) + "; style-src " + hash(style) + "; img-src data:; base-uri 'none'; form-action 'none'"
}

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// document is the data of the template.
type document struct {
	Page
	Policy string
	Style  template.CSS
	Script template.JS
}

// HTML writes the page. It needs the outcomes of every system, from which it takes the questions,
// distributions and the share of right answers. It does not need the texts of their contexts. Equal
// reports give equal pages.
func HTML(w io.Writer, r answers.Report) error {
	out := bufio.NewWriterSize(w, 1<<16)
	data := document{NewPage(r), policy(), template.CSS(style), template.JS(script)}
	if err := pages().Execute(out, data); err != nil {
		return fmt.Errorf("write the page of %s: %w", r.Set, err)
	}
	return out.Flush()
}
