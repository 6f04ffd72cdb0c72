package engine

import (
	"fmt"
	"maps"
	"slices"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/ground"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/role"
)

// Models are the language models at hand. The zero Models are none: every role is
// done locally.
type Models struct {
	// Roles says which model does which role, by the role's name (role.PlannerRole, …).
	// A role that is not here is done locally. The verifier's must not be the
	// generator's.
	Roles map[string]llm.Model

	// Verifier judges claims instead of the local verifier, where Roles names none: a
	// ground.Service, for example, that must not be the generator's model either.
	Verifier ground.Verifier

	// Reranker orders the best hits of a search; nil: the learned one in the program,
	// which also stands in where this one fails.
	Reranker llm.Reranker
}

// roleNames are the roles that a model can do.
var roleNames = []string{
	role.PlannerRole, role.RewriterRole, role.RouterRole, role.GraderRole, role.QuerierRole, role.AnalystRole, role.ReflectorRole,
	role.JudgeRole, role.CriticRole, role.GeneratorRole, role.VerifierRole, role.ExtractorRole, role.SummariserRole, role.ComparerRole,
}

// check says what is wrong with m, as assay.ErrInvalid.
func (m Models) check() error {
	for _, name := range slices.Sorted(maps.Keys(m.Roles)) {
		if !slices.Contains(roleNames, name) {
			return fmt.Errorf("there is no role %q; the roles are %v: %w", name, roleNames, assay.ErrInvalid)
		}
		if m.Roles[name] == nil {
			return fmt.Errorf("the role %s has no model: %w", name, assay.ErrInvalid)
		}
	}
	verifier := ""
	if v := m.Roles[role.VerifierRole]; v != nil {
		if m.Verifier != nil {
			return fmt.Errorf("two verifiers are given: the model %s and a service: %w", v.Model(), assay.ErrInvalid)
		}
		verifier = v.Model()
	} else if s, ok := m.Verifier.(ground.Service); ok {
		verifier = s.Model()
	}
	if g := m.Roles[role.GeneratorRole]; g != nil && g.Model() == verifier {
		return fmt.Errorf("%s cannot verify what it has written itself: the verifier has to be another model, a service, or local: %w", verifier, assay.ErrInvalid)
	}
	return nil
}
