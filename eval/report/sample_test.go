package report

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/eval/answers"
	"github.com/assay-rag/assay/eval/metric"
	"github.com/assay-rag/assay/eval/stat"
	"github.com/assay-rag/assay/eval/testset"
)

// hostile holds texts that may occur as questions, answers and names.
var hostile = []string{
	`</script><script>alert(1)</script>`, `<img src=x onerror=alert(1)>`, `"><svg onload=alert(1)>`, `javascript:alert(1)`, `]]><!-- --><style>*{display:none}</style>`,
	"a\x00b", "\u202egnp.exe\u202c", "\u2066isolated", "\xff\xfe", `{{.Policy}}`, "=HYPERLINK(\"http://example.com\")", "@SUM(1)", "\u2028\u2029", "مرحبا بالعالم", "`${alert(1)}`", "'onmouseover='alert(1)",
	"https://example.com/a.png", "![x](https://example.com/a.png)",
}

// sample returns a report of n questions for each of the systems. Equal arguments give equal
// reports.
func sample(n int, systems ...string) answers.Report {
	random := rand.New(rand.NewPCG(1, 2))
	began := time.Date(2026, 11, 20, 9, 30, 0, 0, time.UTC)
	r := answers.Report{Set: "handbook", Cases: n, Began: began, Version: "0.1.0", Index: "gte-small/384@17"}
	for k, name := range systems {
		s := answers.System{Name: name, Lost: map[answers.Stage]int{}, Statuses: map[string]int{}, Notes: map[string]string{"faithfulness": "of 3 answers no claim could be judged"}}
		for i := range n {
			s.Outcomes = append(s.Outcomes, sampleOutcome(random, name, i, 0.6+0.1*float64(k), began))
		}
		summarise(&s)
		if k > 0 {
			for _, f := range s.Figures {
				s.Against = append(s.Against, difference(s, r.Systems[0], f.Name))
			}
		}
		r.Systems = append(r.Systems, s)
	}
	return r
}

func sampleOutcome(random *rand.Rand, system string, i int, quality float64, began time.Time) answers.Outcome {
	o := answers.Outcome{System: system, Run: fmt.Sprintf("run_%06x", random.Uint32()>>8), Began: began}
	o.ID, o.Question = fmt.Sprintf("q%04d", i), fmt.Sprintf("How many days of leave does an employee of grade %d have?", i)
	if i%29 == 7 {
		o.Question += " " + hostile[i/29%len(hostile)]
	}
	o.Slices = map[string]string{"type": []string{"number", "person", "reason", "place"}[i%4], "document": []string{"pdf", "markdown"}[i%2]}
	o.Answers = []string{fmt.Sprint(20 + i%10)}
	o.Gold = []testset.Gold{{Document: "handbook.md", Section: "Leave", Quote: "have 25 days of leave"}}
	o.Right = random.Float64() < quality
	o.Answer = assay.Answer{Status: assay.Answered, Text: fmt.Sprintf("Employees of grade %d have %d days of leave [1].", i, 20+i%10)}
	o.Answer.Claims = []assay.Claim{{Start: 0, End: len(o.Answer.Text) - 5, Verdict: assay.Supported, Score: 0.5 + random.Float64()/2, Citations: []int{1}}}
	o.Answer.Citations = []assay.Citation{{Number: 1, URI: "handbook.md", Quote: "have 25 days"}}
	o.Metrics = map[string]float64{
		"right": 0, "ndcg@10": quality * random.Float64(), "recall@10": float64(random.IntN(2)), "faithfulness": min(1, quality+random.Float64()/2), "steps": float64(3 + random.IntN(6)),
		"cost_micros": 100 * (1 + 3*random.ExpFloat64()) * quality, "latency_ms": 40 * random.ExpFloat64() / (1.2 - quality), "tokens": 1000 + 800*random.NormFloat64(),
	}
	if o.Right {
		o.Metrics["right"] = 1
		return o
	}
	o.Lost = stages[random.IntN(len(stages))]
	switch {
	case o.Lost == answers.Broke:
		o.Error, o.Answer = "the provider is down", assay.Answer{}
	case random.IntN(3) == 0:
		o.Answer.Status = assay.NotFound
	}
	return o
}

// summarise computes the fields that a runner would.
func summarise(s *answers.System) {
	values, byType := map[string][]float64{}, map[string][]float64{}
	var scores []float64
	var right []bool
	for _, o := range s.Outcomes {
		for name, v := range o.Metrics {
			values[name] = append(values[name], v)
		}
		byType[o.Slices["type"]] = append(byType[o.Slices["type"]], o.Metrics["right"])
		if !o.Right {
			s.Lost[o.Lost]++
			if len(s.Worst) < 10 {
				s.Worst = append(s.Worst, answers.Worst{ID: o.ID, Question: o.Question, Run: o.Run, Lost: o.Lost, Score: score(o), Why: "its gold stands at rank 31"})
			}
		}
		s.Statuses[string(o.Answer.Status)]++
		for _, c := range o.Answer.Claims {
			scores, right = append(scores, c.Score), append(right, o.Right)
		}
	}
	for _, m := range metric.All() {
		if xs := values[m.Name]; len(xs) > 0 {
			s.Figures = append(s.Figures, figureOf(m.Name, m.Unit, xs))
		}
	}
	for _, value := range []string{"number", "person", "reason", "place"} {
		if xs := byType[value]; len(xs) > 0 {
			s.Slices = append(s.Slices, answers.Slice{By: "type", Value: value, Cases: len(xs), Figures: []answers.Figure{figureOf("right", "", xs)}})
		}
	}
	s.Calibration = append(s.Calibration, stat.Bins(scores, right, 10)...)
	if len(s.Lost) > 0 {
		s.Remedies = []string{"Not retrieved: recall is under 0.80; look at chunking first (smaller chunks, headings kept), then at the encoder.", "Ranked too low: switch reranking on."}
	}
}

func figureOf(name, unit string, xs []float64) answers.Figure {
	m, _ := metric.Lookup(name)
	b := stat.Bootstrap(xs)
	f := answers.Figure{Name: name, Cases: len(xs), Mean: b.Mean, Low: b.Low, High: b.High, Unit: unit, Less: m.Less}
	if m.Judged {
		f.By = "local"
	}
	return f
}

func difference(s, other answers.System, name string) answers.Paired {
	var a, b []float64
	for i, o := range s.Outcomes {
		a, b = append(a, o.Metrics[name]), append(b, other.Outcomes[i].Metrics[name])
	}
	d := stat.Paired(a, b)
	return answers.Paired{Other: other.Name, Figure: name, Cases: len(a), Mean: d.Mean, Low: d.Low, High: d.High, P: d.P}
}
