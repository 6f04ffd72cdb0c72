package engine

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/tool"
	"github.com/assay-rag/assay/role"
)

// taskOutputs describes the output of each task, by the name of its prompt template. The empty name
// belongs to a verifier that is a service.
var taskOutputs = map[string]string{
	role.PlannerRole: "the plan", role.GraderRole: "a grade", role.GeneratorRole: "the answer", role.VerifierRole: "verdicts", "": "a verdict",
	role.RewriterRole: "other wordings", role.RouterTask: "the question's complexity", role.QuerierTask: "the next query", role.ClarifierTask: "what is meant",
	role.ScorerTask: "scores of the hits", role.RefinerTask: "the relevant parts of the hits", role.RetrievalGraderTask: "grades of the hits", role.SupportGraderTask: "what the sources support",
	role.AnalystTask: "an analysis", role.ReflectorTask: "whether it is complete", role.JudgeRole: "a judgement", role.CriticTask: "a critique",
	role.ActorRole: "the next action", role.AgentTask: "the next action", role.ActorPlanTask: "a plan", role.ActorCritiqueTask: "a critique", role.ReviserTask: "a revised plan", role.ExtractorTask: "names and facts", role.SummariserTask: "a summary", role.ComparerTask: "a comparison",
	role.AnswerGraderTask: "whether the answer responds to the question",
}

// summariser summarises a role's output in a few words. It returns "" if the output cannot be
// decoded.
type summariser func(output json.RawMessage) string

// summariserOf returns the summariser of outputs of type T.
func summariserOf[T any](say func(T) string) summariser {
	return func(output json.RawMessage) string {
		if v := decode[T](output); v != nil {
			return say(*v)
		}
		return ""
	}
}

// summarisers are the summarisers of the tasks whose output is worth summarising, by task.
var summarisers = map[string]summariser{
	role.ActorRole: summariserOf(actorSummary),
	role.ExtractorTask: summariserOf(func(x role.Extraction) string {
		return fmt.Sprintf("%d named, %d facts", len(x.Entities), len(x.Facts))
	}),
	role.ClarifierTask: summariserOf(func(c role.Clarity) string {
		if !c.Ambiguous {
			return "not ambiguous"
		}
		return "ambiguous, " + counted(len(c.Readings), "reading")
	}),
	role.SummariserTask: summariserOf(func(x role.Summary) string { return counted(len(x.Statements), "statement") }),
	role.ComparerTask:   summariserOf(func(x role.Contrast) string { return counted(len(x.Points), "point") + " compared" }),
	role.RewriterRole: summariserOf(func(r role.Rewriting) string {
		texts := make([]string, len(r.Queries))
		for i, q := range r.Queries {
			texts[i] = fmt.Sprintf("%.80q", q)
		}
		if len(texts) == 0 {
			return "the question unchanged"
		}
		return strings.Join(texts, ", ")
	}),
	role.RetrievalGraderTask: summariserOf(func(g role.RetrievalGrades) string {
		return tally(g.Grades, role.Relevant, role.PartlyRelevant, role.NotRelevant)
	}),
	role.SupportGraderTask: summariserOf(func(g role.SupportGrades) string {
		return tally(g.Grades, role.FullySupported, role.PartlySupported, role.NotSupported)
	}),
	role.AnswerGraderTask: summariserOf(func(g role.AnswerGrade) string {
		if g.Relevance == nil {
			return "relevance unknown"
		}
		return fmt.Sprintf("relevance %.2f", *g.Relevance) + listed("missing", g.Lacks)
	}),
	role.PlannerRole: summariserOf(func(r role.Revision) string { return said(string(r.Decision)+" the rest of the plan", r.Reason) }),
	role.RouterTask:  summariserOf(func(r role.Route) string { return said(string(r.Complexity), r.Reason) }),
	role.QuerierTask: summariserOf(func(n role.NextQuery) string {
		if n.Query == "" {
			return said("no other query is known", n.Reason)
		}
		return said(fmt.Sprintf("%q", n.Query), n.Reason)
	}),
	role.AnalystTask: summariserOf(func(a role.Analysis) string {
		n := 0
		for _, c := range a.Categories {
			n += len(c.Statements)
		}
		return counted(n, "statement") + " sorted" + listed("open", a.Open)
	}),
	role.ReflectorTask: summariserOf(func(r role.Reflection) string {
		return said(fmt.Sprintf("%s, coverage %.2f", r.Status, r.Coverage), r.Justification)
	}),
	role.JudgeRole: summariserOf(func(j role.Judgement) string { return string(j.Verdict) + listed("to revise", j.Revise) }),
	role.CriticTask: summariserOf(func(c role.Critique) string {
		return fmt.Sprintf("grounded %s, complete %s, relevant %s, clear %s; %s", c.Grounded, c.Complete, c.Relevant, c.Clear, counted(len(c.Remarks), "remark"))
	}),
}

// tally counts how often each grade was given: "3 relevant, 1 partly, 0 not".
func tally[T ~string](given []T, grades ...T) string {
	parts := make([]string, len(grades))
	for i, grade := range grades {
		n := 0
		for _, g := range given {
			if g == grade {
				n++
			}
		}
		parts[i] = fmt.Sprintf("%d %s", n, grade)
	}
	return strings.Join(parts, ", ")
}

// said joins a decision and its reason.
func said(what, reason string) string {
	if reason == "" {
		return what
	}
	return what + ": " + reason
}

// listed returns a list with its heading; "" if the list is empty.
func listed(what string, things []string) string {
	if len(things) == 0 {
		return ""
	}
	return "; " + what + ": " + strings.Join(things, ", ")
}

// roleSummary describes the outcome of a role's job.
func roleSummary(rec assay.Record) string {
	name := rec.Path[strings.LastIndexByte(rec.Path, '/')+1:]
	if o := decode[role.Outcome](rec.Output); o != nil && o.Failure != "" {
		return "the " + name + " failed: " + o.Failure
	}
	if say := summarisers[name]; say != nil {
		if text := say(rec.Output); text != "" {
			return name + ": " + text
		}
	}
	return name
}

// An actorOutput is the output of any of an actor's jobs: its plan, an action or a critique.
type actorOutput struct {
	role.Action
	Goals      []role.SubQuestion `json:"sub_questions"`
	Sufficient *bool              `json:"sufficient"`
	Missing    []string           `json:"missing"`
	Next       []string           `json:"next_searches"`
}

func actorSummary(a actorOutput) string {
	switch {
	case a.Failure != "":
		return "it failed: " + a.Failure
	case a.Sufficient != nil && *a.Sufficient:
		return "criticises: sufficient"
	case a.Sufficient != nil:
		return "criticises: not sufficient" + listed("missing", a.Missing) + listed("next", a.Next)
	case len(a.Goals) > 0:
		texts := make([]string, len(a.Goals))
		for i, g := range a.Goals {
			texts[i] = fmt.Sprintf("%.80q", g.Text)
		}
		return "plans " + strings.Join(texts, ", ")
	case a.Done:
		return "done"
	}
	names := make([]string, len(a.Calls))
	for i, c := range a.Calls {
		names[i] = fmt.Sprintf("%.40q", c.Name)
	}
	return "calls " + strings.Join(names, ", ")
}

// toolSummary describes the outcome of a tool call.
func toolSummary(rec assay.Record) string {
	in, out := decode[tool.Call](rec.Input), decode[tool.Output](rec.Output)
	if in == nil || out == nil {
		return string(rec.Kind)
	}
	switch {
	case out.Refused != "":
		return in.Tool + ": " + out.Refused
	case out.Results != nil:
		return fmt.Sprintf("%s: %s", in.Tool, counted(len(out.Results.Hits), "hit"))
	case out.Page != nil:
		return in.Tool + ": " + pageSummary(*out.Page)
	}
	return in.Tool
}

// pageSummary names the part of a document that was read.
func pageSummary(p tool.Page) string {
	return fmt.Sprintf("bytes %d to %d of %d of %s", p.Start, p.End, p.Total, p.URI)
}

// isPage reports whether a step read a page of a document rather than cited passages.
func isPage(rec assay.Record) bool {
	return rec.Kind == assay.StepRead && len(rec.Output) > 0 && rec.Output[0] == '{'
}

// pageOf returns the page of a document that a step read; nil: the step read no page.
func pageOf(rec assay.Record) *tool.Page {
	if !isPage(rec) {
		return nil
	}
	return decode[tool.Page](rec.Output)
}
