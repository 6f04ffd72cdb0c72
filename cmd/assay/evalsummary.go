package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/assay-rag/assay/eval/answers"
)

// report summarizes the results in the folder and prints them.
func (v *evaluating) report(ctx context.Context) error {
	v.shown.clear()
	f := v.flags
	r, err := answers.Summarise(ctx, v.set, v.folder, answers.SummaryOptions{
		Systems: f.strategies, Limit: f.limit, Version: version(), Outcomes: true, Baseline: v.baseline, Custom: ownMeasures(v.measures),
	})
	if err != nil {
		return err
	}
	if r.Show, err = v.showAnywhere(); err != nil {
		return err
	}
	if err := f.files.write(r); err != nil {
		return err
	}
	if f.writeBaseline != "" {
		if err := answers.BaselineOf(r, v.gate).Write(f.writeBaseline); err != nil {
			return err
		}
	}
	var gating *answers.Gating
	if v.gate != nil && v.baseline != nil {
		g := v.gate.Check(r, *v.baseline)
		gating = &g
	}
	if f.json {
		err = v.writeJSON(r, gating)
	} else {
		err = v.write(r, gating)
	}
	switch {
	case err != nil:
		return err
	case gating != nil && !gating.Passed:
		return end(exitGate)
	case allBroke(r):
		return end(exitError)
	}
	return nil
}

// allBroke reports whether questions were asked and all of them ended in an error, so that there is
// no measurement.
func allBroke(r answers.Report) bool {
	asked, broke := 0, 0
	for _, s := range r.Systems {
		for _, n := range s.Statuses {
			asked += n
		}
		broke += s.Lost[answers.Broke]
	}
	return asked > 0 && broke == asked
}

// An answersJSON is the JSON that --json prints.
type answersJSON struct {
	answers.Report
	*answers.GoldenCounts
	Folder string          `json:"folder"`
	Gate   *answers.Gating `json:"gate,omitempty"`
}

func (v *evaluating) writeJSON(r answers.Report, gating *answers.Gating) error {
	out := answersJSON{Report: r, Folder: v.folder.Dir, Gate: gating}
	if v.set.Golden {
		counts := answers.CountGolden(r.Systems[0])
		out.GoldenCounts = &counts
	}
	return writeJSON(v.app.stdout, out)
}

// write prints the report for people.
func (v *evaluating) write(r answers.Report, gating *answers.Gating) error {
	w := v.app.stdout
	if v.set.Golden {
		for _, s := range r.Systems {
			v.writeGolden(w, s)
		}
	} else {
		if err := v.writeReport(w, r); err != nil {
			return err
		}
	}
	if gating != nil {
		v.writeGating(w, *gating)
	}
	return nil
}

// writeGolden prints the golden questions that went wrong, followed by a summary line.
func (v *evaluating) writeGolden(w io.Writer, s answers.System) {
	for _, o := range s.Outcomes {
		if o.Right {
			continue
		}
		fmt.Fprintf(w, "wrong: %s (%s; %s)\n", o.Question, cmp.Or(string(o.Answer.Status), o.Error), stageWords(o.Lost))
		for _, cited := range answers.CitedSections(o) {
			fmt.Fprintf(w, "  cited %s\n", cited)
		}
	}
	c := answers.CountGolden(s)
	name := filepath.Base(v.path)
	if len(v.contenders) > 1 {
		name += ", " + s.Name
	}
	fmt.Fprintf(w, "%s: %d of %d cite a right section (%d with the first statement), %d of %d refused\n",
		name, c.Right, c.Answerable, c.RightFirst, c.Refused, c.Unanswerable)
}

// writeReport prints the figures, the stages at which questions were lost, and advice.
func (v *evaluating) writeReport(w io.Writer, r answers.Report) error {
	fmt.Fprintf(w, "%s: %s, search by %s\n", r.Set, count(r.Cases, "question", "questions"), cmp.Or(r.Index, "nothing yet"))
	if v.set.Unseen > 0 {
		fmt.Fprintf(w, "%s without a judgement left out\n", count(v.set.Unseen, "run", "runs"))
	}
	if err := writeFigures(w, r); err != nil {
		return err
	}
	for _, s := range r.Systems {
		title := ""
		if len(r.Systems) > 1 {
			title = s.Name + ": "
		}
		for _, name := range slices.Sorted(maps.Keys(s.NotJudged)) {
			said := fmt.Sprintf("%s%s: %s", title, name, s.Notes[name])
			fmt.Fprintln(w, wrap(oneLine(plainLine(said), mostOfError), "  ", v.app.width))
		}
		fmt.Fprintf(w, "\n%sstatuses: %s\n", title, counts(s.Statuses))
		if len(s.Lost) > 0 {
			lost := map[string]int{}
			for stage, n := range s.Lost {
				lost[stageWords(stage)] = n
			}
			fmt.Fprintf(w, "%slost: %s\n", title, counts(lost))
			for _, remedy := range s.Remedies {
				fmt.Fprintf(w, "  - %s\n", strings.TrimSpace(wrap(remedy, "    ", v.app.width)))
			}
		}
		writeSlices(w, title, s)
		if len(s.Worst) > 0 {
			fmt.Fprintf(w, "\n%sworst questions, with their runs:\n", title)
			for _, worst := range s.Worst {
				fmt.Fprintf(w, "  %s  %s: %s\n", cmp.Or(worst.Run, "no run          "), stageWords(worst.Lost), oneLine(plainLine(worst.Question), max(v.app.width-24-len(stageWords(worst.Lost)), 20)))
				if worst.Lost == answers.Broke || worst.Lost == answers.Mislabelled {
					fmt.Fprintf(w, "    %s\n", strings.TrimSpace(wrap(oneLine(plainLine(worst.Why), mostOfError), "    ", v.app.width)))
				}
			}
			if i := slices.IndexFunc(s.Worst, func(worst answers.Worst) bool { return worst.Run != "" }); i >= 0 {
				fmt.Fprintf(w, "see one with: %s\n", v.showCommand(s.Worst[i].Run))
			}
		}
	}
	fmt.Fprintf(w, "\noutcomes: %s\n", shortPath(filepath.Join(v.folder.Dir, "outcomes.jsonl")))
	return nil
}

// mostOfError is the number of columns of an error that are printed. The outcomes have the whole
// text.
const mostOfError = 400

// writeSlices prints the share of right answers by kind of question, with a line for each
// classification.
func writeSlices(w io.Writer, title string, s answers.System) {
	by := map[string][]string{}
	for _, slice := range s.Slices {
		for _, f := range slice.Figures {
			if f.Name == "right" {
				by[slice.By] = append(by[slice.By], fmt.Sprintf("%s %.2f (%d)", plainLine(slice.Value), f.Mean, f.Cases))
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(by)) {
		if len(by[name]) > 1 {
			fmt.Fprintf(w, "%sright by %s: %s\n", title, plainLine(name), strings.Join(by[name], ", "))
		}
	}
	if note := s.Notes["slices"]; note != "" {
		fmt.Fprintf(w, "%snot sliced by %s\n", title, plainLine(note))
	}
}

// showCommand returns the command that shows a run.
func (v *evaluating) showCommand(run string) string {
	command := "assay show " + cmp.Or(run, "RUN")
	switch {
	case v.at.remote.Remote():
		command += " --store " + shellQuote(v.at.String())
	case v.own || v.app.data != "":
		command += " --data " + shellQuote(shorter(v.at.dir))
	}
	return command
}

// showAnywhere is showCommand for any working directory and any run.
func (v *evaluating) showAnywhere() (string, error) {
	if v.at.remote.Remote() {
		return "assay show RUN --store " + shellQuote(v.at.String()), nil
	}
	store, err := filepath.Abs(v.at.dir)
	if err != nil {
		return "", err
	}
	return "assay show RUN --data " + shellQuote(store), nil
}

// stageWords formats a stage for people.
func stageWords(s answers.Stage) string { return strings.ReplaceAll(string(s), "_", " ") }

// counts lists numbers by name, in descending order.
func counts(of map[string]int) string {
	var parts []string
	for _, name := range slices.SortedFunc(maps.Keys(of), func(a, b string) int { return cmp.Or(of[b]-of[a], strings.Compare(a, b)) }) {
		parts = append(parts, fmt.Sprintf("%s %d", name, of[name]))
	}
	return strings.Join(parts, ", ")
}

// writeFigures prints a line for each measure and a column for each system.
func writeFigures(w io.Writer, r answers.Report) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprint(table, "measure")
	for i, s := range r.Systems {
		fmt.Fprintf(table, "\t%s", s.Name)
		if i > 0 || len(s.Against) > 0 {
			fmt.Fprintf(table, "\tagainst %s", s.Against[0].Other)
		}
	}
	fmt.Fprintln(table, "\tquestions\tby")
	judges := map[string]string{} // full names by short name
	for _, name := range figureNames(r) {
		fmt.Fprint(table, name)
		cases, by := 0, ""
		for i, s := range r.Systems {
			at := slices.IndexFunc(s.Figures, func(f answers.Figure) bool { return f.Name == name })
			if at < 0 {
				fmt.Fprint(table, "\t")
			} else {
				f := s.Figures[at]
				cases, by = max(cases, f.Cases), cmp.Or(by, f.By)
				fmt.Fprintf(table, "\t%s", figureWords(f))
			}
			if i > 0 || len(s.Against) > 0 {
				fmt.Fprintf(table, "\t%s", pairedWords(s, name))
			}
		}
		short, rest, longer := strings.Cut(by, " (")
		if longer {
			judges[short] = strings.TrimSuffix(rest, ")")
		}
		fmt.Fprintf(table, "\t%d\t%s\n", cases, short)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, short := range slices.Sorted(maps.Keys(judges)) {
		fmt.Fprintf(w, "%s: %s\n", short, judges[short])
	}
	return nil
}

// figureNames lists, in the order of the table, the measures that any system has and that are worth
// a line.
func figureNames(r answers.Report) []string {
	var names []string
	for _, s := range r.Systems {
		for _, f := range s.Figures {
			if !slices.Contains(names, f.Name) && !dull(r, f.Name) {
				names = append(names, f.Name)
			}
		}
	}
	return names
}

// dull reports whether a figure is uninformative: spending without model calls, or an alternative
// measure with the same value.
func dull(r answers.Report, name string) bool {
	for _, s := range r.Systems {
		for _, f := range s.Figures {
			spent := slices.Contains([]string{"calls", "tokens", "micros"}, f.Unit)
			switch {
			case f.Name != name:
			case name == "ndcg_linear@10":
				same := slices.ContainsFunc(s.Figures, func(o answers.Figure) bool { return o.Name == "ndcg@10" && o.Mean == f.Mean })
				if !same {
					return false
				}
			case !spent || f.Mean != 0:
				return false
			}
		}
	}
	return true
}

func figureWords(f answers.Figure) string {
	switch {
	case f.Unit == "":
		return figure(f.Mean, f.Low, f.High)
	case f.Low == f.High:
		return fmt.Sprintf("%.4g", f.Mean)
	}
	return fmt.Sprintf("%.4g ±%.2g", f.Mean, (f.High-f.Low)/2)
}

// pairedWords formats the difference of a figure, with its interval and p-value.
func pairedWords(s answers.System, name string) string {
	for _, d := range s.Against {
		if d.Figure == name && d.Other == s.Against[0].Other {
			return fmt.Sprintf("%+.3f (%+.3f to %+.3f, p %s)", d.Mean, d.Low, d.High, strings.Replace(fmt.Sprintf("%.3f", d.P), "0.000", "<0.001", 1))
		}
	}
	return ""
}

// writeGating prints the result of the gate.
func (v *evaluating) writeGating(w io.Writer, g answers.Gating) {
	for _, t := range g.Turned {
		was, is := "right", "wrong: "+stageWords(t.Lost)
		if t.Right {
			was, is = "wrong", "right"
		}
		fmt.Fprintf(w, "turned (%s → %s): %s", was, is, plainLine(t.Question))
		if t.Run != "" && !t.Right {
			fmt.Fprintf(w, " (run %s)", t.Run)
		}
		fmt.Fprintln(w)
	}
	for _, note := range g.Notes {
		fmt.Fprintf(w, "note: %s\n", note)
	}
	for _, f := range g.Failures {
		if f.Metric == "" {
			fmt.Fprintf(w, "gate: %s: %s\n", f.System, f.Why)
			continue
		}
		fmt.Fprintf(w, "gate: %s: %s was %.4g and is %.4g: %s\n", f.System, f.Metric, f.Was, f.Is, f.Why)
	}
	if g.Passed {
		fmt.Fprintf(w, "gate: passed (%s)\n", count(g.Checked, "figure", "figures"))
	} else {
		fmt.Fprintf(w, "gate: not passed\n")
	}
}
