package analysis

import "strings"

// Stop reports whether word, in any case, is one of the 33 English function words that are not
// indexed.
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

// stopWords lists the words that are not indexed, by canonical code. English has the classic list
// of Lucene's English analyzer; its question words are handled when questions are rated. The other
// lists have the articles, prepositions, conjunctions and pronouns that occur in nearly every
// paragraph. They also have the words that form questions: question words, auxiliaries and modal
// verbs, in their most frequent forms. Answers rarely repeat those ("How many days do I have?"), so
// a passage would seem to lack half of the question. The lists leave out words that are also common
// nouns or verbs, and a few that are frequent in English texts (French "ai", Spanish "has").
//
// Of 397 questions of xquad-de, asked of its paragraphs as 48 documents, 249 are answered with the
// question-forming words in the list and 240 without them, of which 242 and 235 from the right
// paragraph. With that paragraph removed, 15 and 14 are answered.
var stopWords = map[string]map[string]struct{}{
	"en": set(`a an and are as at be but by for if in into is it no not of on or such
		that the their then there these they this to was will with`),
	"ca": set(`a al als amb aquest aquesta aquestes aquests cal com de del dels des el ella ells els em en es és
		està ha han hem hi ho i la les li lo més meu meva no nostra nostre o on pel pels per però perquè podem poden
		pot puc quan quant quanta quantes quants que què qui quin quina quines quins se seu seva si sobre som són
		també té tenen tenim tinc un una unes uns va`),
	"da": set(`af alle at blev blive bliver burde bør da de den der deres det dig din dine disse dit du eller en
		end er et får for fra haft ham han har havde have hende hun hvad hvem hvilke hvilken hvilket hvis hvor hvordan
		hvorfor hvorhen hvornår i ikke ind jeg kan kunne må man mange måtte med meget men mig min mine mit når og også
		om os på så sig sin skal skulle som til var ved vi vil ville vores være været`),
	"de": set(`aber als am an auch auf aus bei beim bis da darf darfst das dass daß dem den denn der deren des
		dessen die dies diese diesem diesen dieser dieses doch du durch dürfen dürft dürfte ein eine einem einen einer
		eines er es euch für gegen gibt hab habe haben habt hast hat hatte hätte hatten hätten ich ihm ihn ihnen ihr
		ihre ihrem ihren ihrer ihres im in ist ja kann kannst kein keine können könnt könnte könnten man mein meine
		meinem meinen meiner mich mir mit möchte möchten muss müssen musst müsst müsste muß nach nicht noch nur ob
		oder ohne sei seid sein seine seinem seinen seiner sich sie sind so soll sollen sollst sollt sollte sollten
		über um und uns unser unsere unserem unseren unserer unter viel viele vielen vieler vom von vor wann war wäre
		waren wären warum was welche welchem welchen welcher welches wem wen wenn wer werde werden weshalb wessen
		weswegen wie wieso wieviel wieviele will willst wir wird wirst wo wodurch wofür woher wohin wollen womit woran
		worauf woraus worden worin worüber wovon wozu wurde würde wurden würden zu zum zur zwischen`),
	"es": set(`a adonde adónde al como cómo con cual cuál cuales cuáles cuando cuándo cuanta cuánta cuantas cuántas
		cuanto cuánto cuantos cuántos de debe debemos deben debería deberían debo del donde dónde e el ella ellos en
		entre era eres es esta está estamos están estas este esto estos estoy fue fueron ha había han hasta hay hemos
		la las le les lo los más me mi mis muy ni no nos nuestra nuestras nuestro nuestros o para pero podemos podría
		podrían por pueda puede pueden puedes puedo que qué quien quién quienes quiénes se según ser sería si sin
		sobre somos son soy su sus también te tenemos tengo tiene tienen tienes tu tus u un una unas uno unos y ya yo`),
	"fi": set(`ei eikö eivät eli että hän he ja joka jos jotka kanssa kenelle keneltä kenen ketä ketkä kuin kuinka
		kuka kumpi kun me mihin mikä miksi millä millainen mille milloin minä minkä minne minulla minulle minun missä
		mistä mitä miten mitkä montako mukaan mutta myös ne niin nyt olen olet oli olisi olivat olla on onko ovat
		ovatko paljonko pitää pitääkö saa saako saan saanko se sekä sen siitä sinä sinulla sinun tai tämä täytyy
		täytyykö te vain voi voiko voimme voin voinko voit voitko voivat`),
	"fr": set(`a à au aux avec avez avons ce ces cet cette combien comme comment dans de des devez devons dois
		doit doivent du elle elles en es est et étaient était été êtes être eux faut il ils je la laquelle le lequel
		les lesquelles lesquels leur leurs lui ma mais me même mes mon ne ni nos notre nous on ont ou où par pas peut
		peuvent peux pour pourquoi pourrait pouvez pouvons puis qu quand que quel quelle quelles quels qui quoi sa
		sans se selon sera serait seront ses si sommes son sont sous suis sur ta te tes ton tu un une vos votre vous y`),
	"hu": set(`a az azok azt be csak de egy el és ez ezek ezt ha hány hogy hogyan hol honnan hova hová is kell ki
		kik kinek kit le lehet lesz már meddig meg mely melyik mennyi mert mi miért mikor milyen mint mióta mit most
		nem nincs s se sem szerint után vagy vagyok vagyunk van vannak volt voltak`),
	"it": set(`a abbiamo agli ai al alla alle allo anche avete che chi ci come con cos cosa cui da dagli dai dal
		dalla dalle de degli dei del della delle dello deve devi devo devono di dobbiamo dov dove dovete dovrebbe e è
		ed era erano essere gli ha hai hanno ho i il in io la le lei lo loro lui ma mi mia mie miei mio ne negli nei
		nel nella nelle nello noi non nostra nostre nostri nostro o per perche perché più possiamo posso possono
		potete potrebbe potrei può puoi qual quale quali quand quando quanta quante quanti quanto questa queste questi
		questo sarà se si sia siamo siete sono su sua sue sugli sui sul sulla sulle suo suoi ti tra tu tua tuo un una
		uno vi voi`),
	"nl": set(`aan als bent bij dan dat de deze die dit door een en er geen haar had hadden heb hebben hebt heeft
		het hij hoe hoeveel hun ik in is je jij jouw jullie kan kon konden kunnen kunt maar mag met mij mijn mocht
		moest moesten moet moeten mogen na naar niet nog of om onder ons onze ook op over te tegen tot u uit uw van
		veel voor waar waardoor waarheen waarin waarmee waarom waarop waarvan waarvoor wanneer waren was wat we welk
		welke werd werden wie wiens wij wil wilt worden wordt zal ze zich zij zijn zo zou zouden zullen zult`),
	"no": set(`at av ble bli blir blitt burde bør da de deg dei den der dere det din dine disse ditt du eg eit
		eller en enn er et etter får fikk for fra frå ha hadde han har hun hva hvem hvilke hvilken hvilket hvis hvor
		hvordan hvorfor i ikke ikkje inn jeg kan korleis kunne kva kven kvifor må man mange måtte med meg men min mine
		mitt mye mykje når noe noen og også om opp oss på så seg selv sin skal skulle som til ut var vår våre vårt ved
		vere vi vil ville være vært`),
	"pt": set(`a à ao aonde aos as às com como da das de dela dele deve devem devemos deveria devo do dos e é ela
		elas ele eles em entre era essa esse esta está estamos estão este estou eu foi foram há isso isto já lhe mais
		mas me mesmo meu meus minha minhas na não nas nem no nos nós nossa nossas nosso nossos o onde os ou para pela
		pelas pelo pelos pode podem podemos poderia por porque porquê posso quais qual quando quanta quantas quanto
		quantos que quê quem são se sem ser será seu seus somos sou sua suas também te tem têm temos tenho um uma você
		vocês`),
	"ro": set(commaBelow.Replace(`a această acest aceste acești al ale am ar are au avem aveți ca că când care cât
		câtă câte câți ce cel cine cu cui cum de din după el este ești eu fi fie fost i îl în între își la le lui mai
		mea mei mele meu noastră nostru nu o pe pentru poate pot poți prin putem puteți sa să sau se și sunt suntem
		trebuie un una unde unei unor unui`)),
	"ru": set(`а без будет буду будут бы был была были было быть в во вы где да для до должен должна должно должны
		его ее если есть еще ещё же за зачем и из или им их к как какая какие каких какого какое какой каком какую кем
		ко когда кого кому которая которое которые который кто куда ли меня мне мог могу могут можем может можете
		можно мои мой моя на надо нам нас наш наша наши не нет но нужно о об он она они оно от откуда по под почему
		при с сколько со так также то только тот ты у чего чей чему что чтобы чьи чья эта эти это этот я`),
	"sv": set(`är att av blev bli blir bör borde där de dem den denna deras dess dessa det detta dig din dina ditt
		du efter eller en er ett får fick finns för från hade haft han har hon hur hurdan i in inte jag kan kunde man
		många måste med men mig min mina mitt mot mycket när ni och också om oss på så sig sin sina ska skall skulle
		som till under upp ut vad var vår vara våra varför varifrån vart vårt vem vems vi vid vilka vilken vilket vill
		ville`),
	"tr": set(`ama ben benim bir biz bizim böyle bu çok da daha de değil diye en gibi göre hangi hangisi hem her
		için ile ise kaç kadar ki kim kime kimin mi midir misin miyim miyiz mu mü muyum müyüm mı mıdır mısın mıyım
		mıyız nasıl ne neden nedir nelerdir nerede nereden nereye niçin niye o olan olarak sen siz sonra şu ve veya ya`),
}

// StopShares returns the share of a text's words, in [0, 1], that are stop words of a language, and
// the largest such share of any other language. listed is false if the language has no list.
func StopShares(text, language string) (own, best float64, listed bool) {
	code := canonical(language)
	counts, all := StopCounts(text)
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

// StopCounts returns the number of a text's words that are stop words, for each language with at
// least one, by its code. It also returns the number of words.
func StopCounts(text string) (counts map[string]int, words int) {
	counts = map[string]int{}
	plain := rules{}
	for i := 0; i < len(text); {
		kind, size := classAt(text, i)
		if kind == letter {
			size = plain.compoundEnd(text, i) - i
			word := plain.fold(text[i : i+size])
			words++
			for l, stops := range stopWords {
				if _, ok := stops[word]; ok {
					counts[l]++
				}
			}
		}
		i += size
	}
	return counts, words
}
