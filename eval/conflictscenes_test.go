package eval

import (
	"math/rand/v2"
	"strings"
)

// A conflictScene is a question with ways to answer it, of which conflicts and controls are
// made. A text is "Title | Sentences"; {s} stands for the subject, {v} for the value and {c}
// for what a value is restricted to. A question that is answered with yes or no has texts for
// either instead of values.
type conflictScene struct {
	Question string     `json:"question"`
	Subjects []string   `json:"subjects"`
	Scopes   [][]string `json:"scopes"` // pairs that exclude each other

	Values [][]string `json:"values"` // each in several forms
	Says   []string   `json:"says"`
	Scoped []string   `json:"scoped"`
	Other  []string   `json:"other"` // another property of the subject, of the same kind of value

	Yes       []string `json:"yes"`
	No        []string `json:"no"`
	ScopedYes []string `json:"scoped_yes"`
	ScopedNo  []string `json:"scoped_no"`
}

// A sceneSide is a text of a scene with what stands in it.
type sceneSide struct {
	text, subject, value, scope string
}

func (s sceneSide) written() WrittenText {
	title, text, _ := strings.Cut(strings.NewReplacer("{v}", s.value, "{c}", s.scope).Replace(s.text), " | ")
	title, text = strings.ReplaceAll(title, "{s}", s.subject), strings.ReplaceAll(text, "{s}", s.subject)
	return WrittenText{Title: capitalised(title), Text: sentencesCapitalised(text)}
}

func capitalised(text string) string {
	if text == "" {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

func sentencesCapitalised(text string) string {
	sentences := strings.SplitAfter(text, ". ")
	for i, s := range sentences {
		sentences[i] = capitalised(s)
	}
	return strings.Join(sentences, "")
}

// A sceneMaker makes cases of scenes. Its choices are the same each time.
type sceneMaker struct {
	random *rand.Rand
	rows   []conflictRow
}

// conflictsOf makes cases of scenes.
func conflictsOf(scenes []conflictScene) []conflictRow {
	m := &sceneMaker{random: rand.New(rand.NewPCG(1, 2))}
	for _, s := range scenes {
		if len(s.Values) > 0 {
			m.values(s)
		} else {
			m.yesNo(s)
		}
	}
	return m.rows
}

func (m *sceneMaker) add(question string, conflict bool, kind string, a, b sceneSide) {
	if m.random.IntN(2) == 0 {
		a, b = b, a
	}
	c := ConflictCase{Question: strings.ReplaceAll(question, "{s}", a.subject), A: a.written(), B: b.written(), Conflict: conflict, Kind: "made " + kind}
	m.rows = append(m.rows, conflictRow{ConflictCase: c, group: question, weight: madeWeight})
}

func (m *sceneMaker) of(texts []string) string { return texts[m.random.IntN(len(texts))] }

// two returns two of n, not the same.
func (m *sceneMaker) two(n int) (i, j int) {
	i, j = m.random.IntN(n), m.random.IntN(n-1)
	if j >= i {
		j++
	}
	return i, j
}

// rounds is the number of cases of each sort that are made of a scene.
const rounds = 2

// values makes the cases of a scene whose question is answered with a value.
func (m *sceneMaker) values(s conflictScene) {
	for range rounds {
		for _, says := range [][]string{s.Says, s.Says, s.Says, s.Scoped} {
			i, j := m.two(len(says))
			v, w := m.two(len(s.Values))
			subject, scope := m.of(s.Subjects), m.of(m.scopes(s))
			m.add(s.Question, true, "value", sceneSide{says[i], subject, m.of(s.Values[v]), scope}, sceneSide{says[j], subject, m.of(s.Values[w]), scope})
		}
		i, j := m.two(len(s.Says))
		v, w := m.two(len(s.Values))
		t, u := m.two(len(s.Subjects))
		first := sceneSide{s.Says[i], s.Subjects[t], m.of(s.Values[v]), ""}
		m.add(s.Question, false, "thing", first, sceneSide{s.Says[j], s.Subjects[u], m.of(s.Values[w]), ""})
		m.add(s.Question, false, "other", first, sceneSide{m.of(s.Other), first.subject, m.of(s.Values[w]), ""})
		same := s.Values[v]
		m.add(s.Question, false, "form", sceneSide{first.text, first.subject, same[0], ""}, sceneSide{s.Says[j], first.subject, same[len(same)-1], ""})
		scopes := s.Scopes[m.random.IntN(len(s.Scopes))]
		i, j = m.two(len(s.Scoped))
		m.add(s.Question, false, "scope", sceneSide{s.Scoped[i], first.subject, m.of(s.Values[v]), scopes[0]}, sceneSide{s.Scoped[j], first.subject, m.of(s.Values[w]), scopes[1]})
	}
}

// yesNo makes the cases of a scene whose question is answered with yes or no.
func (m *sceneMaker) yesNo(s conflictScene) {
	for range rounds {
		t, u := m.two(len(s.Subjects))
		side := func(texts []string, subject int, scope string) sceneSide {
			return sceneSide{m.of(texts), s.Subjects[subject], "", scope}
		}
		for range 3 {
			m.add(s.Question, true, "yesno", side(s.Yes, t, ""), side(s.No, t, ""))
		}
		scope := m.of(m.scopes(s))
		m.add(s.Question, true, "yesno", side(s.ScopedYes, t, scope), side(s.ScopedNo, t, scope))
		m.add(s.Question, false, "thing", side(s.Yes, t, ""), side(s.No, u, ""))
		for _, texts := range [][]string{s.Yes, s.No} {
			i, j := m.two(len(texts))
			m.add(s.Question, false, "form", sceneSide{texts[i], s.Subjects[t], "", ""}, sceneSide{texts[j], s.Subjects[t], "", ""})
		}
		scopes := s.Scopes[m.random.IntN(len(s.Scopes))]
		m.add(s.Question, false, "scope", side(s.ScopedYes, t, scopes[0]), side(s.ScopedNo, t, scopes[1]))
	}
}

// scopes returns everything that a value of a scene may be restricted to.
func (m *sceneMaker) scopes(s conflictScene) []string {
	var all []string
	for _, pair := range s.Scopes {
		all = append(all, pair...)
	}
	return all
}
