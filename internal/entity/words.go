package entity

import "strings"

func set(words string) map[string]bool {
	m := make(map[string]bool)
	for w := range strings.FieldsSeq(words) {
		m[w] = true
	}
	return m
}

const longestOrdinary = 12

// ordinary lists words that are capitalised at the beginning of a sentence or title, or always, but
// are not names that link passages.
var ordinary = set(`
a an the this that these those some any each every all both either neither no
i me my mine we us our ours you your yours he him his she her hers it its they them their theirs
who whom whose which what when where why how whether
am is are was were be been being do does did having have has had can could may might must shall should will would
and or but nor so if then else than as because since while until unless though although
of in on at by for with without about against between among into onto through during before after above below
to from up down out off over under again further within across along around behind beyond per via upon
not also just only very too more most much many few less least such same other another
there here now ever never always often still yet already
near besides apart amid throughout toward towards except
however later following according despite several today once born based located like unlike thus hence therefore
moreover furthermore instead meanwhile finally additionally originally currently eventually recently initially
usually generally typically historically formerly previously together along let
january february march april may june july august september october november december
monday tuesday wednesday thursday friday saturday sunday
note see example figure table section chapter
mr mrs ms dr
`)

var ordinaryGerman = set(`
der die das den dem des ein eine einen einem einer eines kein keine dieser diese dieses diesen diesem jeder jede jedes
und oder aber denn wenn als wie weil dass ob doch sondern auch nur noch schon sehr mehr
in im an am auf aus bei beim mit nach seit von vom zu zum zur durch ohne um unter zwischen vor hinter neben gegen
er sie es wir ihr ich du man sich sein seine seinen seiner ihre ihren ihrer unser
wer was wann wo warum welche welcher welches welchen welchem wieviel
ist sind war waren wird werden wurde wurden hat haben hatte hatten kann konnte soll
januar februar mai juni juli oktober dezember montag dienstag mittwoch donnerstag freitag samstag sonntag
jahr jahre jahren jahres zeit teil
`)

var determiners = set(`
der die das den dem des ein eine einen einem einer eines kein keine keinen dieser diese dieses diesen diesem jeder jede jedes
Der Die Das Den Dem Des Ein Eine Einen Einem Einer Eines Kein Keine Dieser Diese Dieses Diesen Diesem Jeder Jede Jedes
im am zum zur vom beim ins ans seine seinen seiner seinem seines ihre ihren ihrer ihrem ihres unsere mehr viele alle beiden
`)

var articles = set(`the a an`)

var honorifics = set(`
president king queen prince princess emperor empress sir lord lady dame pope saint st mr mrs ms dr prof professor
general captain colonel major lieutenant sergeant admiral senator governor representative chancellor minister duke earl count baron
`)

// declares lists the keywords that begin headings of source code.
var declares = set(`func type var const class def struct interface enum method function`)
