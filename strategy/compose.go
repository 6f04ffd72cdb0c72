package strategy

import (
	"slices"
	"strconv"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/ground"
	"github.com/assay-rag/assay/role"
)

// compose builds the answer from the supported claims and sets the state from which its status is
// decided.
func (e Env) compose(strategy string, found []subQuestion, parts []role.Part, w checkedDraft) Result {
	supported := w.supported()
	r := e.base(strategy, found)
	r.passages = w.passages
	r.Notes = w.remarks(r.Notes)
	write(&r.Answer, w.draft, supported)
	for _, c := range supported {
		r.sections = appendNew(r.sections, c.section)
	}
	r.evidence.found = foundFit
	r.evidence.sufficient = w.readable && slices.ContainsFunc(found, subQuestion.sufficient)
	r.details.supported, r.details.refused, r.details.failed = len(supported), len(w.checked)-len(supported), failedCount(w.checked)
	r.details.failure = w.draft.Failure
	e.cover(&r, found, parts, supported)
	r.Missing = withGaps(r.Missing, e.roleGaps(e.Question, w.draft.Open, w.byModel)...)
	r.dropped = w.droppedGaps()
	r.verdicts = verdictState{
		draft: w.state(), supported: len(supported) > 0, failed: r.details.failed > 0,
		leavesOutMember: w.leavesOutMember(), open: len(w.draft.Open) > 0, dropped: len(w.dropped()) > 0,
	}
	r.evidence.conflict = e.conflictIn(&r, w, supported)
	markExternal(&r.Answer)
	r.updateStatus()
	return r
}

// cover determines which parts of the question are answered and adds the others to the gaps. A part
// is answered if its evidence is sufficient and supports a claim. A step to another part needs no
// answer of its own.
func (e Env) cover(r *Result, found []subQuestion, parts []role.Part, supported []checkedClaim) {
	closed := make([]bool, len(parts))
	grounded := make([]bool, len(parts))
	for i, p := range parts {
		grounded[i] = slices.ContainsFunc(supported, func(c checkedClaim) bool { return c.restsOn(p) })
		closed[i] = grounded[i] && found[i].sufficient() && found[i].displayed == "" // its subject is certain
		r.parts = append(r.parts, p.Question)
	}
	for i := range parts {
		if closed[i] || slices.ContainsFunc(found[i].neededBy, func(j int) bool { return closed[j] }) {
			continue
		}
		r.details.open++
		gaps := e.questionGap(found[i].displayText())
		if grounded[i] || len(supported) == 0 {
			gaps = e.subQuestionGaps(found[i])
		}
		r.Missing = withGaps(r.Missing, gaps...)
	}
	switch r.details.of = len(parts); r.details.open {
	case 0:
		r.evidence.covered = coveredAll
	case len(parts):
		r.evidence.covered = coveredNone
	default:
		r.evidence.covered = coveredSome
	}
}

// conflictIn reports how supported claims contradict each other about the question. If the question
// is answered for several things separately, only versions of one document can conflict.
func (e Env) conflictIn(r *Result, w checkedDraft, supported []checkedClaim) conflictState {
	x, y, ok := w.conflict(supported, e.ReaderModel != "")
	r.details.pair = [2]int{x, y}
	switch {
	case e.mayDiffer && e.versions && ok:
		r.details.newest = e.Sections[0]
		return conflictVersions
	case e.mayDiffer:
		return noConflict
	case ok:
		return conflictFound
	}
	if x, y, ok = declared(w.draft, supported); ok {
		r.details.pair = [2]int{x, y}
		return conflictDeclared
	}
	return noConflict
}

// declared returns the indexes of the first two claims from statements that the draft declares to
// be in conflict. A claim that cites only what the other cites is not a side of a conflict.
func declared(draft role.Draft, claims []checkedClaim) (i, j int, found bool) {
	of := func(statement int) func(checkedClaim) bool {
		return func(c checkedClaim) bool { return c.statement == statement && statement >= 0 }
	}
	for _, pair := range draft.Conflicts {
		i, j = slices.IndexFunc(claims, of(pair[0])), slices.IndexFunc(claims, of(pair[1]))
		if i >= 0 && j >= 0 && i != j && claims[i].citesMore(claims[j]) && claims[j].citesMore(claims[i]) {
			return min(i, j), max(i, j), true
		}
	}
	return 0, 0, false
}

// citesMore reports whether c cites words that other does not.
func (c checkedClaim) citesMore(other checkedClaim) bool {
	return slices.ContainsFunc(c.cited, func(a assay.Citation) bool {
		return !slices.ContainsFunc(other.cited, func(b assay.Citation) bool {
			return a.Document == b.Document && a.Start < b.End && b.Start < a.End
		})
	})
}

// conflict returns the indexes of the first two claims that cite different documents and contradict
// each other. If a reader has read the evidence, claims contradict if they cite the two sides of a
// conflict about the question. Otherwise they contradict if they differ in a number or a negation.
// Two claims of a model conflict only if the model declares it.
func (w checkedDraft) conflict(claims []checkedClaim, read bool) (i, j int, found bool) {
	for i := range claims {
		for j := i + 1; j < len(claims); j++ {
			if w.byModel && claims[i].statement >= 0 && claims[j].statement >= 0 {
				continue
			}
			shared := slices.ContainsFunc(claims[i].cited, func(c assay.Citation) bool { return claims[j].cites(c.Document) })
			if !shared && (w.sides(claims[i], claims[j]) || !read && ground.Differ(claims[i].Text, claims[j].Text)) {
				return i, j, true
			}
		}
	}
	return 0, 0, false
}

// sides reports whether two claims cite the two sides of a conflict in the evidence.
func (w checkedDraft) sides(a, b checkedClaim) bool {
	return slices.ContainsFunc(w.conflicts, func(x ground.Conflict) bool {
		side, ok := a.opposite(x, w.evidence)
		other, also := b.opposite(x, w.evidence)
		return ok && also && side != other
	})
}

// headingsOf returns a hit's title and its headings.
func headingsOf(h assay.Hit) []string { return append([]string{h.Title}, h.Chunk.Headings...) }

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

// base returns a result with the fields that every status has: the searches, their number, why they
// stopped, and the closest passages.
func (e Env) base(strategy string, found []subQuestion) Result {
	r := Result{Answer: assay.Answer{
		Question: e.Question, Strategy: strategy, Claims: []assay.Claim{}, Citations: []assay.Citation{},
		Missing: []assay.Gap{}, Searched: []assay.Searched{}, Closest: []assay.Closest{},
	}}
	var all noteList
	for _, sq := range found {
		all.join(sq.notes)
	}
	r.Notes, r.Index = all.list(), all.index
	for _, sq := range found {
		r.Searched = append(r.Searched, sq.searched...)
		r.Iterations += sq.iterations
		if held := sq.grade.Answerability; held != nil && (r.Answerability == nil || *held > *r.Answerability) {
			r.Answerability = held
		}
		// The first sub-question that did not end well determines why the run stopped.
		if r.Stop == "" || r.Stop == assay.StopSufficient {
			r.Stop = sq.stop
		}
		if r.spent == "" && sq.cutShort() {
			r.spent, r.details.shortfall = sq.stop, sq.shortfall
		}
	}
	if spentBy(r.Stop) {
		r.spent = r.Stop
		i := slices.IndexFunc(found, func(sq subQuestion) bool { return sq.stop == r.Stop && sq.shortfall != "" })
		if r.details.shortfall = ""; i >= 0 {
			r.details.shortfall = found[i].shortfall
		}
	}
	r.setClosest(found)
	return r
}

// setClosest sets the passages that came closest.
func (r *Result) setClosest(found []subQuestion) {
	const most = 3
	seen := map[string]bool{}
	var hits []assay.Hit
	for _, sq := range found {
		for _, h := range sq.hits[:min(len(sq.hits), most)] {
			r.details.top = max(r.details.top, h.Scores.Relevance)
			if !seen[h.Chunk.ID] {
				seen[h.Chunk.ID] = true
				hits = append(hits, h)
			}
		}
	}
	r.details.hits = len(hits)
	slices.SortStableFunc(hits, byRelevance)
	r.closest = []assay.Closest{}
	for _, h := range hits[:min(len(hits), most)] {
		heading := h.Chunk.Headings
		if heading == nil {
			heading = []string{}
		}
		r.closest = append(r.closest, assay.Closest{
			URI: h.URI, Title: h.Title, Heading: heading, Line: h.Line,
			Relevance: h.Scores.Relevance, Quote: opening(h.Text),
			Provenance: h.Chunk.Provenance, Confidence: h.Chunk.Confidence, Model: h.Chunk.Model,
		})
	}
}

// notFound returns the result if no evidence for an answer was found.
func (e Env) notFound(strategy string, found []subQuestion) Result {
	r := e.base(strategy, found)
	for _, sq := range found {
		r.Missing = withGaps(r.Missing, e.subQuestionGaps(sq)...)
	}
	r.details.answerability = e.unlikelyReason(found)
	failed := slices.IndexFunc(found, func(sq subQuestion) bool { return sq.grade.Failure != "" })
	switch {
	case r.details.hits == 0:
		r.evidence.found = foundNothing
	case failed >= 0:
		r.evidence.found, r.details.failure = foundUngraded, found[failed].grade.Failure
	default:
		r.evidence.found = foundUnfit
	}
	r.updateStatus()
	return r
}

// unlikelyReason returns how likely it is that the passages hold the answer, for the sub-question
// where that is likeliest. It returns "" if a sub-question other than a step to another was not
// judged by that.
func (e Env) unlikelyReason(found []subQuestion) string {
	var best *subQuestion
	for i, sq := range found {
		if sq.grade.Answerability == nil && len(sq.neededBy) > 0 {
			continue
		}
		if sq.grade.Answerability == nil || sq.sufficient() || e.byModel(role.GraderRole) && !sq.below {
			return ""
		}
		if best == nil || *sq.grade.Answerability > *best.grade.Answerability {
			best = &found[i]
		}
	}
	if best == nil {
		return ""
	}
	return remarkLine(best.grade.Reason)
}

// opening returns the first words of a passage, for display.
func opening(text string) string {
	const maxRunes = 200
	text = strings.Join(strings.Fields(text), " ")
	n := 0
	for i := range text {
		if n == maxRunes {
			if space := strings.LastIndexByte(text[:i], ' '); space > 0 {
				i = space
			}
			return text[:i] + " …"
		}
		n++
	}
	return text
}
