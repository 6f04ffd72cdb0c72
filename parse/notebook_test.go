package parse

import (
	"strings"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/google/go-cmp/cmp"
)

const notebookSample = `{
 "cells": [
  {"cell_type": "markdown", "metadata": {}, "source": [
    "# Analysis\n",
    "\n",
    "Some *text*."
  ]},
  {"cell_type": "code", "execution_count": 1, "metadata": {}, "source": [
    "x = 1\n",
    "print(x)"
  ], "outputs": [
   {"output_type": "stream", "name": "stdout", "text": ["1\n"]},
   {"output_type": "display_data", "data": {"image/png": "iVBOR", "text/plain": ["<Figure size 1x1 with 1 Axes>"]}},
   {"output_type": "execute_result", "data": {"text/html": ["<table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table>"]}},
   {"output_type": "error", "ename": "ValueError", "evalue": "bad", "traceback": []}
  ]}
 ],
 "metadata": {"language_info": {"name": "python"}, "authors": [{"name": "Ann"}]},
 "nbformat": 4, "nbformat_minor": 5
}`

func TestNotebook(t *testing.T) {
	doc := parseString(t, "a.ipynb", notebookSample)
	checkDocument(t, doc, notebookSample)
	want := `heading1 "Analysis"
paragraph "Some text."
code "x = 1\nprint(x)"
code "1"
table_head "a | b"
table_row "1 | 2"
code "ValueError: bad"
`
	if diff := cmp.Diff(want, outline(doc)); diff != "" {
		t.Errorf("blocks (-want +got)\n%s", diff)
	}
	if doc.Type != "notebook" || doc.Title != "Analysis" || doc.Metadata["programming_language"].Text() != "python" {
		t.Errorf("%s %q %v", doc.Type, doc.Title, doc.Metadata)
	}
	whole := assay.Document{Text: doc.Text, Anchors: doc.Anchors}
	if line, _ := whole.Position(strings.Index(doc.Text, "print")); line != 10 {
		t.Errorf("line %d, want 10", line)
	}
	long := strings.Replace(notebookSample, `"1\n"`, `"`+strings.Repeat("o", 20_000)+`"`, 1)
	if got := parseString(t, "a.ipynb", long); !strings.Contains(got.Text, "… 12000 more bytes of output are left out") {
		t.Error("a long output is not cut with a note")
	}
}

func FuzzNotebook(f *testing.F) {
	fuzzFormat(f, "a.ipynb", notebookSample, `{"nbformat":3,"worksheets":[{"cells":[{"cell_type":"heading","level":2,"source":"a"},{"cell_type":"code","input":"b","outputs":[{"text":"\u001b[1mc"}]}]}]}`)
}

func TestSubtitles(t *testing.T) {
	vtt := "WEBVTT - A talk\nLanguage: en-US\n\nSTYLE\n::cue {}\n\n1\n00:00:01.000 --> 00:00:02.000 align:start\n<v Ann>Hello <i>there</i>,\n\n00:00:02.100 --> 00:00:03.000\n<v Ann>Hello there,\nfriends &amp; all.\n\n00:00:09.000 --> 00:00:10.500\n<v Bob>Bye.\n"
	doc := parseString(t, "a.vtt", vtt)
	checkDocument(t, doc, vtt)
	want := "paragraph \"Ann: Hello there, friends & all.\"\nparagraph \"Bob: Bye.\"\n"
	if diff := cmp.Diff(want, outline(doc)); diff != "" {
		t.Errorf("blocks (-want +got)\n%s", diff)
	}
	if doc.Title != "A talk" || doc.Metadata[assay.MetaLanguage].Text() != "en" || doc.Metadata["duration_seconds"].Number != 10.5 {
		t.Errorf("%q %v", doc.Title, doc.Metadata)
	}
	srt := "1\r\n00:00:01,000 --> 00:00:02,000\r\n{\\an8}<b>One</b>\r\ntwo\r\n\r\n2\r\n00:00:02,500 --> 00:00:03,000\r\nthree.\r\n"
	if diff := cmp.Diff("paragraph \"One two three.\"\n", outline(parseString(t, "a.srt", srt))); diff != "" {
		t.Errorf("blocks (-want +got)\n%s", diff)
	}
}

func FuzzSubtitles(f *testing.F) {
	fuzzFormat(f, "a.srt", "1\n00:00:01,000 --> 00:00:02,000\nOne\n\n2\n00:00:02,500 --> 00:00:03,000\n<v X>two", "WEBVTT\n\nNOTE x\n\n00:01.000 --> 00:02.000\na <00:01.5>b")
}
