package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/eval/metric"
	"github.com/assay-rag/assay/eval/testset"
	"github.com/assay-rag/assay/ground"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/store"
)

// measureStatements lets the local verifier judge each statement against the passages that contain
// its source. The statement is cut into claims like an answer, and passes if all of its claims are
// supported.
func (w Sets) measureStatements(ctx context.Context, m *meter, rows []int) error {
	files, err := w.documents("statements")
	if err != nil {
		return err
	}
	var reader llm.Reader
	if m.opts.Reader != nil {
		if reader, err = m.opts.Reader(); err != nil {
			return err
		}
	}
	verifier := engine.LocalVerifier(reader)
	return m.with(ctx, files, engine.Models{}, func(e *engine.Engine) error {
		passages, err := passagesOf(ctx, e)
		if err != nil {
			return err
		}
		return m.each(ctx, "statements", rows, func(ctx context.Context, row int) (Outcome, error) {
			s := w.Statements[row]
			cited := holding(passages[collectionOf("statements", s.Document)], s.Source)
			if len(cited) == 0 {
				return Outcome{}, fmt.Errorf("no passage of %s contains its source: %w", s.Document, assay.ErrInvalid)
			}
			o := Outcome{Kind: s.Kind, Asked: s.Statement, Got: string(assay.Supported)}
			for _, c := range ground.Cut(s.Statement, []int{1}) {
				j, err := verifier.Verify(ctx, c.Text, cited)
				if err != nil {
					return o, err
				}
				if j.Verdict != assay.Supported {
					o.Got, o.Answer = string(j.Verdict), j.Reason
				}
			}
			passed := o.Got == string(assay.Supported)
			if s.Label == "false" {
				o.mark(markCaught, !passed)
			} else {
				o.mark(markRefused, !passed)
			}
			return o, nil
		})
	})
}

// passagesOf returns the passages of each collection as claims cite them.
func passagesOf(ctx context.Context, e *engine.Engine) (map[string][]ground.Passage, error) {
	passages := map[string][]ground.Passage{}
	for entry, err := range e.Entries(ctx, assay.Local()) {
		if err != nil {
			return nil, err
		}
		for _, c := range entry.Chunks {
			passages[entry.Document.Collection] = append(passages[entry.Document.Collection], passageOfChunk(entry, c))
		}
	}
	return passages, nil
}

func passageOfChunk(entry store.Entry, c assay.Chunk) ground.Passage {
	text := entry.Document.Text[c.Start:c.End]
	return ground.Passage{Quote: text, Context: text, Heading: append([]string{entry.Document.Title}, c.Headings...)}
}

// holding returns the passages that contain the words of any source. The text of a passage has no
// Markdown markup.
func holding(passages []ground.Passage, sources []string) []ground.Passage {
	var held []ground.Passage
	for _, p := range passages {
		if slices.ContainsFunc(sources, func(s string) bool { return metric.Contains(p.Context, []string{s}) == 1 }) {
			held = append(held, p)
		}
	}
	return held
}

// documents reads the Markdown files in a subfolder of the sets. Each gets a collection of its own.
func (w Sets) documents(folder string) ([]file, error) {
	names, err := filepath.Glob(filepath.Join(w.Dir, folder, "*.md"))
	if err != nil {
		return nil, err
	}
	var files []file
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		base := filepath.Base(name)
		files = append(files, file{collectionOf(folder, strings.TrimSuffix(base, ".md")), base, string(text)})
	}
	return files, nil
}

// collectionOf returns the collection name of a document. No question contains it.
func collectionOf(folder, document string) string { return folder + "-" + document }

// measureNearMisses asks each question with static, once over its paragraph alone and once over all
// paragraphs. A right answer contains the span. An unanswerable question is falsely answered if any
// claim is shown.
func (w Sets) measureNearMisses(ctx context.Context, m *meter, rows []int) error {
	set, err := testset.ReadSet(filepath.Join(m.opts.Data, "data", "retrieval", "xquad-en"))
	if err != nil {
		return err
	}
	var files []file
	collection := map[string]string{}
	for i, p := range set.Passages {
		collection[p.ID] = fmt.Sprintf("p%03d", i)
		title := strings.ReplaceAll(p.Title, "_", " ")
		files = append(files, file{collection[p.ID], "paragraph.md", "# " + title + "\n\n" + p.Text + "\n"})
	}
	return m.with(ctx, files, engine.Models{}, func(e *engine.Engine) error {
		for _, in := range []struct {
			set   string
			where func(NearMiss) string
		}{
			{"nearmiss, its paragraph", func(q NearMiss) string { return collection[q.Paragraph] }},
			{"nearmiss, all paragraphs", func(NearMiss) string { return "" }},
		} {
			err := m.each(ctx, in.set, rows, func(ctx context.Context, row int) (Outcome, error) {
				q := w.NearMisses[row]
				if collection[q.Paragraph] == "" {
					return Outcome{}, fmt.Errorf("paragraph %s does not exist: %w", q.Paragraph, assay.ErrInvalid)
				}
				answer, o, err := ask(ctx, e, "static", in.where(q), q.Question)
				o.Kind = q.Made
				if q.Answerable {
					o.mark(markRight, len(answer.Claims) > 0 && metric.Says(answer.Text, *q.Answer))
				} else {
					o.mark(markFalse, len(answer.Claims) > 0)
				}
				return o, err
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// measureConflicts asks each question over its two documents in whole runs.
func (w Sets) measureConflicts(ctx context.Context, m *meter, rows []int) error {
	name := func(row int) string { return fmt.Sprintf("case%03d", row) }
	var files []file
	for _, row := range rows {
		c := w.Conflicts[row]
		for i, d := range []Text{c.A, c.B} {
			files = append(files, file{name(row), fmt.Sprintf("%d.md", i+1), "# " + d.Title + "\n\n" + d.Text + "\n"})
		}
	}
	return m.with(ctx, files, engine.Models{}, func(e *engine.Engine) error {
		return m.each(ctx, "conflicts", rows, func(ctx context.Context, row int) (Outcome, error) {
			c := w.Conflicts[row]
			answer, o, err := ask(ctx, e, "", name(row), c.Question)
			o.Kind = c.Kind
			mark := markAlarm
			if c.Conflict {
				mark = markConflict
			}
			o.mark(mark, answer.Status == assay.Conflicting)
			return o, err
		})
	})
}

// measureEveryday asks the questions over the manuals. Each manual has a store of its own.
func (w Sets) measureEveryday(ctx context.Context, m *meter, rows []int) error {
	for _, corpus := range corporaOf(w.Everyday) {
		var of []int
		for _, row := range rows {
			if w.Everyday[row].Corpus == corpus {
				of = append(of, row)
			}
		}
		if len(of) == 0 {
			continue
		}
		files, err := w.manual(m.opts.Data, corpus)
		if err != nil {
			return err
		}
		err = m.with(ctx, files, engine.Models{}, func(e *engine.Engine) error {
			return m.everyday(ctx, e, "everyday", w.Everyday, of, func(EverydayQuestion) string { return "" })
		})
		if err != nil {
			return fmt.Errorf("%s: %w", corpus, err)
		}
	}
	return nil
}

func corporaOf(questions []EverydayQuestion) []string {
	var corpora []string
	known := map[string]bool{}
	for _, q := range questions {
		if !known[q.Corpus] {
			known[q.Corpus] = true
			corpora = append(corpora, q.Corpus)
		}
	}
	return corpora
}

// manual returns the parts of a manual that are asked about. Files other than Markdown are stored
// as plain text.
func (w Sets) manual(data, corpus string) ([]file, error) {
	var documents []struct {
		ID    string `json:"_id"`
		Title string `json:"title"`
		Text  string `json:"text"`
	}
	if err := readWritten(filepath.Join(data, "data", "corpora", corpus+".jsonl"), &documents); err != nil {
		return nil, err
	}
	texts, titles := map[string]string{}, map[string]string{}
	for _, d := range documents {
		texts[d.ID], titles[d.ID] = d.Text, d.Title
	}
	var files []file
	for _, id := range w.Parts[corpus] {
		text, ok := texts[id]
		if !ok {
			return nil, fmt.Errorf("document %s does not exist in %s: %w", id, corpus, assay.ErrInvalid)
		}
		name := id
		if ext := path.Ext(id); ext != ".md" { // the title of plain text is its file name
			title := cmp.Or(titles[id], strings.TrimSuffix(path.Base(id), ext))
			name = path.Join(path.Dir(id), strings.ReplaceAll(title, "/", "-")+".txt")
		}
		files = append(files, file{corpus, name, text})
	}
	return files, nil
}

// measureHandbook asks each question over its document in everyday-docs.
func (w Sets) measureHandbook(ctx context.Context, m *meter, rows []int) error {
	files, err := w.documents("everyday-docs")
	if err != nil {
		return err
	}
	return m.with(ctx, files, engine.Models{}, func(e *engine.Engine) error {
		return m.everyday(ctx, e, "handbook", w.Handbook, rows, func(q EverydayQuestion) string { return collectionOf("everyday-docs", q.Document) })
	})
}

// cleanWords is the greatest number of words of a clean answer.
const cleanWords = 60

// everyday asks questions in whole runs. An answer is right if all patterns match its text without
// citation numbers.
func (m *meter) everyday(ctx context.Context, e *engine.Engine, set string, questions []EverydayQuestion, rows []int, where func(EverydayQuestion) string) error {
	return m.each(ctx, set, rows, func(ctx context.Context, row int) (Outcome, error) {
		q := questions[row]
		answer, o, err := ask(ctx, e, "", where(q), q.Question)
		if err != nil {
			return o, err
		}
		o.Kind = q.Kind
		text := metric.Uncited(answer.Text)
		if !q.Answerable {
			o.mark(markFalse, len(answer.Claims) > 0)
			return o, nil
		}
		holds, err := matchesAll(q.Answer, text)
		if err != nil {
			return o, err
		}
		holds = holds && len(answer.Claims) > 0
		o.mark(markHolds, holds)
		o.mark(markClean, holds && len(strings.Fields(text)) <= cleanWords)
		if q.OtherWords {
			o.mark(markOther, holds)
		}
		if len(q.Complete) > 0 {
			complete, err := matchesAll(q.Complete, text)
			if err != nil {
				return o, err
			}
			o.mark(markComplete, complete && len(answer.Claims) > 0)
		}
		return o, nil
	})
}

// matchesAll reports whether all patterns match. Letter case is ignored.
func matchesAll(patterns []string, text string) (bool, error) {
	all := true
	for _, p := range patterns {
		re, err := regexp.Compile("(?i)" + p)
		if err != nil {
			return false, fmt.Errorf("pattern %q: %w: %w", p, err, assay.ErrInvalid)
		}
		all = all && re.MatchString(text)
	}
	return all, nil
}
