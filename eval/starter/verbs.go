package starter

import (
	"strings"
	"sync"
)

// A verb holds the forms of a verb that questions need.
type verb struct{ base, third, past, participle string }

// forms indexes the known verbs by their third person, past and participle.
type forms struct {
	third, past, participle map[string]verb
	base                    map[string]bool
}

// verbs returns the verbs that statements are parsed by. An unknown verb yields no question, since
// a wrong form is worse than a missing question.
var verbs = sync.OnceValue(makeForms)

// Regular verbs, and those that double the last consonant.
const (
	regularVerbs = `accept access achieve acquire add address adopt affect allocate allow announce appear apply appoint approve arrange assign attach attack
 attend attract award base belong block borrow cancel cause change charge check claim clean clear close collect compare compile complete
 compress compute concern configure confirm connect consider contain continue control convert copy cover crash create cross damage declare decline
 decode defeat defend define delay delete deliver deploy derive describe design destroy detect determine develop direct disable discover display
 distribute divide document dominate earn edit elect emit employ enable encode encounter encrypt end enforce enter establish estimate evaluate examine
 execute exist expand expect expire explain export express extend face fetch file fill finance fix flush follow force form format formulate found free
 freeze function generate govern grant guarantee guard hand handle happen hash help host identify ignore implement import improve include increase
 indicate influence inherit initialize insert inspire install instruct introduce invent invite involve invoke issue join judge keep kill label launch
 limit link list load locate lock log look maintain manage manufacture mark match measure mention merge migrate modify monitor mount move name need
 notify number observe obtain occupy offer open operate order organize own pack paint parse pass pay perform place play point populate precede prepare
 prescribe present preserve prevent print process produce project promote propose protect prove provide publish purchase push question raise range rate reach
 read receive recognize recommend record recover reduce register reject release remain remove rename render renew repeat replace report represent request
 require reserve resolve respond restore restrict result retain return reuse review rule sample scan schedule score search select separate serve settle
 sign simplify solve sort specify start state store study submit succeed suggest supply support suspend talk target test touch track trade train transform
 translate treat trigger turn update upgrade use validate verify visit vote walk want warn wash watch work wrap yield abolish compose consume contribute
 devote direct donate embed evolve fail house inhabit kick last live name narrate occur pioneer premiere promise rank reside score sponsor survive trace`
	doublingVerbs = `admit begin commit control drop map occur permit plan plot prefer refer run set ship skip split stop strip submit transfer trap trim wrap`
	oddVerbs      = `be/is/was/been become/becomes/became/become begin/begins/began/begun bind/binds/bound/bound break/breaks/broke/broken bring/brings/brought/brought
 build/builds/built/built buy/buys/bought/bought catch/catches/caught/caught choose/chooses/chose/chosen come/comes/came/come cut/cuts/cut/cut
 do/does/did/done draw/draws/drew/drawn drive/drives/drove/driven fall/falls/fell/fallen fight/fights/fought/fought find/finds/found/found
 get/gets/got/got give/gives/gave/given go/goes/went/gone grow/grows/grew/grown have/has/had/had hold/holds/held/held keep/keeps/kept/kept
 know/knows/knew/known lead/leads/led/led leave/leaves/left/left lend/lends/lent/lent let/lets/let/let lose/loses/lost/lost make/makes/made/made
 mean/means/meant/meant meet/meets/met/met overwrite/overwrites/overwrote/overwritten pay/pays/paid/paid put/puts/put/put rewrite/rewrites/rewrote/rewritten
 rise/rises/rose/risen run/runs/ran/run say/says/said/said see/sees/saw/seen sell/sells/sold/sold send/sends/sent/sent set/sets/set/set
 show/shows/showed/shown sing/sings/sang/sung speak/speaks/spoke/spoken spend/spends/spent/spent split/splits/split/split spread/spreads/spread/spread
 stand/stands/stood/stood take/takes/took/taken teach/teaches/taught/taught tell/tells/told/told think/thinks/thought/thought throw/throws/threw/thrown
 understand/understands/understood/understood wear/wears/wore/worn win/wins/won/won write/writes/wrote/written bear/bears/bore/born hide/hides/hid/hidden
 beat/beats/beat/beaten shrink/shrinks/shrank/shrunk shut/shuts/shut/shut feed/feeds/fed/fed hit/hits/hit/hit`
)

func makeForms() forms {
	f := forms{third: map[string]verb{}, past: map[string]verb{}, participle: map[string]verb{}, base: map[string]bool{}}
	add := func(v verb) {
		f.third[v.third], f.past[v.past], f.participle[v.participle] = v, v, v
		f.base[v.base] = true
	}
	doubling := wordSet(doublingVerbs)
	for base := range strings.FieldsSeq(regularVerbs) {
		past := regularPast(base)
		if doubling[base] {
			past = base + base[len(base)-1:] + "ed"
		}
		add(verb{base, thirdOf(base), past, past})
	}
	for base := range strings.FieldsSeq(doublingVerbs) {
		past := base + base[len(base)-1:] + "ed"
		add(verb{base, thirdOf(base), past, past})
	}
	for odd := range strings.FieldsSeq(oddVerbs) { // last: irregular forms take precedence
		p := strings.Split(odd, "/")
		add(verb{p[0], p[1], p[2], p[3]})
	}
	return f
}

func regularPast(base string) string {
	switch {
	case strings.HasSuffix(base, "e"):
		return base + "d"
	case consonantY(base):
		return base[:len(base)-1] + "ied"
	}
	return base + "ed"
}

func thirdOf(base string) string {
	switch {
	case consonantY(base):
		return base[:len(base)-1] + "ies"
	case strings.HasSuffix(base, "s"), strings.HasSuffix(base, "sh"), strings.HasSuffix(base, "ch"), strings.HasSuffix(base, "x"), strings.HasSuffix(base, "z"):
		return base + "es"
	}
	return base + "s"
}

func consonantY(base string) bool {
	n := len(base)
	return n > 1 && base[n-1] == 'y' && !strings.ContainsRune("aeiou", rune(base[n-2]))
}
