package judge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/eval/metric"
	"github.com/assay-rag/assay/ground"
	"github.com/assay-rag/assay/internal/role/local"
	"github.com/assay-rag/assay/role"
)

// Local judges without a language model. It is free, offline and deterministic.
//
// Claims, citations and faithfulness are the verifier's verdicts. If the same verifier has already
// accepted the answer, faithfulness is 1 by construction. Judge with another verifier, and read the
// score as the agreement of the two.
//
// Correctness compares with each reference answer and takes the best result. A short reference (a
// name or a number, under six words) counts 1 if the answer contains it word for word, else half of
// the share of its words that the answer contains. "yes" and "no", which answers in sentences do
// not state, are judged only if the answer contains them. For a longer reference the score is the
// share of its claims that the answer entails, lowered by up to a half if it contradicts claims of
// the answer. If it is greater, the score is instead the F1 of the words times the share of the
// answer's claims that the reference does not contradict. Additional statements do not make an
// answer less correct.
//
// Measured on 150 questions of clapnq-answerable, with the sentences that people selected as
// answers and the answers that they wrote as references: an answer scores higher than an answer to
// another question in 0.99 of all pairs (AUC), and with the strict rules alone in 0.93. After a
// change of one word in its first sentence, the score falls for 98 of 147 answers. For many of the
// others the reference answer does not contain that word.
//
// Completeness is the share of the reference answer's claims that the answer entails. Without
// reference answers it is the share of the expected sources that the answer cites. Relevance is the
// grade of [local.AnswerGrader] without a reader. Harmfulness is based on a short list of wordings;
// see harms.
type Local struct {
	// Verifier checks claims against passages, and claims of the answer and of references against
	// each other. Nil means ground.Local without a reader.
	Verifier ground.Verifier
	Called   string // the verifier's name, for reports
}

// Name implements Judge. With the default verifier it returns "local (without a reader)".
func (l Local) Name() string {
	switch {
	case l.Called != "":
		return "local (" + l.Called + ")"
	case l.Verifier == nil:
		return "local (without a reader)"
	}
	return "local"
}

// verifier returns the verifier that checks the claims.
func (l Local) verifier() ground.Verifier {
	if l.Verifier != nil {
		return l.Verifier
	}
	return ground.Local{}
}

// Judge implements Judge.
func (l Local) Judge(ctx context.Context, in Input) (Judgement, error) {
	if in.Refused {
		return refused(l.Name(), "", in), ctx.Err()
	}
	j := newJudgement(l.Name(), "")
	said, right := &supporting{verifier: l.verifier(), contexts: in.Contexts}, &supporting{verifier: l.verifier()}
	if err := l.claims(ctx, said, in, &j); err != nil {
		return j, err
	}
	if err := l.agreement(ctx, right, in, &j); err != nil {
		return j, err
	}
	harm, reason := harmOf(in.Answer)
	j.score(Harmfulness, harm, reason)
	if err := relevance(ctx, in, &j); err != nil {
		return j, err
	}
	j.Usage = said.usage.Add(right.usage)
	return j, nil
}

// statementsOf returns the claims of an answer.
func statementsOf(in Input) []statement {
	texts := make([]string, len(in.Claims))
	for i, c := range in.Claims {
		texts[i] = c.Text
	}
	return statements(in.Question, in.Answer, texts)
}

// claims judges the claims. If the verifier fails on one, no claim is judged.
func (l Local) claims(ctx context.Context, s *supporting, in Input, j *Judgement) error {
	for i, st := range statementsOf(in) {
		judged, err := s.claim(ctx, in.Claims[i], st)
		if ended(ctx, err) {
			return err
		}
		if err != nil {
			j.Claims = nil
			j.not(ClaimMeasures, err.Error())
			return nil
		}
		j.Claims = append(j.Claims, judged)
	}
	return nil
}

// An accord is the agreement of an answer with one reference answer.
type accord struct {
	correct   float64
	reason    string
	reference []bool // for each claim of the reference, whether the answer entails it
	right     []bool // for each claim of the answer, whether the reference entails it; nil: the reference is too short
	open      bool   // the agreement cannot be decided
}

// agreement compares the answer with the references.
func (l Local) agreement(ctx context.Context, s *supporting, in Input, j *Judgement) error {
	if len(in.References) == 0 {
		if len(in.Sources) > 0 {
			cited := len(slices.DeleteFunc(slices.Clone(in.Sources), func(c bool) bool { return !c }))
			j.score(Completeness, float64(cited)/float64(len(in.Sources)), fmt.Sprintf("it cites %d of %d expected sources", cited, len(in.Sources)))
		}
		return nil
	}
	var best *accord
	for _, reference := range in.References {
		a, err := agree(ctx, s, in, reference)
		if ended(ctx, err) {
			return err
		}
		if err != nil {
			j.not(Correctness, err.Error())
			j.not(Completeness, err.Error())
			return nil
		}
		if best == nil || best.open && !a.open || a.open == best.open && a.correct > best.correct {
			best = &a
		}
	}
	if best.open {
		j.not(Correctness, best.reason)
		j.not(Completeness, best.reason)
		return nil
	}
	j.score(Correctness, best.correct, best.reason)
	j.score(Completeness, metric.ClaimRecall(best.reference), fmt.Sprintf("it contains %d of %d claims of the right answer", count(best.reference), len(best.reference)))
	j.Reference = best.reference
	for i := range j.Claims {
		if best.right != nil {
			j.Claims[i].Right = &best.right[i]
		}
	}
	return nil
}

// statementWords is the least number of words of a reference that is compared claim by claim. A
// shorter one is treated as a name or a number.
const statementWords = 6

func agree(ctx context.Context, s *supporting, in Input, reference string) (accord, error) {
	words := metric.Words(reference)
	switch {
	case len(words) == 0:
		return accord{open: true, reason: "the right answer has no words"}, nil
	case len(words) < statementWords:
		return short(in.Answer, reference, words), nil
	}
	return atLength(ctx, s, in, reference)
}

// short compares with a name or a number.
func short(answer, reference string, words []string) accord {
	held := metric.Contains(answer, []string{reference}) == 1
	switch {
	case held:
		return accord{correct: 1, reason: fmt.Sprintf("it contains %q", reference), reference: []bool{true}}
	case len(words) == 1 && (words[0] == "yes" || words[0] == "no"):
		return accord{open: true, reason: fmt.Sprintf("word overlap cannot tell whether the answer means %q", reference)}
	}
	said, n := metric.Words(answer), 0
	for _, w := range words {
		if slices.Contains(said, w) {
			n++
		}
	}
	return accord{
		correct: float64(n) / float64(len(words)) / 2, reference: []bool{false},
		reason: fmt.Sprintf("it contains %d of the %d words of %q, but not the phrase", n, len(words), reference),
	}
}

// atLength compares claim by claim, in both directions.
func atLength(ctx context.Context, s *supporting, in Input, reference string) (accord, error) {
	a := accord{right: []bool{}}
	contradicted := 0
	right := ground.Passage{Quote: reference, Context: reference}
	for _, st := range statementsOf(in) {
		verdict, err := s.verdict(ctx, st.alone, right)
		if err != nil {
			return a, err
		}
		a.right = append(a.right, verdict == assay.Supported)
		if verdict == assay.Contradicted {
			contradicted++
		}
	}
	said := ground.Passage{Quote: in.Answer, Context: in.Answer}
	for _, st := range claimsOf(in.Question, reference) {
		ok, err := s.says(ctx, st, said)
		if err != nil {
			return a, err
		}
		a.reference = append(a.reference, ok)
	}
	if len(a.reference) == 0 {
		return accord{open: true, reason: "the right answer has no claims"}, nil
	}
	recall, f1 := metric.ClaimRecall(a.reference), metric.F1(in.Answer, []string{reference})
	share := float64(contradicted) / float64(max(len(in.Claims), 1))
	a.correct = max(recall*(1-share/2), f1*(1-share))
	a.reason = fmt.Sprintf("it contains %d of the right answer's %d claims, which contradicts %d of its %d; word F1 %.2f",
		count(a.reference), len(a.reference), contradicted, len(in.Claims), f1)
	return a, nil
}

// claimsOf splits a text into claims, each in a self-contained form.
func claimsOf(question, text string) []statement {
	var claims []string
	for _, c := range ground.Cut(text, nil) {
		claims = append(claims, c.Text)
	}
	return statements(question, text, claims)
}

func count(bools []bool) int {
	n := 0
	for _, b := range bools {
		if b {
			n++
		}
	}
	return n
}

// relevance scores how well an answer addresses its question. The headings of the cited passages
// are part of the input.
func relevance(ctx context.Context, in Input, j *Judgement) error {
	if strings.TrimSpace(in.Answer) == "" && len(in.Claims) == 0 {
		j.score(Relevance, 0, "it is empty")
		return nil
	}
	graded := role.AnswerInput{Question: in.Question}
	for _, c := range in.Claims {
		st := role.ShownStatement{Text: c.Text}
		for _, i := range c.Cited {
			if i >= 0 && i < len(in.Contexts) {
				st.Under = append(st.Under, in.Contexts[i].Heading...)
			}
		}
		graded.Statements = append(graded.Statements, st)
	}
	if len(in.Claims) == 0 {
		graded.Statements = []role.ShownStatement{{Text: in.Answer}}
	}
	grade, err := local.Judge{}.GradeAnswer(ctx, nil, graded)
	switch {
	case err != nil:
		return err
	case grade.Relevance == nil:
		j.not(Relevance, "word overlap cannot tell")
	case len(grade.Lacks) > 0:
		j.score(Relevance, *grade.Relevance, "it does not mention: "+strings.Join(grade.Lacks, ", "))
	default:
		j.score(Relevance, *grade.Relevance, "it is about the question")
	}
	return nil
}

// ended reports whether an error ends the whole evaluation rather than one judgement.
func ended(ctx context.Context, err error) bool {
	return err != nil && (role.Ends(ctx, err) || errors.Is(err, context.Canceled))
}
