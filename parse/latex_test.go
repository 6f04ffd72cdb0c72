package parse

import (
	"strings"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/google/go-cmp/cmp"
)

const latexSample = `\documentclass[12pt]{article} % a comment
\usepackage{graphicx}
\newcommand{\prog}[1]{\texttt{#1}}
\newcommand{\who}[2][nobody]{#1 and #2}
\def\inst{The Institute}
\newtheorem{thm}{Theorem}
\title{On \emph{Things}}
\author{Ann B \and Carl D}
\date{2024-05-06}
\begin{document}
\maketitle
\begin{abstract}
Short ` + "``abstract''" + ` text.
\end{abstract}
\section{Intro}\label{sec:intro}
Caf\'e, na\"{\i}ve, \o re --- it's 50\% of \prog{tool} by \who{me}. See
Section~\ref{sec:intro} and \cite[p.~3]{knuth}. % gone
More text\footnote{A \textbf{note}.} at \inst.

Inline $a^2 + b^2$ and
\begin{equation}
  E = mc^2 \label{eq:e}
\end{equation}
\subsection*{Lists}
\begin{itemize}
\item one
  \begin{enumerate}
  \item two
  \item three
  \end{enumerate}
\item[Key] four
\end{itemize}
\begin{table}
\caption{Numbers}
\begin{tabular}{l|r}
\toprule
Name & Value \\
\midrule
A \& B & \multicolumn{1}{c}{1} \\
\multicolumn{2}{l}{both} \\
\bottomrule
\end{tabular}
\end{table}
\begin{verbatim}
x % kept \foo
  y
\end{verbatim}
\begin{thm}[Main] It holds.\end{thm}
\begin{figure}\includegraphics[alt={A plot}]{p.png}\caption{The plot}\end{figure}
\href{http://x.example}{link text}, \verb|a_b|, \unknown{kept} \vspace{2cm}end.
\input{other}
\end{document}
ignored`

func TestLaTeX(t *testing.T) {
	doc := parseString(t, "a.tex", latexSample)
	checkDocument(t, doc, latexSample)
	want := `heading1 "On Things"
paragraph "Ann B; Carl D"
paragraph "2024-05-06"
heading2 "Abstract"
paragraph "Short “abstract” text."
heading2 "Intro"
paragraph "Café, naïve, øre — it’s 50% of tool by nobody and me. See\nSection sec:intro and [knuth, p. 3]. More text[1] at The Institute."
footnote "[1] A note."
paragraph "Inline a^2 + b^2 and"
formula "E = mc^2"
heading3 "Lists"
list_item1 "- one"
list_item2 "  1. two"
list_item2 "  2. three"
list_item1 "Key four"
caption "Numbers"
table_head "Name | Value"
table_row "A & B | 1"
table_row "both"
code "x % kept \\foo\n  y"
paragraph "Theorem (Main). It holds."
figure "A plot"
caption "The plot"
paragraph "link text, a_b, kept end."
paragraph "include: other"
`
	if diff := cmp.Diff(want, outline(doc)); diff != "" {
		t.Errorf("blocks (-want +got)\n%s", diff)
	}
	if doc.Type != "latex" || doc.Title != "On Things" || doc.Metadata[assay.MetaAuthor].Text() == "" {
		t.Errorf("%s %q %v", doc.Type, doc.Title, doc.Metadata)
	}
	at := strings.Index(doc.Text, "More text")
	whole := assay.Document{Text: doc.Text, Anchors: doc.Anchors}
	if line, _ := whole.Position(at); line != 18 {
		t.Errorf("line %d, want 18", line)
	}
}

// TestLaTeXBomb checks that macros that double the text at each level stop at the limit.
func TestLaTeXBomb(t *testing.T) {
	var text strings.Builder
	text.WriteString("\\newcommand{\\aa}{word word word}\n")
	for c := 'b'; c <= 'z'; c++ {
		text.WriteString("\\newcommand{\\a" + string(c) + "}{\\a" + string(c-1) + "\\a" + string(c-1) + "}\n")
	}
	text.WriteString("\\begin{document}start \\az end \\newcommand{\\loop}{\\loop\\loop}\\loop\\end{document}")
	doc := parseString(t, "a.tex", text.String())
	if len(doc.Text) > 8<<20 || !strings.Contains(doc.Text, "end") {
		t.Errorf("%d bytes", len(doc.Text))
	}
}

func FuzzLaTeX(f *testing.F) {
	fuzzFormat(f, "a.tex", latexSample, "\\ref{a\n\n\nb} c\\bibitem{a\nb}", "\\documentclass{beamer}\\begin{frame}<1>{A}\\item<2>[x]\\end{frame}\\(a", "\\def\\a#1{#1#1}\\a{\\a{b}}\\begin{tabular}{ll}\\multirow{2}{*}{a}&b\\\\&c\\end{tabular}")
}
