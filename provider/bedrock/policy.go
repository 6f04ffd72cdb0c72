package bedrock

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/assay-rag/assay"

	"github.com/assay-rag/assay/internal/lazyregexp"
)

// Resources are the AWS resources that a configuration uses. Each is given by its ID or ARN, as in
// the configuration.
type Resources struct {
	// Account is the account of resources given by ID, twelve digits; empty: that of the ARNs among
	// the resources.
	Account string

	Models    []string // language and embedding models and inference profiles
	Rerankers []string

	// KnowledgeBases are searched (Retrieve). Those that also have a model in Answers answer
	// questions themselves (RetrieveAndGenerate).
	KnowledgeBases []KnowledgeBase
	Answers        map[string]string // answering models, by knowledge base

	Agents     []string // ARNs of aliases, or "AGENT/ALIAS"
	Guardrails []string // of verifiers and of Answers

	// Profiles maps inference profiles to the ARNs of the foundation models they route to. Missing
	// ones are looked up, which requires bedrock:GetInferenceProfile.
	Profiles map[string][]string
}

// A Policy is an identity-based policy of AWS IAM.
type Policy struct {
	Document []byte // JSON, indented

	// Notes explain what the document omits, and why.
	Notes []string
}

// IAMPolicy returns a policy that allows assay to use exactly these resources. Each statement names
// its resources, without wildcards.
//
// A call through an inference profile requires permission for the profile and for its foundation
// model in each region that it routes to. The models are allowed only through the profile
// (bedrock:InferenceProfileArn). Two actions cannot be limited to resources: bedrock:Rerank and
// bedrock:RetrieveAndGenerate. They are omitted, with a note that contains the statement to add if
// that is acceptable.
//
// The error is ErrInvalid if a resource cannot be identified or its account is missing, and an
// *llm.Error if the routes of a profile cannot be retrieved.
//
// Source: AWS, Service Authorization Reference, "Actions, resources, and condition keys for Amazon
// Bedrock"; Amazon Bedrock User Guide, "Prerequisites for inference profiles", "Permissions for
// reranking in Amazon Bedrock", "Query a knowledge base and generate responses based off the
// retrieved data" (inference profiles).
func (p *Provider) IAMPolicy(ctx context.Context, r Resources) (Policy, error) {
	region, err := p.Region(ctx)
	if err != nil {
		return Policy{}, err
	}
	w := &policyWriter{provider: p, region: region, account: r.Account, profiles: r.Profiles, own: map[string]string{}}
	if err := w.findAccount(r); err != nil {
		return Policy{}, err
	}
	for _, m := range slices.Concat(r.Models, r.Rerankers) {
		if err := w.model(ctx, m); err != nil {
			return Policy{}, err
		}
	}
	if len(r.Rerankers) > 0 {
		w.unscoped("bedrock:Rerank", "reranking")
	}
	if err := w.bases(ctx, r); err != nil {
		return Policy{}, err
	}
	for _, a := range r.Agents {
		if err := w.resource("InvokeAgents", "bedrock:InvokeAgent", "agent-alias", a); err != nil {
			return Policy{}, err
		}
	}
	for _, g := range r.Guardrails {
		if err := w.resource("ApplyGuardrails", "bedrock:ApplyGuardrail", "guardrail", g); err != nil {
			return Policy{}, err
		}
	}
	return w.policy()
}

// A statement is a statement of a policy.
type statement struct {
	Sid       string
	Effect    string
	Action    []string
	Resource  []string
	Condition map[string]map[string][]string `json:",omitempty"`
}

// A policyWriter collects a policy's statements.
type policyWriter struct {
	provider        *Provider
	region, account string
	profiles        map[string][]string
	own             map[string]string // ARNs of inference profiles, by name

	statements []statement
	notes      []string
}

var accountID = lazyregexp.New(`^[0-9]{12}$`)

// findAccount sets a missing account from the resources' ARNs.
func (w *policyWriter) findAccount(r Resources) error {
	names := slices.Concat(r.Models, r.Rerankers, r.Agents, r.Guardrails, slices.Sorted(maps.Values(r.Answers)))
	for _, k := range r.KnowledgeBases {
		names = append(names, k.ID)
	}
	for _, name := range names {
		if a, err := parseARN(name); err == nil && w.account == "" && accountID.MatchString(a.account) {
			w.account = a.account
		}
	}
	if w.account != "" && !accountID.MatchString(w.account) {
		return fmt.Errorf("AWS account %q: want twelve digits: %w", w.account, assay.ErrInvalid)
	}
	return nil
}

// arn returns the ARN of a resource of a kind.
func (w *policyWriter) arn(kind, name string) (string, error) {
	if strings.HasPrefix(name, "arn:") {
		a, err := parseARN(name)
		if err == nil && a.kind != kind {
			err = fmt.Errorf("%q is the ARN of a %s, want a %s: %w", name, a.kind, kind, assay.ErrInvalid)
		}
		return name, err
	}
	if w.account == "" {
		return "", fmt.Errorf("%s %s: its ARN needs the AWS account; set account_id, or configure the resource by ARN: %w", kind, name, assay.ErrInvalid)
	}
	a := arn{partition: partitionOf(w.region), region: w.region, account: w.account, kind: kind, id: name}.String()
	_, err := parseARN(a)
	return a, err
}

// resource allows an action on one resource.
func (w *policyWriter) resource(sid, action, kind, name string) error {
	a, err := w.arn(kind, name)
	if err != nil {
		return err
	}
	w.allow(statement{Sid: sid, Action: []string{action}, Resource: []string{a}})
	return nil
}

// allow adds a statement, or extends one with the same name and conditions.
func (w *policyWriter) allow(s statement) {
	s.Effect = "Allow"
	for i := range w.statements {
		have := &w.statements[i]
		if have.Sid == s.Sid && !reflect.DeepEqual(have.Condition, s.Condition) {
			s.Sid += "2" // names must be unique in a policy
		} else if have.Sid == s.Sid {
			have.Resource = append(have.Resource, s.Resource...)
			slices.Sort(have.Resource)
			have.Resource = slices.Compact(have.Resource)
			return
		}
	}
	w.statements = append(w.statements, s)
}

// invoke are the actions of Converse, ConverseStream and InvokeModel.
var invoke = []string{"bedrock:InvokeModel", "bedrock:InvokeModelWithResponseStream"}

// model allows a model, or an inference profile and its routes.
func (w *policyWriter) model(ctx context.Context, name string) error {
	kind, id := "", name
	if strings.HasPrefix(name, "arn:") {
		a, err := parseARN(name)
		if err != nil {
			return err
		}
		kind, id = a.kind, a.id
	} else if geography(name) != "" {
		kind = "inference-profile"
	}
	switch kind {
	case "inference-profile", "application-inference-profile":
		return w.profile(ctx, kind, name, id)
	case "":
		name = foundationARN(w.region, name)
		if _, err := parseARN(name); err != nil {
			return err
		}
	}
	w.allow(statement{Sid: "InvokeModels", Action: invoke, Resource: []string{name}})
	return nil
}

// profile allows an inference profile and, through it, the foundation models that it routes to.
func (w *policyWriter) profile(ctx context.Context, kind, name, id string) error {
	routes := w.profiles[name]
	own, err := w.arn(kind, name)
	if len(routes) == 0 {
		p, askErr := w.provider.profile(ctx, name)
		if askErr != nil {
			return fmt.Errorf("cannot look up the foundation models of inference profile %s (bedrock:GetInferenceProfile); list them under inference_profiles: %w", name, askErr)
		}
		for _, m := range p.Models {
			routes = append(routes, m.ARN)
		}
		if p.ARN != "" {
			own, err = w.arn(kind, p.ARN)
		}
	}
	if err != nil {
		return err
	}
	if len(routes) == 0 {
		return fmt.Errorf("inference profile %s routes to no foundation model: %w", name, assay.ErrInvalid)
	}
	for _, r := range routes {
		if a, err := parseARN(r); err != nil {
			return fmt.Errorf("inference profile %s: %w", name, err)
		} else if a.kind != "foundation-model" {
			return fmt.Errorf("inference profile %s routes to %q, which is not a foundation model: %w", name, r, assay.ErrInvalid)
		}
	}
	w.own[name] = own
	sid := sidOf(id)
	w.allow(statement{Sid: "InvokeProfile" + sid, Action: invoke, Resource: []string{own}})
	w.allow(statement{
		Sid: "InvokeThrough" + sid, Action: invoke, Resource: slices.Compact(slices.Sorted(slices.Values(routes))),
		Condition: map[string]map[string][]string{"StringEquals": {"bedrock:InferenceProfileArn": {own}}},
	})
	return nil
}

// sidOf returns an ID in a form that is valid in a statement's name: letters and digits.
func sidOf(id string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x80 && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9') {
			return r
		}
		return -1
	}, id)
}

// bases allows the actions of knowledge bases.
func (w *policyWriter) bases(ctx context.Context, r Resources) error {
	for _, k := range r.KnowledgeBases {
		if err := w.resource("SearchKnowledgeBases", "bedrock:Retrieve", "knowledge-base", k.ID); err != nil {
			return err
		}
		for _, m := range []string{k.ImplicitModel, k.RerankModel} {
			if m == "" {
				continue
			}
			if err := w.model(ctx, m); err != nil {
				return err
			}
		}
		if k.RerankModel != "" {
			w.unscoped("bedrock:Rerank", "reranking")
		}
		if k.Guardrail.ID != "" {
			if err := w.resource("ApplyGuardrails", "bedrock:ApplyGuardrail", "guardrail", k.Guardrail.ID); err != nil {
				return err
			}
		}
	}
	for _, base := range slices.Sorted(maps.Keys(r.Answers)) {
		if err := w.resource("SearchKnowledgeBases", "bedrock:Retrieve", "knowledge-base", base); err != nil {
			return err
		}
		if err := w.model(ctx, r.Answers[base]); err != nil {
			return err
		}
		if own, ok := w.own[r.Answers[base]]; ok { // RetrieveAndGenerate looks up the profile
			w.allow(statement{Sid: "ReadProfiles", Action: []string{"bedrock:GetInferenceProfile"}, Resource: []string{own}})
		}
		w.unscoped("bedrock:RetrieveAndGenerate", "answering with a knowledge base")
	}
	return nil
}

// unscoped adds a note on an action that IAM cannot limit to resources.
func (w *policyWriter) unscoped(action, what string) {
	note := fmt.Sprintf("the policy does not include %s, so %s will be denied. AWS IAM cannot limit this action to resources. "+
		`To allow it for all resources, add {"Sid":"%s","Effect":"Allow","Action":["%s"],"Resource":"*"}; the other statements still limit the models and knowledge bases.`,
		action, what, strings.TrimPrefix(action, "bedrock:"), action)
	if !slices.Contains(w.notes, note) {
		w.notes = append(w.notes, note)
	}
}

// policy returns the collected policy.
func (w *policyWriter) policy() (Policy, error) {
	if len(w.statements) == 0 {
		return Policy{}, fmt.Errorf("no resources of Amazon Bedrock are configured: %w", assay.ErrInvalid)
	}
	document, err := json.MarshalIndent(struct {
		Version   string
		Statement []statement
	}{"2012-10-17", w.statements}, "", "  ")
	return Policy{Document: append(document, '\n'), Notes: w.notes}, err
}
