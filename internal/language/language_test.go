package language_test

import (
	"strings"
	"testing"

	"github.com/assay-rag/assay/internal/language"
)

func TestDetect(t *testing.T) {
	english := "A server that is shut down gracefully stops taking new connections and waits until the requests under way have been answered."
	tests := []struct{ name, text, want string }{
		{"english", english, "en"},
		{"german", "Ein Server, der geordnet beendet wird, nimmt keine neuen Verbindungen an und wartet, bis die laufenden Anfragen beantwortet sind.", "de"},
		{"french", "Un serveur que l'on arrête proprement n'accepte plus de nouvelles connexions et attend que les requêtes en cours aient reçu leur réponse.", "fr"},
		{"danish", "En server, der lukkes ordentligt ned, tager ikke imod nye forbindelser og venter, til de igangværende forespørgsler er blevet besvaret af den.", "da"},
		{"norwegian", "En server som blir stengt på ordentlig vis, tar ikke imot nye forbindelser og venter til de forespørslene som er underveis, har fått svar av den.", "nb"},
		{"russian", "Сервер, который останавливают, не принимает новых соединений и ждёт, пока не будут обработаны все запросы, которые уже начаты.", "ru"},
		{"japanese", strings.Repeat("サーバーを停止すると、新しい接続は受け付けられません。", 5), "ja"},
		{"persian", strings.Repeat("سرور پس از توقف هیچ اتصال تازه\u200cای را نمی\u200cپذیرد و منتظر پاسخ می\u200cماند. ", 4), "fa"},
		{"short", "A short line of text.", ""},
		{"latin", "Lorem ipsum dolor sit amet, consectetur adipiscing elit, sed do eiusmod tempor incididunt ut labore et dolore magna aliqua.", ""},
		{"names", strings.Repeat("Alvarez Fernandez Montoya Quintero Salazar Benavides ", 4), ""},
		{"checksums", strings.Repeat("golang.org/x/tools v0.33.0 h1:4qz2S3zmRxbGIhDIAgjxvFutSvH5EfnsYrRBj0UI0bc=\n", 5), ""},
		{"a key", strings.Repeat("MIIBijCCATGgAwIBAgIBATAKBggqhkjOPQQDAjAUMRIwEAYDVQQDEwlwb2xpY3kg\n", 5), ""},
		{"nothing", "", ""},
	}
	for _, tt := range tests {
		if got := language.Detect(tt.text); got != tt.want {
			t.Errorf("%s: Detect = %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestCode(t *testing.T) {
	for tag, want := range map[string]string{
		"en": "en", "EN-us": "en", "de_DE.UTF-8": "de", "eng": "en", "deu": "de", " fr ": "fr", "nb": "nb", "ast": "ast",
		"": "", "english": "", "C": "", "und": "", "mul": "", "xx": "", "-": "", "e\xff": "",
	} {
		got, ok := language.Code(tag)
		if got != want || ok != (want != "") {
			t.Errorf("Code(%q) = %q, %v, want %q", tag, got, ok, want)
		}
	}
}
