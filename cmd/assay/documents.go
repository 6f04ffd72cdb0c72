package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/internal/markdown"
	"github.com/assay-rag/assay/source"
)

// documentsFlags are the flags of documents.
type documentsFlags struct {
	json        bool
	failed      bool
	collections []string
}

func (a *app) documentsCommand() *cobra.Command {
	var f documentsFlags
	cmd := &cobra.Command{
		Use:   "documents",
		Short: "List the ingested documents",
		Long: `Documents lists the documents that questions are answered from, with the collection,
type, path and title of each, the other paths of the same content, and pages without text.
With --docs it lists the documents of that store.`,
		Example: `  assay documents
  assay documents --collection policies --json
  assay documents --failed
  assay documents show handbook/travel.md`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.failed {
				return a.failedDocuments(cmd.Context(), f)
			}
			return a.documents(cmd.Context(), f)
		},
	}
	cmd.Flags().BoolVar(&f.json, "json", false, "print a JSON list")
	cmd.Flags().BoolVar(&f.failed, "failed", false, "list the documents that could not be parsed, with the reasons")
	cmd.Flags().StringArrayVar(&f.collections, "collection", nil, "list only this `collection`; may be repeated")
	cmd.AddCommand(a.documentCommand())
	return cmd
}

func (a *app) documents(ctx context.Context, f documentsFlags) error {
	e, err := a.openExisting(ctx, looking)
	if err != nil {
		return err
	}
	defer e.Close()
	list := []engine.DocumentSummary{}
	for d, err := range e.Documents(ctx, assay.Local(), f.collections...) {
		if err != nil {
			return err
		}
		list = append(list, engine.SummaryOfDocument(d))
	}
	if f.json {
		return writeJSON(a.stdout, list)
	}
	for _, d := range list {
		fmt.Fprintf(a.stdout, "%-12s  %-8s  %s  %s\n", d.Collection, d.Metadata[assay.MetaType].Text(), shortPath(d.URI), title(d.Title, nil))
		for _, uri := range d.Aliases {
			fmt.Fprintf(a.stdout, "%24s  also %s\n", "", shortPath(uri))
		}
		if d.Pages != nil && d.Pages.NoText+d.Pages.Failed > 0 {
			fmt.Fprintf(a.stdout, "%24s  %s\n", "", pagesLine(*d.Pages))
		}
	}
	_, err = fmt.Fprintln(a.stdout, count(len(list), "document", "documents"))
	return err
}

// failedDocuments lists the documents that could not be parsed.
func (a *app) failedDocuments(ctx context.Context, f documentsFlags) error {
	e, err := a.openExisting(ctx, looking)
	if err != nil {
		return err
	}
	defer e.Close()
	list, err := e.FailedDocuments(ctx, assay.Local(), f.collections...)
	if err != nil {
		return err
	}
	if f.json {
		return writeJSON(a.stdout, list)
	}
	for _, d := range list {
		fmt.Fprintf(a.stdout, "%-12s  %s  %s: %s\n", d.Collection, d.Time.Local().Format(time.DateTime), shortPath(d.URI), plainLine(d.Detail))
	}
	_, err = fmt.Fprintln(a.stdout, count(len(list), "failed document", "failed documents"))
	return err
}

// documentFlags are the flags of documents show.
type documentFlags struct {
	as          string
	json        bool
	collections []string
}

func (a *app) documentCommand() *cobra.Command {
	var f documentFlags
	cmd := &cobra.Command{
		Use:   "show ID|URI|PATH",
		Short: "Show the text of a document",
		Long: `Show prints the text of a document as assay has read it: as Markdown with its tables, as
blocks with their kinds and places, or as the plain text that citations point into.`,
		Example: `  assay documents show handbook/travel.md
  assay documents show --as blocks 'mail/offer.eml!/prices.pdf'
  assay documents show --json handbook/travel.md | jq .structure.tables`,
		Args: oneArgument("ID, URI or PATH"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.showDocument(cmd.Context(), args[0], f) },
	}
	cmd.Flags().StringVar(&f.as, "as", "markdown", "`form`: markdown, blocks or text")
	cmd.Flags().BoolVar(&f.json, "json", false, "print the document with its structure as one JSON object")
	cmd.Flags().StringArrayVar(&f.collections, "collection", nil, "the `collection` of the document, if several have it")
	return cmd
}

func (a *app) showDocument(ctx context.Context, name string, f documentFlags) error {
	write := map[string]func(io.Writer, assay.Document) error{"markdown": writeAsMarkdown, "blocks": writeBlocks, "text": writeText}[f.as]
	if write == nil {
		return usagef("--as %q is none of markdown, blocks and text", f.as)
	}
	e, err := a.openExisting(ctx, looking)
	if err != nil {
		return err
	}
	defer e.Close()
	d, err := findDocument(ctx, e, name, f.collections)
	switch {
	case errors.Is(err, assay.ErrNotFound):
		return hinted{err, "list them with: assay documents"}
	case err != nil:
		return err
	case f.json:
		return writeJSON(a.stdout, engine.ViewOfDocument(d))
	}
	return write(a.stdout, d)
}

// findDocument returns the document with an ID, a URI, or a path that may be relative.
func findDocument(ctx context.Context, e *engine.Engine, name string, collections []string) (assay.Document, error) {
	d, err := e.FindDocument(ctx, assay.Local(), name, collections...)
	if !errors.Is(err, assay.ErrNotFound) {
		return d, err
	}
	file, inside, isPart := strings.Cut(name, assay.PartSeparator)
	abs, absErr := filepath.Abs(file)
	if absErr != nil {
		return d, err
	}
	uri := source.URI(abs)
	if isPart {
		uri += assay.PartSeparator + inside
	}
	if d, again := e.FindDocument(ctx, assay.Local(), uri, collections...); !errors.Is(again, assay.ErrNotFound) {
		return d, again
	}
	return d, err
}

func writeAsMarkdown(w io.Writer, d assay.Document) error {
	_, err := io.WriteString(w, strings.TrimRight(markdown.Render(d.Text, d.Structure), "\n")+"\n")
	return err
}

func writeText(w io.Writer, d assay.Document) error {
	_, err := io.WriteString(w, d.Text+"\n")
	return err
}

// writeBlocks prints a line for each block: kind and level, span, place with the rectangle on its
// page, how its text was obtained, and the text.
func writeBlocks(w io.Writer, d assay.Document) error {
	var b strings.Builder
	boxes := map[int][]assay.Box{}
	for _, box := range d.Structure.Boxes {
		boxes[box.Block] = append(boxes[box.Block], box)
	}
	for i, block := range d.Structure.Blocks {
		kind := string(block.Kind)
		if block.Level > 0 {
			kind += fmt.Sprint(" ", block.Level)
		}
		at := ""
		switch line, page := d.Position(block.Start); {
		case page > 0:
			at = fmt.Sprintf("page %d", page)
		case line > 0:
			at = fmt.Sprintf("line %d", line)
		}
		for _, box := range boxes[i] {
			at += fmt.Sprintf(" (%.0f,%.0f–%.0f,%.0f)", box.X0, box.Y0, box.X1, box.Y1)
		}
		from := d.Structure.ProvenanceOf(block.Start, block.End)
		text := strings.Join(strings.Fields(d.Text[block.Start:block.End]), " ")
		fmt.Fprintf(&b, "%-12s  %6d–%-6d  %-9s  %s%s\n", kind, block.Start, block.End, at, obtained(from.Kind, from.Confidence, from.Model), text)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// obtained describes how text was obtained that a source does not contain as text, with a colon
// after it. It is empty for text of the source.
func obtained(kind assay.ProvenanceKind, confidence float32, model string) string {
	label := plainLine(kind.Label(confidence, model))
	if label == "" {
		return ""
	}
	return label + ": "
}
