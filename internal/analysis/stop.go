package analysis

import "strings"

// Stop reports whether word, in any case, is one of the 33 English words that
// carry no meaning of their own and are not indexed.
func Stop(word string) bool {
	if len(word) > len("these") {
		return false
	}
	stops := stopWords["en"]
	_, ok := stops[word]
	if !ok {
		_, ok = stops[strings.ToLower(word)]
	}
	return ok
}

// stopWords are the words that are not indexed, by canonical code. English has
// the classic list of Lucene's English analyzer. The others are as short: the
// articles, prepositions, conjunctions, pronouns and auxiliaries that stand in
// nearly every paragraph, in the forms they have most often. A word that is also
// a common noun or verb is left out.
var stopWords = map[string]map[string]struct{}{
	"en": set(`a an and are as at be but by for if in into is it no not of on or such
		that the their then there these they this to was will with`),
	"ca": set(`a al als amb aquest aquesta aquestes aquests com de del dels des el ella ells els em en és es està ha han hi ho
		i la les li lo més no o on per però pel pels perquè què quan que qui se seu seva si són sobre també un una unes
		uns va`),
	"da": set(`af alle at blev da de den der deres det disse eller en end er et for fra han har havde hun i ikke ind jeg
		kan med men når og også om på sig sin som så til var ved vi vil være`),
	"de": set(`aber als am an auch auf aus bei beim bis da das dass daß dem den denn der deren des dessen die dies diese
		diesem diesen dieser dieses doch du durch ein eine einem einen einer eines er es für gegen hat hatte hatten ich
		ihr ihre ihrem ihren ihrer ihres im in ist ja kein keine kann man mit nach nicht noch nur ob oder ohne sein seine
		seinem seinen seiner sich sie sind so über um und uns unter vom von vor war waren was welche welchem welchen
		welcher welches wenn wer werden wie wir wird wo wurde wurden zu zum zur zwischen`),
	"es": set(`a al como con cual cuando cuál de del donde dónde e el ella ellos en entre era es esta estas este esto estos
		fue fueron ha han hasta la las le les lo los más me mi muy ni no o para pero por qué que quien quién se según ser
		si sin sobre son su sus también te tu u un una unas uno unos y ya`),
	"fi": set(`ei eivät eli että he hän ja joka jos jotka kanssa kuin kun me mikä minä mitä mukaan mutta myös ne niin nyt
		oli olivat on ovat se sekä sen siitä sinä tai te tämä vain voi`),
	"fr": set(`a à au aux avec ce ces cet cette comme dans de des du elle elles en est et été étaient était eux il ils je la
		le les leur leurs lui mais me même ne ni nos notre nous on ont ou où par pas pour qu que quel quelle quelles quels
		qui quoi sa sans se selon ses si son sont sous sur ta te tu un une vos votre vous y`),
	"hu": set(`a az azt azok be csak de egy el és ez ezek ezt ha hogy is kell ki le meg mely mert mi mint most már nem
		nincs s se sem szerint után vagy van vannak volt voltak`),
	"it": set(`a agli ai al alla alle allo anche che chi ci come con cui da dagli dai dal dalla dalle de degli dei del della
		delle dello di dove e è ed era erano gli ha hanno i il in io la le lei lo loro lui ma mi ne negli nei nel nella
		nelle nello noi non o per più quale quali quando questa queste questi questo se si sia sono su sua sue sugli sui
		sul sulla sulle suo suoi ti tra tu un una uno vi voi`),
	"nl": set(`aan als bij dan dat de deze die dit door een en er geen haar had heeft heb het hij hoe hun ik in is je kan
		maar met mij na naar niet nog of om onder ook op over te tegen tot uit van veel voor was wat we welke werd werden
		wie wij wordt worden ze zich zij zijn zo zou`),
	"no": set(`at av ble blir da de deg dei den der det disse du eg eit eller en enn er et etter for fra frå han har hadde
		hun i ikke ikkje jeg kan med men når og også om på seg sin som så til var ved vi vil være vere`),
	"pt": set(`a ao aos as às à com como da das de dela dele do dos e é ela elas ele eles em entre era essa esse esta este
		eu foi foram há isso isto já lhe mais mas me mesmo na nas nem no nos não o onde os ou para pela pelas pelo pelos
		por qual quais quando que quem se sem ser seu seus são sua suas também te um uma você`),
	"ro": set(commaBelow.Replace(`a acest această aceste acești al ale am ar are au ca care ce cel cu cum că când de din după el este eu fi fie
		fost i în între îl își la le lui mai nu o pe pentru prin și sa sau se sunt să un una unde unei unor unui`)),
	"ru": set(`а без бы был была были было быть в во вы где да для до его ее если есть ещё еще же за и из или им их к как
		ко когда кто ли на не нет но о об он она они оно от по под при с со так также то только тот ты у что чтобы эта эти
		это этот я`),
	"sv": set(`att av blev den denna deras dess dessa det detta de dem du där efter eller en ett från för han har hade hon
		hur i inte in jag kan med men mot när och också om på sig sin sina som så till under upp ut var vara vi vid vilka
		vilken vilket vad är`),
	"tr": set(`ama bir bu böyle çok da daha de değil diye en gibi göre hem her için ile ise kadar ki mi mı mu mü ne o olan
		olarak sonra şu ve veya ya`),
}

// StopShares returns which share of a text's words, in [0, 1], are stop words of
// a language, and the largest share of another language's; listed is false when
// the language has no list.
func StopShares(text, language string) (own, best float64, listed bool) {
	code := canonical(language)
	counts := map[string]int{}
	all := 0
	plain := rules{}
	for i := 0; i < len(text); {
		kind, size := classAt(text, i)
		if kind == letter {
			size = plain.compoundEnd(text, i) - i
			word := plain.fold(text[i : i+size])
			all++
			for l, stops := range stopWords {
				if _, ok := stops[word]; ok {
					counts[l]++
				}
			}
		}
		i += size
	}
	for l, n := range counts {
		if share := float64(n) / float64(all); l == code {
			own = share
		} else {
			best = max(best, share)
		}
	}
	_, listed = stopWords[code]
	return own, best, listed
}
