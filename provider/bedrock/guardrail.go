package bedrock

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	agenttypes "github.com/aws/aws-sdk-go-v2/service/bedrockagentruntime/types"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/types"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/ground"
	"github.com/assay-rag/assay/llm"
)

// A Guardrail identifies a guardrail. The zero Guardrail means none.
type Guardrail struct {
	ID      string // or ARN
	Version string // "1"; empty: "DRAFT"
}

func (g Guardrail) check() error {
	if g == (Guardrail{}) {
		return nil
	}
	_, err := idOf(g.ID, "guardrail")
	return err
}

// retrieval returns the configuration of g for a knowledge base, or nil for none.
func (g Guardrail) retrieval() *agenttypes.GuardrailConfiguration {
	if g.ID == "" {
		return nil
	}
	return &agenttypes.GuardrailConfiguration{GuardrailId: &g.ID, GuardrailVersion: aws.String(cmp.Or(g.Version, draft))}
}

// draft is the working version of a guardrail.
const draft = "DRAFT"

// A Grounding configures a verifier that uses the contextual grounding check of a guardrail.
type Grounding struct {
	Guardrail Guardrail

	// Threshold is the least score, in [0, 1], of a grounded claim. The guardrail's own threshold
	// applies in addition. 0: only the guardrail's own.
	Threshold float64

	// Limits of Bedrock, in characters; 0: the documented ones, which are 100,000 for the sources
	// and 5,000 for a claim. Longer input is an error.
	MaxSource int
	MaxClaim  int
}

// The limits of a contextual grounding check, in characters.
//
// Source: AWS, Amazon Bedrock User Guide, "Use contextual grounding check to filter hallucinations
// in responses": at most 100,000 of the grounding source, 1,000 of the query and 5,000 of the
// content to guard.
const (
	maxSource = 100_000
	maxQuery  = 1_000
	maxClaim  = 5_000
)

type verifier struct {
	provider *Provider
	config   Grounding
	name     string
}

// Verifier returns a verifier that uses a guardrail to check whether claims are grounded in the
// text that they cite, and how far a text answers its question.
//
// It supports a claim if the guardrail's grounding score reaches the threshold and no other policy
// of the guardrail has blocked the claim. It never reports a contradiction, since the check does
// not distinguish contradicted from unsupported. A missing assessment, score or threshold counts as
// no support. Input that Bedrock does not accept (a question, claim or sources over the limits) is
// an error, which counts as no support.
//
// The two scores are apart: the guardrail's relevance score and its threshold become Relevance and
// OffTopic, and do not count in the verdict. A single claim may answer a question in part, so the
// relevance of the whole answer is what counts.
func (p *Provider) Verifier(c Grounding) (ground.Service, error) {
	if _, err := idOf(c.Guardrail.ID, "guardrail"); err != nil {
		return nil, err
	}
	if !(c.Threshold >= 0 && c.Threshold <= 1) {
		return nil, fmt.Errorf("guardrail %s: threshold %v is outside [0, 1]: %w", c.Guardrail.ID, c.Threshold, assay.ErrInvalid)
	}
	c.Guardrail.Version = cmp.Or(c.Guardrail.Version, draft)
	c.MaxSource, c.MaxClaim = cmp.Or(c.MaxSource, maxSource), cmp.Or(c.MaxClaim, maxClaim)
	id, _ := idOf(c.Guardrail.ID, "guardrail")
	name := p.config.Name + "/guardrail/" + id + ":" + c.Guardrail.Version
	if c.Threshold > 0 {
		name += fmt.Sprintf("@%g", c.Threshold)
	}
	return &verifier{p, c, name}, nil
}

// Model implements ground.Service. The name ends in the threshold, if there is one, because answers
// that were verified with another are not given again.
func (v *verifier) Model() string { return v.name }

// Verify implements ground.Verifier. Without a question the claim itself is the query of the check,
// and its relevance says nothing.
func (v *verifier) Verify(ctx context.Context, claim string, cited []ground.Passage) (ground.Judgement, error) {
	query := claim
	if utf8.RuneCountInString(query) > maxQuery {
		query = "What do the sources say?"
	}
	j, err := v.VerifyFor(ctx, query, claim, cited)
	j.Relevance, j.OffTopic = nil, false
	return j, err
}

// VerifyFor implements ground.Service.
func (v *verifier) VerifyFor(ctx context.Context, question, text string, cited []ground.Passage) (ground.Judgement, error) {
	none := ground.Judgement{Verdict: assay.Unsupported}
	sources := sourcesOf(cited)
	n, m, q := utf8.RuneCountInString(text), utf8.RuneCountInString(strings.Join(sources, "")), utf8.RuneCountInString(question)
	switch {
	case strings.TrimSpace(text) == "" || len(sources) == 0:
		none.Reason = "cites nothing"
		return none, nil
	case n > v.config.MaxClaim || m > v.config.MaxSource || q > maxQuery:
		message := fmt.Sprintf("the question has %d characters, the text %d and its sources %d; the limits of a grounding check are %d, %d and %d", q, n, m, maxQuery, v.config.MaxClaim, v.config.MaxSource)
		return none, &llm.Error{Model: v.name, Kind: llm.TooLong, Message: message}
	}
	x, err := v.provider.exchange(ctx, v.name)
	if err != nil {
		return none, err
	}
	defer x.End()
	none.Usage.Calls = 1
	out, err := x.session.runtime.ApplyGuardrail(x.Context, v.input(question, text, sources), func(o *bedrockruntime.Options) { o.HTTPClient = x })
	if err != nil {
		return none, x.Fail(err, func(code, message string) (llm.ErrorKind, string) {
			return explainResource("guardrail "+v.config.Guardrail.ID, x.session.Region, code, message)
		})
	}
	j := v.judge(out)
	j.Reason, j.Refused, j.Usage.Calls = x.Errors.Scrub(j.Reason), x.Errors.Scrub(j.Refused), 1
	return j, nil
}

// sourcesOf returns the distinct texts that a claim cites, with their headings.
func sourcesOf(cited []ground.Passage) []string {
	var out []string
	seen := map[string]bool{}
	for _, p := range cited {
		text := strings.TrimSpace(p.Quote)
		if text == "" || seen[text] {
			continue
		}
		seen[text] = true
		if len(p.Heading) > 0 {
			text = strings.Join(p.Heading, " — ") + "\n" + text
		}
		out = append(out, text)
	}
	return out
}

// input returns a request with the sources, the question and the text to guard in blocks of their
// own.
func (v *verifier) input(question, text string, sources []string) *bedrockruntime.ApplyGuardrailInput {
	in := &bedrockruntime.ApplyGuardrailInput{
		GuardrailIdentifier: &v.config.Guardrail.ID, GuardrailVersion: &v.config.Guardrail.Version,
		Source:      types.GuardrailContentSourceOutput,
		OutputScope: types.GuardrailOutputScopeFull, // include the score even if nothing was blocked
	}
	add := func(text string, q types.GuardrailContentQualifier) {
		in.Content = append(in.Content, &types.GuardrailContentBlockMemberText{Value: types.GuardrailTextBlock{
			Text: &text, Qualifiers: []types.GuardrailContentQualifier{q},
		}})
	}
	for _, s := range sources {
		add(s, types.GuardrailContentQualifierGroundingSource)
	}
	add(question, types.GuardrailContentQualifierQuery)
	add(text, types.GuardrailContentQualifierGuardContent)
	return in
}

// judge converts an assessment to a judgement.
func (v *verifier) judge(out *bedrockruntime.ApplyGuardrailOutput) ground.Judgement {
	var blocked []string
	var grounding, relevance []types.GuardrailContextualGroundingFilter
	for _, a := range out.Assessments {
		blocked = append(blocked, otherPolicies(a)...)
		if a.ContextualGroundingPolicy == nil {
			continue
		}
		for _, f := range a.ContextualGroundingPolicy.Filters {
			switch f.Type {
			case types.GuardrailContextualGroundingFilterTypeGrounding:
				grounding = append(grounding, f)
			case types.GuardrailContextualGroundingFilterTypeRelevance:
				relevance = append(relevance, f)
			default:
				blocked = append(blocked, strings.ToLower(string(f.Type)))
			}
		}
	}
	j := v.grounded(grounding)
	relevant := true
	j.Relevance, relevant = relevanceOf(relevance)
	j.OffTopic = !relevant
	intervened := out.Action != types.GuardrailActionNone
	switch {
	case len(blocked) > 0:
		j.Refused = "blocked by another policy of the guardrail: " + strings.Join(blocked, ", ")
	case intervened && j.Verdict == assay.Supported && relevant:
		j.Refused = "the guardrail intervened"
	case len(grounding) == 0 && len(relevance) == 0:
		j.Failed = true
	}
	if j.Refused != "" {
		j.Verdict, j.Reason = assay.Unsupported, j.Reason+"; "+j.Refused
	}
	return j
}

// grounded returns the judgement by the lowest grounding score.
func (v *verifier) grounded(filters []types.GuardrailContextualGroundingFilter) ground.Judgement {
	j := ground.Judgement{Verdict: assay.Unsupported}
	if len(filters) == 0 {
		j.Reason = "the guardrail did not check the grounding: it has no contextual grounding policy, or stopped before it"
		return j
	}
	passes := true
	for i, f := range filters {
		if !scored(f) {
			j.Reason, j.Score = "the guardrail returned no grounding score", 0
			return j
		}
		if i == 0 || *f.Score < j.Score {
			j.Score = *f.Score
			j.Reason = fmt.Sprintf("grounding %.2f, threshold %.2f", *f.Score, max(*f.Threshold, v.config.Threshold))
		}
		passes = passes && passed(f) && *f.Score >= v.config.Threshold
	}
	if passes {
		j.Verdict = assay.Supported
	}
	return j
}

// relevanceOf returns the lowest relevance score and whether all reach their thresholds. Without a
// usable score it is nil, and a filter without one is not passed.
func relevanceOf(filters []types.GuardrailContextualGroundingFilter) (score *float64, passes bool) {
	passes = true
	for _, f := range filters {
		if !scored(f) {
			return nil, false
		}
		if score == nil || *f.Score < *score {
			score = f.Score
		}
		passes = passes && passed(f)
	}
	return score, passes
}

// scored reports whether a filter has a threshold and a score that is a probability.
func scored(f types.GuardrailContextualGroundingFilter) bool {
	return f.Score != nil && f.Threshold != nil && *f.Score >= 0 && *f.Score <= 1
}

// passed reports whether a scored filter reaches its threshold and has done nothing.
func passed(f types.GuardrailContextualGroundingFilter) bool {
	return *f.Score >= *f.Threshold && f.Action == types.GuardrailContextualGroundingPolicyActionNone
}

// otherPolicies returns the names of the other policies that have blocked or changed a claim.
func otherPolicies(a types.GuardrailAssessment) []string {
	var out []string
	if p := a.ContentPolicy; p != nil {
		for _, f := range p.Filters {
			if f.Action != types.GuardrailContentPolicyActionNone {
				out = append(out, "content "+strings.ToLower(string(f.Type)))
			}
		}
	}
	if p := a.TopicPolicy; p != nil {
		for _, t := range p.Topics {
			if t.Action != types.GuardrailTopicPolicyActionNone {
				out = append(out, "topic "+aws.ToString(t.Name))
			}
		}
	}
	if p := a.WordPolicy; p != nil {
		for _, w := range p.CustomWords {
			if w.Action != types.GuardrailWordPolicyActionNone {
				out = append(out, "word")
			}
		}
		for _, w := range p.ManagedWordLists {
			if w.Action != types.GuardrailWordPolicyActionNone {
				out = append(out, "word")
			}
		}
	}
	if p := a.SensitiveInformationPolicy; p != nil {
		for _, e := range p.PiiEntities {
			if e.Action != types.GuardrailSensitiveInformationPolicyActionNone {
				out = append(out, "sensitive "+strings.ToLower(string(e.Type)))
			}
		}
		for _, r := range p.Regexes {
			if r.Action != types.GuardrailSensitiveInformationPolicyActionNone {
				out = append(out, "sensitive "+aws.ToString(r.Name))
			}
		}
	}
	return out
}
